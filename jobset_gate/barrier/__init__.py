"""The start barrier's rules, pure: decode, count, decide, word. Imported by controllers, command line and explain."""

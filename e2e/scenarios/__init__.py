"""One scenario per file, each in a namespace of its own."""

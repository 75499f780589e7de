"""The start barrier's controllers: cache, reconciler, verdict store, status. Imported by manager and statuspage."""

"""The gate stream: the leader's HTTP server that barriers wait on. Imported by controllers.barrier alone."""

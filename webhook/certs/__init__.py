"""The webhook's serving certificate: sources, rotation, CA bundle injection. For `webhook` and the CLI."""

"""What admission writes into a JobSet: validation, barrier container, restoring. Pure; for webhook and CLI."""

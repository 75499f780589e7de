"""What runs in processes of its own, so that what is measured shares its event loop with nobody."""

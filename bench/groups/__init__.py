"""How fast groups are placed by the real scheduler: without gates, with the barest loop, and with jobset-gate."""

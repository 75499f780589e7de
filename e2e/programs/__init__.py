"""Real programs on real nodes, with the gate and without: `make e2e-programs`. Nothing here runs in `make e2e`."""

"""Does a pod group fit on the nodes: the guaranteed and the greedy answer. Pure; for `jobset_gate.podgroups`."""

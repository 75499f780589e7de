"""Pod groups, from a pod that names one to all of its members bound by the real scheduler."""

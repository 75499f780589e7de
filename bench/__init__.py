"""The benchmarks: what jobset-gate costs, each figure compared with a baseline from the same run. `python -m bench`."""

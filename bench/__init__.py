"""The benchmarks: what jobset-gate costs, each figure beside a baseline from the same run. `python -m bench`."""

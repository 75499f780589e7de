"""`jobset-gate demo`: the shipped webhook and controller on the embedded cluster; in the distribution jobset-gate-demo.

gang.py and podgroups.py tell the two stories, which share frame.py. It stands on all
other packages; the command line loads command.py by its name, and tests, benchmarks and e2e import fake.
"""

"""`jobset-gate demo`: the shipped webhook and controller on the embedded cluster; in the distribution jobset-gate-demo.

gang.py and podgroups.py tell the two stories, which share frame.py. Only cli.commands.demo
imports this package.
"""

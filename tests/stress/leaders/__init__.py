"""The whole controller and one group of a LeaderWorkerSet, as `tests/stress/ring` has them for a start group.

cluster.py   what LWS, the StatefulSet and the garbage collector, kubelets and people do to the group; the truth
judge.py     what must never happen
oracle.py    checks it at each write and each passage
steps.py     what may happen, step by step
"""

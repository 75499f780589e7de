"""The whole controller and one start group, as `tests/stress/world` has them for JobSets and Jobs.

cluster.py   what the pods' owner, kubelets and people do to the group; the truth
judge.py     what must never happen
oracle.py    checks it at each write and each passage
steps.py     what may happen, step by step
"""

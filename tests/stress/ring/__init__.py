"""The whole controller and one start group, as `tests/stress/world` has them for JobSets and Jobs.

cluster.py   what the pods' owner, kubelets and people do to the group; the truth
oracle.py    what must never happen, checked at each write and each passage
run.py       the world put together, its steps, and random schedules
"""

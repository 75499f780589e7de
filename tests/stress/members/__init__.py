"""Random schedules of gangs whose pods are gated one by one: start groups, and groups of LeaderWorkerSets.

The controllers are the same as in `tests.stress.world`; what makes the pods, and the judges, are of their own.
"""

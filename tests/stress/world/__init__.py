"""A small world in which the controllers' own code runs, one API call at a time, while a schedule works against it.

cluster.py   what JobSet, Job controller, kubelets and people do to a gang; the truth
bare_job.py  the same, where the gang is a Job
objects.py   how the cluster's objects look, and how to read them without the project's help
replica.py   one controller process with its own late and disturbed views
oracle.py    what must never happen, checked at each write and each passage; facts.py is how it reads the contract
world.py     all of it together, and how every run ends
steps.py     what may happen, step by step
schedule.py  random schedules, and cutting a failed one down
streams.py   the gate streams of barriers
"""

"""A random model of the rule of attempts (K5): pure functions of the product against the truth, without any client.

judge.py     what must never happen to a start group
world.py     pods and the ConfigMap of one start group as they are
replica.py   a controller's views, which lag, and its pass, which may end before each of its calls
schedule.py  random schedules, and how each of them ends
"""

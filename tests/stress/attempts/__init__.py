"""A random model of the rule of attempts (K5): pure functions of the product against the truth, without any client.

world.py     pods and the ConfigMap of one start group as they are, and what must never happen to them
replica.py   a controller's views, which lag, and its pass, which may end before each of its calls
schedule.py  random schedules, and how each of them ends
"""

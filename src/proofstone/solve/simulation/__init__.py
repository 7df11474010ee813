"""The policies of the control loop, compared: each drives a model of a planner through the same made-up tasks.

landscape.py  what tasks are drawn from: the table of mixes, and the kinds of approach
planner.py    a planner that obeys the directives, mostly
world.py      what comes of a plan: outcomes, time and cost
run.py        a policy drives the planner through one landscape, with the controller's own functions
compare.py    many landscapes, and what can be said of the policies after them

Pure: chance comes in as numbers between 0 and 1. Every policy meets the same landscapes, and in the same round of one
the same luck, so that they are compared pair by pair. The figures of `landscape.py` were set down before the first
comparison was run, and are not fitted to anything: they say which policy suits which kind of task, not how often a
model solves one.
"""

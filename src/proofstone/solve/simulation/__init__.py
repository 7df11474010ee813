"""Compare the policies of the control loop: each drives a model of a planner through the same invented tasks.

rules.py  the landscapes that tasks are drawn from, and a planner that mostly follows directives
run.py    the outcome of a plan, a policy that drives the planner through a landscape, and the comparison

Pure: chance comes in as numbers between 0 and 1. Every policy meets the same landscapes, and in the same round the same
luck, so that policies are compared pair by pair. The parameters were fixed before the first comparison and are not
fitted to anything: they show which policy suits which kind of task, and not how often a model solves one.
"""

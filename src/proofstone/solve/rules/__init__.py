"""The decisions of the control loop. Pure.

effects.py      the effects of the loops, and their results
subtask.py      one subtask: execute, verify, correct; a generator
plan_rules.py   which tools and targets are blocked, and which plans are rejected
gradient.py     the loss, its gradient, and the policies that decide
directing.py    the outcome of a round, the merge of its results, and the directive for the next plan
loop.py         the task: perceive, plan, pursue, merge, direct; a generator
remembering.py  the memory entries of a finished task
"""

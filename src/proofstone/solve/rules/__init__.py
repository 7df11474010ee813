"""The control loop's decisions. Pure.

needs.py       what the loops ask for, and what they are sent
verdicts.py    from what was seen and judged to an outcome; which failures are the environment's
fast.py        one subtask: execute, verify, correct; a generator
blocking.py    which tools and targets may not be used again, and for how long
plan_rules.py  which plans are not taken
merging.py     from the outcomes of the subtasks to one result, verified or not; a generator
directing.py   what a round has come to, and what the next plan must do
loop.py        the task: perceive, plan, pursue, merge, direct; a generator
"""

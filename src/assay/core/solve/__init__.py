"""The control loop's decisions. Pure.

needs.py       what the loops ask for, and what they are sent
verdicts.py    from what was seen and judged to an outcome; which failures are the environment's
fast.py        one subtask: execute, verify, correct; a generator
plan_rules.py  which plans are not taken
loop.py        the task: perceive, plan, pursue, merge, direct; a generator
"""

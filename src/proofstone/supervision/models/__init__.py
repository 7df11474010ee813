"""Data about whether an agent understands its task: before it works, while it works, and when it is questioned.

understanding.py  the impact analysis before the work, its items and their outcome
ladder.py         triggers, levels, questions, the abbreviated analysis and the position table
events.py         what the engine observes of an agent, and what it decides
context.py        text that fits on one line, and versions of the context of a run
messages.py       the bracketed messages
"""

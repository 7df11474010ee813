"""What is said about whether an agent knows what it is doing: before it works, while it works, and when it is asked.

text.py           words that fit on a line, and words that do not
understanding.py  the impact analysis before the work, its items and what comes of them
ladder.py         triggers, levels, questions, and the abbreviated analysis
events.py         what the engine sees of an agent
decisions.py      what follows from it
position.py       where an agent stands
context.py        versions of what all agents were told, and what differs between them
messages.py       everything that has a form of its own on the wire
"""

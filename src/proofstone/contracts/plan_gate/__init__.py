"""The plan gate: what is said about a plan before work starts.

record.py    challenge, unknown, surfaced context, probed risk, iteration state: the protocol's own words
evidence.py  claims that the engine can look up, and what it saw
answers.py   what the agents of the plan gate answer
requests.py  what they are asked
report.py    what came of it
setup.py     what a run of the plan gate was started with
"""

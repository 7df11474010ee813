"""Decide whether an agent understands its task, before it works and when it may have drifted. Pure.

understanding.py  the understanding gate: items by tier, outcomes, attempts, and the texts sent to agents
evidence.py       the items of an impact analysis that the engine looks up itself
signatures.py     whether a signature in a file is the one that an agent claims
mentions.py       the files and names that an answer mentions, and whether a plan matches its task
monitor.py        the monitor of one agent: events in, decisions out
monitor_state.py  the state of a monitor, its limits, and which agents are exempt
course.py         one cause, from the moment it is noticed until it is settled
position.py       the position table, and whether an agent looks things up before it decides
questions.py      the questions of level 2, and how their answers are graded
scoring.py        compare an abbreviated analysis with the plan and the real change
context.py        versions of the context, who receives which update, and who has acknowledged it
amendments.py     additions to a plan while it is carried out
attendance.py     everything that is remembered of one supervised agent
wire.py           write and read bracketed messages
sections.py       the parts of bracketed messages that span several lines
"""

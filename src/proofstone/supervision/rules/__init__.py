"""Whether an agent knows what it is doing: asked before it works, and again when something says that it may have
drifted. Pure.

limits.py         how long, how often, how many: every number
watched.py        who is asked at all: tiers, backends, lanes
understanding.py  the understanding gate: items by tier, outcome, attempts
  evidence.py     the items that the engine looks up itself
  signatures.py   whether a signature is as somebody says
  interfaces.py   definitions as they stand in files, and which of them a change has changed
  plan_check.py   whether the plan of an agent is the plan of its task
triggers.py       what sets re-verification off, at which level
ladder.py         what follows from an answer: one table, no dead end
monitor.py        events in, decisions out
  state.py        all that it knows of an agent
  course.py       a cause from being noticed to its end
  hearing.py      which events say that an agent is alive
position.py       where each agent stands
  tool_use.py     whether it looks before it decides
questions.py      what is asked at level 2, and what the answer is worth
  mentions.py     what an answer names
scoring.py        an abbreviated analysis against the plan and the change itself
context.py        versions of the context, who is told of what, and who has acknowledged it
wire.py           the lines between brackets, written and read
  found.py        where they are in what an agent says
  fields.py       what stands on their first line
  sections.py     messages that have more than one line
"""

"""Check whether an agent understands its task, before it works and while it works.

attended.py    one supervised agent: its task, its state, its judge, and the context of its run
supervisor.py   the supervisor of one dispatch: listens at each turn boundary and lets the rules decide
entry.py       the understanding gate: impact analysis, challenge and plan, before the work
ladder.py      re-verification during the work: pings, questions, analyses and context updates
interfaces.py  look up paths, symbols and signatures in files
view.py        the position of each agent of a run, and the real change in its work tree
"""

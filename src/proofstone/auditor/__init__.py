"""The auditor: what can be seen in everything that was said and recorded. Pure; it reads, and it can do nothing else.

observed.py      a run as the auditor sees it
boundaries.py    who tried what they may not
convergence.py   drift, thrashing, runs and tasks that came to no good end
answers.py       roles that never answered
claims.py        claims that the engine saw otherwise
report.py        everything together
"""

"""The whole pipeline, as decisions. Pure.

needs.py      what the loop asks for, what it is sent, and what is left when it has ended
loop.py       from a request to a commit or an honest refusal: a generator, and its end
course.py     what is known of a run while it goes on, and how a step of it ends early
preparing.py  the steps before there is a plan: research, specification, design and its review
building.py   the steps that make the change: plan, plan gate, task gate, the whole cascade, the controller
panel.py      asking the reviewers, of a design and of code
approvals.py  where the person is asked, and with which options
reviews.py    the review gate: a table over the verdicts
lanes.py      how deep a change is looked into
planning.py   a planner's tasks, held against the rules
plan_text.py  a planner's tasks as a plan that the task gate reads
directing.py  what the controller makes of an iteration that did not pass
rating.py     the confidence of the whole, and what would raise it
"""

"""The decisions of the plan gate. Pure.

document.py    find code, quotations and comments in a text
freeform.py    find the steps of a text without a fixed form
outline.py     the outline of a plan in any form: steps, files, commands, markers
tree.py        the files of the base, and the files that a plan counts on
objections.py  severity and text of each rule
plan_rules.py  quality and complexity of a plan, and what rules find in it
board.py       the challenges, and the guards on how they may be settled
research.py    the findings of researchers
decision.py    the decision table, directives, team, quality score
effects.py     the effects of the loop and their results
loop.py        the convergence loop, a generator
report.py      the report and its page
documents.py   the records as YAML and JSON, and their schemas
admission.py   whether a plan may be implemented, and which mitigations are added to it
"""

"""The plan gate's decisions: a plan is attacked until it converges or is sent back. Pure.

outline.py       a plan in any form: its steps, files, commands, markers
quality.py       how good it is by rule, how complex, and whether it is trivial
rules.py         what code alone has against it
team.py          who is asked
tool_budgets.py  how often a researcher may use which tool
board.py         the challenges, and every guard on what may become of them
directives.py    when a sweep or a probe may be done again
decision.py      the table: what follows from what stands open
score.py         the quality score, which decides nothing
loop.py          the convergence loop, a generator
report_page.py   the report as a page
documents.py     the records as YAML and JSON, and their schemas
admission.py     whether a plan may reach implementation
"""

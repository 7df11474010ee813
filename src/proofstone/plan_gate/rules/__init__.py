"""The plan gate's decisions: a plan is attacked until it converges or is sent back. Pure.

outline.py       a plan in any form: its steps, files, commands, markers
  document.py    what of a text is code, quotation or comment
  freeform.py    the steps of a text that has no form of its own
  mentions.py    paths and commands in sentences
  words.py       words of domains, integrations, compliance, and of what is left open
  step.py        a step
quality.py       how good it is by rule, how complex, and whether it is trivial
rules.py         what code alone has against it
  missing.py     files that are counted on and not there
  intent.py      whether a file is to be created or changed
  tree.py        the files of the base
  objections.py  each rule's severity and words
team.py          who is asked
tool_budgets.py  how often a researcher may use which tool
findings.py      what was found out, in one line, and who may call it verified
board.py         the challenges, and every guard on what may become of them
research.py      what researchers have found
directives.py    when a sweep or a probe may be done again
decision.py      the table: what follows from what stands open
score.py         the quality score, which decides nothing
needs.py         what the loop asks for, and what it is sent
loop.py          the convergence loop, a generator
options.py       what an answer means
reporting.py     from the loop to the report
mitigations.py   what is taken into the plan
report_page.py   the report as a page
documents.py     the records as YAML and JSON, and their schemas
admission.py     whether a plan may reach implementation
"""

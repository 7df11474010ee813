"""The decisions of the pipeline. Pure.

effects.py       the effects of the loop, their results, and the final result
run_state.py     the state of a run, and how a step ends the run early
loop.py          the whole run, from a request to a commit or a refusal: a generator
preparing.py     the steps before there is a plan: research, specification, design and its review
planning.py      the lanes, and the rules that a plan must follow
plan_text.py     the tasks of a planner as a plan that the task gate reads
building.py      the steps that make the change: plan, plan gate, task gate, all checks, the controller
directing.py     what the controller decides about an iteration that did not pass
reviews.py       the review gate, the evidence in the ledger, and the confidence of the run
approvals.py     the questions to the user, the commit message and the rollback
documents.py     the documents of a run; companions.py has their readable pages
bundle_page.py   the evidence bundle as a page; bundle_words.py has its phrases
"""

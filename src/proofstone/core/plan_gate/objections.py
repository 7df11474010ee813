"""What is at stake with each rule: why code objects, what will happen, and what to do instead. One literal table.

The severity counts where the plan can be run all the same. What makes `proofstone gate` refuse a plan is BLOCKING
always.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from proofstone.contracts.plan_gate.record import PlanSeverity

BLOCKING, SIGNIFICANT, MINOR = PlanSeverity.BLOCKING, PlanSeverity.SIGNIFICANT, PlanSeverity.MINOR


class Objection(NamedTuple):
    concern: str
    failure_scenario: str
    alternative: str


FORM = Objection(
    "The reader of plans cannot tell what is meant here.",
    "The plan is refused before its first task, or a task is read differently from how it was meant.",
    "Write it in the form that docs/plan.md describes, which has one reading only.",
)
SIZE = Objection(
    "A plan of this size cannot be read, run and reviewed as a whole.",
    "The plan is refused before its first task.",
    "Split it into several plans, each of which can be judged and taken back.",
)
ORDER = Objection(
    "No order of the tasks satisfies what they say of each other.",
    "The tasks wait for something that never comes, so none of them can begin.",
    "Name only tasks that come before, so that one of them can begin.",
)
UNPROVEN = Objection(
    "Nothing is run that would fail if the work were not done.",
    "The work is wrong or missing, everything passes, and the fault is found by those who use it.",
    "Run a command that fails before the work and passes after it.",
)
PERSON = Objection(
    "Only a command is run; sentences and checks by hand are not.",
    "What the sentence asks for is looked at by nobody, and the task passes without it.",
    "Make it a command, a done criterion, or a checkpoint for a person.",
)
UNFINISHED = Objection(
    "Nobody can tell by this whether the work is finished.",
    "The work is called done when somebody feels so, and a reviewer can neither accept nor reject it.",
    "Name what one can see or count.",
)
PATHS = Objection(
    "The files named here cannot be the ones that are meant.",
    "Changes fall outside what was declared and are rejected, however good they are.",
    "Name every file from the repository's root.",
)
UNNAMED = Objection(
    "It is not said which files this may change.",
    "Nothing that is changed can be within what was declared, so every change is rejected.",
    "Name the files, or say that there are none.",
)
MISSING = Objection(
    "The plan counts on a file that is not there.",
    "Whoever carries it out writes a second file beside the right one, or changes one that nobody declared.",
    "Name the file that is meant, or say that it is to be created.",
)
UNDECLARED = Objection(
    "The task is told to change a file that it does not list.",
    "The change falls outside what was declared and is rejected, or the task leaves out what it was told to do.",
    "List the file, or leave its change to the task that lists it.",
)
UNTESTED = Objection(
    "The verification runs a test file that is not there and that no task so far writes.",
    "The command fails whatever is done, or somebody writes a test outside of what was declared.",
    "List the test file among the files of the task that writes it.",
)
PROMISED = Objection(
    "The plan promises a file that no task may write.",
    "Every task passes, and the plan fails at its end because the file is missing.",
    "List it among the files of the task that makes it.",
)
SHARED = Objection(
    "Tasks that may run at the same time may change the same files.",
    "They are merged in whatever order they finish, and one may undo or contradict the other.",
    "Say which comes first, or part the files.",
)
BROAD = Objection(
    "The command says little of this task.",
    "It passes although the task added nothing, because everything else still does.",
    "Name the tests of this task; the whole suite is run in any case.",
)
LARGE = Objection(
    "The task changes too much to be judged at once.",
    "One wrong part rejects the whole, and the review overlooks what a small change would show.",
    "Split it into tasks of a few files each.",
)
DETAIL = Objection(
    "What is written here is not taken as it may be meant.",
    "The plan can be run, but a part of it has no effect or another one than expected.",
    "Write it as the hint says.",
)
OUTSIDE = Objection(
    "The command leaves the copy of the repository in which the work is checked.",
    "It looks at another copy, and passes or fails for reasons that have nothing to do with the work.",
    "Let commands begin in the repository's root.",
)
OPEN = Objection(
    "The plan leaves something undecided.",
    "Whoever carries it out decides it in passing, and nobody has weighed that decision.",
    "Decide it in the plan, or make a checkpoint at which a person decides.",
)
SHAPELESS = Objection(
    "No step was found that somebody could carry out and check.",
    "Everybody who reads it does something else, and nobody can say how far it has come.",
    "Say the steps as a numbered list, or as <task> elements.",
)
SEVERAL = Objection(
    "Several small things are not as they should be.",
    "Each costs whoever carries the plan out a question or a wrong guess, and together they hide what matters.",
    "Put each of them right as its hint says.",
)

RULES: Final[Mapping[str, tuple[PlanSeverity, Objection]]] = {
    # what the reader says
    "frontmatter": (BLOCKING, FORM),
    "no-task": (BLOCKING, FORM),
    "broken-tag": (BLOCKING, FORM),
    "stray-tag": (BLOCKING, FORM),
    "unclosed-tag": (BLOCKING, FORM),
    "two-names": (BLOCKING, FORM),
    "missing-name": (BLOCKING, FORM),
    "missing-action": (BLOCKING, FORM),
    "too-large": (BLOCKING, SIZE),
    "missing-files": (BLOCKING, UNNAMED),
    "missing-verify": (BLOCKING, UNPROVEN),
    "missing-done": (BLOCKING, UNFINISHED),
    "wave": (MINOR, DETAIL),
    "task-type": (MINOR, DETAIL),
    "flaky": (MINOR, DETAIL),
    "idle-command": (MINOR, DETAIL),
    # of its order
    "cycle": (SIGNIFICANT, ORDER),
    "unknown-dependency": (SIGNIFICANT, ORDER),
    "self-dependency": (SIGNIFICANT, ORDER),
    # of its commands
    "prose-verify": (BLOCKING, UNPROVEN),
    "inverted-verify": (BLOCKING, UNPROVEN),
    "verify-too-long": (BLOCKING, SIZE),
    "manual-verify": (MINOR, PERSON),
    "prose-in-verify": (MINOR, PERSON),
    "entity-in-verify": (MINOR, DETAIL),
    # what the linter says
    "empty-checkpoint": (BLOCKING, FORM),
    "vacuous-verify": (SIGNIFICANT, UNPROVEN),
    "vacuous-heldout": (SIGNIFICANT, UNPROVEN),
    "lost-exit-code": (SIGNIFICANT, UNPROVEN),
    "bad-path": (BLOCKING, PATHS),
    "bad-pattern": (BLOCKING, FORM),
    "overlapping-files": (SIGNIFICANT, SHARED),
    "vague-done": (SIGNIFICANT, UNFINISHED),
    "absolute-cd": (SIGNIFICANT, OUTSIDE),
    "broad-verify": (MINOR, BROAD),
    "many-files": (MINOR, LARGE),
    "duplicate-name": (MINOR, DETAIL),
    "heldout-shown": (MINOR, DETAIL),
    "odd-path": (MINOR, PATHS),
    "autonomous": (MINOR, DETAIL),
    "key-link": (MINOR, DETAIL),
    # what only the plan gate says
    "missing-file": (SIGNIFICANT, MISSING),
    "missing-test": (SIGNIFICANT, UNTESTED),
    "missing-artifact": (SIGNIFICANT, PROMISED),
    "missing-context": (MINOR, MISSING),
    "undeclared-file": (MINOR, UNDECLARED),
    "files-modified": (MINOR, DETAIL),
    "unknown-in-step": (SIGNIFICANT, OPEN),
    "unknown": (MINOR, OPEN),
    "no-steps": (SIGNIFICANT, SHAPELESS),
    "no-verification": (SIGNIFICANT, UNPROVEN),
    "several": (MINOR, SEVERAL),
}

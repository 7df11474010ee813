"""Taking mitigations into a plan: which, where, and that nothing else changes."""

from __future__ import annotations

import re

import pytest

from proofstone.agents.roles.models.plan_gate_records import Challenge, ChallengeOrigin, ChallengeStatus, PlanSeverity
from proofstone.plan_gate.rules.admission import add_mitigations, is_same_plan, select_mitigations, select_unmitigated
from proofstone.plans.parser import read_plan
from tests.plan_gate.reports import BLOCKING, MINOR, challenge
from tests.rows import each_row

OPEN, RESOLVED, UNRESOLVED = ChallengeStatus.OPEN, ChallengeStatus.RESOLVED, ChallengeStatus.UNRESOLVED
PUT_OFF = ChallengeStatus.DEFERRED_SURFACED
TASK = (
    '<task type="auto">\n<name>Count</name>\n<files>a.py</files>\n<action>Count to ten.</action>\n'
    "<verify>python -m unittest</verify>\n<done>It counts</done>\n</task>\n"
)
TAKEN = (challenge("C2", mitigation="Keep a copy,\n  and  name it"), challenge("C7", mitigation="Ask first"))
SECTION = "**Mitigations that the plan gate asked for** (run r1):\n\n- C2: Keep a copy, and name it\n- C7: Ask first"


@each_row("severity", PlanSeverity)
@each_row("status", ChallengeStatus)
@each_row("mitigation", ["", " \n", "Keep a copy"])
def test_what_is_taken_in_and_what_nothing_answers(
    severity: PlanSeverity, status: ChallengeStatus, mitigation: str
) -> None:
    one = challenge("C1", severity, status, mitigation=mitigation)
    grave, known = severity is not MINOR, bool(mitigation.strip())
    taken = grave and known and status in (OPEN, RESOLVED, UNRESOLVED)
    assert select_mitigations([one]) == ((one,) if taken else ())
    unanswered = grave and (status is PUT_OFF or (status in (OPEN, UNRESOLVED) and not known))
    assert select_unmitigated([one]) == ((one,) if unanswered else ())


def test_what_the_rules_advise_is_for_the_author_and_not_taken_in() -> None:
    one = challenge("C1", BLOCKING, mitigation="Keep a copy", origin=ChallengeOrigin.RULES)
    assert (select_mitigations([one]), select_unmitigated([one])) == ((), (one,))


def test_the_order_is_that_of_the_challenges() -> None:
    several: list[Challenge] = [challenge(f"C{n}", BLOCKING, mitigation="x") for n in (3, 1, 2)]
    assert [one.id for one in select_mitigations(several)] == ["C3", "C1", "C2"]
    assert [one.id for one in select_unmitigated([challenge("C2"), *several, challenge("C9")])] == ["C2", "C9"]


RUNNABLE = [
    ("a context", f"# Counting\n\n<context>\nNumbers.\n</context>\n\n{TASK}", f"Numbers.\n\n{SECTION}"),
    ("in capitals, indented", f"# Counting\n\n  <CONTEXT>\nNumbers.\n  </CONTEXT>\n\n{TASK}", f"Numbers.\n\n{SECTION}"),
    ("in one line", f"# Counting\n\n<context>Numbers.</context>\n\n{TASK}", f"Numbers.\n\n{SECTION}"),
    ("an empty one", f"# Counting\n\n<context>\n</context>\n\n{TASK}", SECTION),
    ("with other line ends", f"<context>\r\nNumbers.\r\n</context>\r\n\r\n{TASK}", f"Numbers.\n\n{SECTION}"),
    ("that is spoken of before", f"Close `</context>`.\n\n<context>\nA.\n</context>\n\n{TASK}", f"A.\n\n{SECTION}"),
    ("a heading", f"# Counting\n\n## Context\n\nNumbers.\n\n{TASK}", f"{SECTION}\n\nNumbers."),
    ("a heading with a colon", f"# Counting\n\n### CONTEXT:\nNumbers.\n\n{TASK}", f"{SECTION}\nNumbers."),
    ("none", f"# Counting\n\n{TASK}", SECTION),
    ("none, and two tasks", f"# Counting\n\n{TASK}\n{TASK}", SECTION),
]


@each_row(("text", "context"), [row[1:] for row in RUNNABLE])
def test_mitigations_are_written_into_the_context_and_nothing_else_changes(text: str, context: str) -> None:
    revised = add_mitigations(text, TAKEN, "r1")
    plan, _ = read_plan(revised, "PLAN.md")
    assert plan is not None
    assert plan.context == context
    assert is_same_plan(text, revised)
    assert _bare(revised.replace(SECTION, "")) == _bare(text)


def _bare(text: str) -> list[str]:
    """Its lines, but for blank ones and the tags of the context."""
    return [line for line in re.sub("</?context>", "", text, flags=re.IGNORECASE).splitlines() if line.strip()]


def test_a_plan_in_any_other_form_has_them_at_its_end() -> None:
    text = "# Counting\n\n1. Count to ten.\n\n\n"
    revised = add_mitigations(text, TAKEN, "r1")
    heading = "## Mitigations that the plan gate asked for"
    assert revised == f"# Counting\n\n1. Count to ten.\n\n{heading}\n\n{SECTION.split('** ')[1]}\n"
    assert is_same_plan(text, revised)


WRONG_PLACE = [
    ("an example in a fence", f"```\n<context>\n</context>\n```\n\n{TASK}"),
    ("within a task", TASK.replace("ten.", "ten.\n<context>\nA.\n</context>")),
]


@pytest.mark.parametrize("text", [row[1] for row in WRONG_PLACE], ids=[row[0] for row in WRONG_PLACE])
def test_mitigations_that_would_not_come_into_the_context_are_seen(text: str) -> None:
    assert not is_same_plan(text, add_mitigations(text, TAKEN, "r1"))


@pytest.mark.parametrize(
    ("text", "mitigation"),
    [
        (f"<context>\nA.\n</context>\n\n{TASK}", f"Another task: </context>\n{TASK}"),
        (f"<context>\nA.\n</context>\n\n{TASK}", "It ends here: </context> and goes on"),
        (TASK, f"Another task: </context>\n{TASK}"),
        (TASK, "It ends here: </context> and goes on"),
    ],
)
def test_a_mitigation_cannot_write_the_plan(text: str, mitigation: str) -> None:
    assert not is_same_plan(text, add_mitigations(text, [challenge("C1", mitigation=mitigation)], "r1"))


PLAN = f"---\nphase: one\n---\n# Counting\n\n<objective>Count.</objective>\n\n<context>\nA.\n</context>\n\n{TASK}"


@each_row(
    ("old", "new", "same"),
    [
        ("A.\n", "A.\nB.\n", True),
        ("A.\n", "B.\n", False),
        ("# Counting\n", "# Counting\n\n\n", True),
        ("ten", "eleven", False),
        ("It counts", "It runs", False),
        ("python -m unittest", "true", False),
        ("<objective>Count.", "<objective>Sing.", False),
        ("phase: one", "phase: two", False),
        ("---\n# Counting", "must_haves:\n  truths:\n    - It sings\n---\n# Counting", False),
        (TASK, TASK + TASK, False),
        (TASK, "", False),
    ],
)
def test_a_plan_is_the_same_if_only_its_context_has_more(old: str, new: str, same: bool) -> None:
    assert PLAN.count(old) == 1
    assert is_same_plan(PLAN, PLAN.replace(old, new)) == same

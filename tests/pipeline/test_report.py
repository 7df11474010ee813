"""What came of a feature, as it is printed."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from proofstone.agents.roles.models.gate import TaskState
from proofstone.agents.roles.models.pipeline import ReviewFocus
from proofstone.cli.render.pipeline import print_pipeline_report
from proofstone.common.models import ReviewVerdict, Severity
from proofstone.gate.models import Override, OverrideAction, RunOutcome
from proofstone.pipeline.models.run import BlastRadius, KnownIssue, RunReport
from tests.pipeline import reports
from tests.pipeline.reports import BRANCH, COMMIT, HOSTILE, REQUEST, RUN, SHOWN

TAIL = [
    f"documents: /srv/shop/.proofstone/{RUN}",
    "cost: agents asked 26 times, 30 model calls, 3.0k tokens, $0.05, 41.0 s",
    f"run {RUN}; `proofstone ledger show {RUN}` shows all of it",
]


def printed(report: RunReport) -> list[str]:
    file = io.StringIO()
    print_pipeline_report(Console(file=file, width=80, markup=False, highlight=False, emoji=False), report)
    return file.getvalue().splitlines()


def test_what_passed_comes_with_its_grounds_its_commit_and_the_way_back() -> None:
    assert printed(reports.passed()) == [
        "PASSED",
        f"asked for: {REQUEST}",
        "confidence medium, because:",
        "- left open by a review: no limit",
        "  to raise it: set one",
        "lane standard: no files are named",
        "",
        "plan gate:",
        f"  1. PROCEED: nothing stands (run {RUN}-p1)",
        "",
        f"tasks of plan 1, failed: task-01 failed (run {RUN}-g1):",
        "  ✗ task-01 Greeting  failed, 2 attempts",
        "    VERIFY_FAILURE: 2 tests fail",
        "",
        f"tasks of plan 2, passed (run {RUN}-g2):",
        "  ✓ task-01 Greeting  approved, 2 attempts",
        "",
        "reviews:",
        "  code, round 1",
        "    security approve, by gpt",
        "    correctness needs_revision (1 critical, 2 minor), by gpt",
        "    architecture not heard",
        "  code, round 2",
        "    security approve, by gpt",
        "  all reviews are by one model, each with a different focus",
        "",
        "checks:",
        "  ✓ all checks pass on the merged tree aaaaaaaaaaaa",
        "",
        "known issues:",
        "  major: no limit in a.py:3, b.py (plan gate C3)",
        "  minor: a long name (review code/architecture, round 2)",
        "",
        "approvals:",
        "  gate-post-planning: approve, by default",
        "  gate-post-planning-2: revise, by a person: smaller",
        "",
        "changed:",
        "  🔴 greeting.py (modified)",
        "",
        "notes:",
        "  there is no sandbox",
        "",
        f"one commit, cccccccccccc, is on {BRANCH}",
        f"  merge it with: git merge --ff-only {BRANCH}",
        f"  once it is merged, revert it with: git revert --no-edit {COMMIT}",
        f"evidence: /srv/shop/.proofstone/{RUN}/evidence-bundle.md",
        *TAIL,
    ]


def test_what_waits_says_what_is_asked_and_the_command_of_each_option() -> None:
    assert printed(reports.waiting()) == [
        "NEEDS_HUMAN  Review and approve?",
        f"asked for: {REQUEST}",
        "lane standard: no files are named",
        "",
        "you are asked:",
        "  Review and approve?",
        "  2 tasks.",
        "  1. 🔴 auth",
        "  gate-post-planning, step 4a; 0 findings",
        f"  proofstone approve {RUN} gate-post-planning approve",
        "    Approve (the default): Begin.",
        f'  proofstone approve {RUN} gate-post-planning revise --note "…"',
        "    Revise: Plan anew.",
        f"  and then: proofstone resume {RUN}",
        "",
        "nothing is committed, and your files are unchanged",
        *TAIL,
    ]


def test_what_failed_says_why_and_that_nothing_is_committed() -> None:
    lines = printed(reports.failed())
    assert lines[0] == "FAILED  abandoned after 3 iterations"
    assert "confidence low" in lines
    assert "  ✗ the merged tree aaaaaaaaaaaa does not pass: 2 tests fail; 1 regression" in lines
    assert "  worked before: tests/test_a.py::one" in lines
    assert "nothing is committed, and your files are unchanged" in lines
    assert "next: think" in lines
    assert "git merge" not in "\n".join(lines)


@pytest.mark.parametrize(
    ("outcome", "words"),
    [(RunOutcome.FAILED, "what there is and was not accepted"), (RunOutcome.NEEDS_HUMAN, "what there is so far")],
)
def test_what_was_made_and_is_not_committed_can_be_taken_as_a_patch(
    tmp_path: Path, outcome: RunOutcome, words: str
) -> None:
    folder = tmp_path / "my run"
    folder.mkdir()
    (folder / "change.patch").write_text("")
    text = "\n".join(printed(reports.report(outcome, directory=str(folder))))
    assert f"  {words}: git -C /srv/shop apply '{folder}/change.patch'\n" in text


NEXT = {
    f"proofstone status {RUN}-g1": f"next: proofstone status {RUN}-g1; when you have answered: proofstone resume {RUN}",
    f"proofstone resume {RUN}": f"next: proofstone resume {RUN}",
}


@pytest.mark.parametrize("step", NEXT)
def test_where_a_part_asks_it_is_the_whole_that_goes_on(step: str) -> None:
    assert NEXT[step] in printed(reports.report(RunOutcome.NEEDS_HUMAN, "task-01 asks", next_step=step))


def test_a_task_that_a_person_set_aside_says_so() -> None:
    override = Override(action=OverrideAction.SKIP, reason="no network", category="x", by="ada", at="2026-02-26T15:00Z")
    skipped = reports.task(TaskState.SKIPPED).model_copy(update={"override": override})
    lines = printed(reports.report(RunOutcome.FAILED, gates=(reports.gate(1, RunOutcome.PASSED, skipped),)))
    at = lines.index("  – task-01 Greeting  skipped, 2 attempts")
    assert lines[at + 1] == "    set aside by ada: no network"


def test_of_very_many_things_some_are_shown_and_the_rest_is_counted() -> None:
    changed = tuple(BlastRadius(path=f"f{number}.py", change="added", risk="🟢") for number in range(25))
    lines = printed(reports.report(RunOutcome.FAILED, changed=changed))
    assert "  🟢 f19.py (added)" in lines and "  … and 5 more" in lines and "  🟢 f20.py (added)" not in lines


def test_what_an_agent_wrote_drives_no_terminal() -> None:
    task = reports.task(TaskState.FAILED, HOSTILE, HOSTILE).model_copy(update={"asks": HOSTILE})
    question = reports.QUESTION.model_copy(update={"question": HOSTILE, "context": HOSTILE})
    options = tuple(
        one.model_copy(update={"label": HOSTILE, "description": HOSTILE}) for one in reports.QUESTION.options
    )
    word = reports.reviewed(ReviewFocus.SECURITY, ReviewVerdict.APPROVE).model_copy(update={"model": HOSTILE})
    hostile = reports.report(
        RunOutcome.NEEDS_HUMAN,
        HOSTILE,
        request=HOSTILE,
        confidence="low",
        reasons=({"reason": HOSTILE, "remedy": HOSTILE},),
        lane_reason=HOSTILE,
        waiting=question.model_copy(update={"options": options}),
        plan_gates=reports.plan_gates(HOSTILE),
        gates=(reports.gate(1, RunOutcome.FAILED, task, reason=HOSTILE),),
        final=reports.BROKEN.model_copy(update={"reason": HOSTILE, "regressions": (HOSTILE,)}),
        reviews=(word,),
        known_issues=(KnownIssue(severity=Severity.MAJOR, title=HOSTILE, where=(HOSTILE,), source=HOSTILE),),
        approvals=(reports.entry(HOSTILE, auto=False, said=HOSTILE),),
        changed=(BlastRadius(path=HOSTILE, change="added", risk="🟢"),),
        notes=(HOSTILE,),
    )
    text = "\n".join(printed(hostile))
    assert "\x1b" not in text and "\r" not in text
    assert text.count(SHOWN) >= 20

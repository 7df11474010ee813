"""STATE.md and SUMMARY.md: the keys of the protocol, values that read back, and nothing that a name can break."""

from __future__ import annotations

import io
import re
from typing import Any

import pytest
from ruamel.yaml import YAML

from proofstone.agents.roles.models.gate import FailureType
from proofstone.gate.models import (
    GATE_POLICY,
    CriterionLink,
    MustHaveResult,
    OverrideAction,
    RunOutcome,
    RunView,
    TaskConfirmed,
    TaskRetried,
)
from proofstone.gate.rules.pages import format_time_between, render_state_page, render_summary_page
from tests.gate import views
from tests.gate.test_page_text import HOSTILE
from tests.gate.views import RUN, executed, failed, overridden, started, view
from tests.rows import each_row

_BLOCK = re.compile(r"^```yaml\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def load(text: str) -> dict[str, Any]:
    found: dict[str, Any] = YAML(typ="safe", pure=True).load(io.StringIO(text))
    return found


def blocks(page: str) -> dict[str, Any]:
    """Everything that stands in the page's YAML blocks."""
    found: dict[str, Any] = {}
    for block in _BLOCK.findall(page):
        found |= load(block)
    return found


def frontmatter(page: str) -> dict[str, Any]:
    assert page.startswith("---\n")
    return load(page.split("\n---\n", 1)[0].removeprefix("---\n"))


RECOVERED = (
    started(),
    executed(),
    failed(error="first: a colon\nand a line"),
    TaskRetried(by=GATE_POLICY),
    started(2),
    executed(),
    *views.PASSED[2:],
)


def busy() -> RunView:
    return view(
        {
            "Task 1: Prices": RECOVERED,
            "Task 2: Basket": (started(), executed()),
            "Task 3: Pay": (started(), executed(), failed(FailureType.TIMEOUT), overridden()),
            "Task 4: Ship": (),
        },
        asks={"Task 3: Pay": "commit it yourself"},
        warnings=("hooks were skipped",),
    )


@pytest.mark.seed("gate", "state-keys")
def test_state_has_exactly_the_keys_of_the_protocol() -> None:
    found = blocks(render_state_page(busy()))
    assert set(found) == {"run", "current_task", "gate_stats", "tasks", "recent_failures", "concerns"}
    assert list(found["current_task"]) == [
        "name",
        "phase",
        "plan",
        "gate_status",
        "gate_step",
        "executor_status",
        "verify_status",
        "architect_status",
        "started_at",
        "last_step_at",
        "attempt",
        "max_attempts",
        "previous_failures",
    ]
    assert list(found["gate_stats"]) == [
        "total_tasks",
        "passed",
        "failed",
        "in_progress",
        "pending",
        "pass_rate",
        "avg_attempts",
        "current_gate",
    ]
    assert list(found["recent_failures"][0]) == [
        "task",
        "attempt",
        "failure_type",
        "error",
        "recovered",
        "resolution",
    ]


def test_state_says_where_the_run_stands() -> None:
    found = blocks(render_state_page(busy()))
    assert found["run"]["id"] == RUN
    assert found["run"]["branch"] == "proofstone/a-shop"
    assert found["current_task"] == {
        "name": "Task 2: Basket",
        "phase": "03-shop",
        "plan": "01",
        "gate_status": "VERIFYING",
        "gate_step": 2,
        "executor_status": "success",
        "verify_status": "running",
        "architect_status": "pending",
        "started_at": "2026-02-26T14:30:00.000Z",
        "last_step_at": "2026-02-26T14:30:01.000Z",
        "attempt": 1,
        "max_attempts": 3,
        "previous_failures": [],
    }
    assert found["gate_stats"] == {
        "total_tasks": 4,
        "passed": 1,
        "failed": 0,
        "in_progress": 1,
        "pending": 1,
        "pass_rate": "100%",
        "avg_attempts": 1.3,
        "current_gate": {"task": "Task 2: Basket", "status": "VERIFYING", "attempt": 1},
    }


def test_state_names_every_task_and_what_was_set_aside() -> None:
    tasks = blocks(render_state_page(busy()))["tasks"]
    assert tasks[0] == {
        "name": "Task 1: Prices",
        "id": "task-01",
        "status": "APPROVED",
        "attempts": 2,
        "commit": views.COMMIT,
    }
    assert tasks[2] == {
        "name": "Task 3: Pay",
        "id": "task-03",
        "status": "complete (unverified)",
        "attempts": 1,
        "commit": None,
        "skip_reason": "verify-unavailable: the payment sandbox is down",
        "skipped_by": "ada",
        "skipped_at": "2026-02-26T15:00:00Z",
        "requires_manual_commit": True,
    }


def test_a_task_that_the_person_has_committed_needs_no_commit_any_more() -> None:
    settled = view({"a": (overridden(OverrideAction.FORCE), TaskConfirmed(by="ada", commit="c" * 40))})
    [task] = blocks(render_state_page(settled))["tasks"]
    assert (task["status"], task["requires_manual_commit"]) == ("complete (forced)", False)


@pytest.mark.seed("gate", "failure-log")
def test_state_keeps_failures_with_what_became_of_them() -> None:
    failures = blocks(render_state_page(busy()))["recent_failures"]
    by_task = {failure["task"]: failure for failure in failures}
    assert by_task["Task 1: Prices"] == {
        "task": "Task 1: Prices",
        "attempt": 1,
        "failure_type": "VERIFY_FAILURE",
        "error": "first: a colon\nand a line",
        "recovered": True,
        "resolution": "attempt 2 passed",
    }
    assert by_task["Task 3: Pay"]["recovered"] is False
    assert by_task["Task 3: Pay"]["resolution"] == "complete (unverified), on the word of ada"


def test_only_the_last_failures_are_kept_oldest_first() -> None:
    lost = view({f"t{number}": views.THRICE_FAILED for number in range(5)})
    failures = blocks(render_state_page(lost))["recent_failures"]
    assert len(failures) == 10
    assert [failure["attempt"] for failure in failures] == sorted(failure["attempt"] for failure in failures)
    assert failures[-1]["resolution"] == "a person is asked"


@pytest.mark.seed("gate", "state-bar")
def test_state_shows_the_bar() -> None:
    assert (
        "## Current Task: Task 2: Basket\n\n```\nGate Progress: [####----] Step 2/3\n\n"
        "[x] Step 1: Executor    - SUCCESS (14:30:01)\n"
        "[~] Step 2: Verify      - RUNNING (14:30:01)\n"
        "[ ] Step 3: Architect   - PENDING\n\nStatus: VERIFYING\n```" in render_state_page(busy())
    )


def test_tasks_that_are_under_way_beside_it_have_bars_too() -> None:
    page = render_state_page(view({"a": (started(),), "b": (started(), executed())}))
    assert page.count("Gate Progress:") == 2
    assert "## At the same time\n\n### a\n" in page


def test_state_says_what_is_asked_and_how_to_answer() -> None:
    page = render_state_page(busy())
    assert "**Task 3: Pay** (task-03): commit it yourself" in page
    assert f"- `proofstone done {RUN} task-03`: you have committed it yourself" in page


def test_state_lists_concerns() -> None:
    assert blocks(render_state_page(busy()))["concerns"] == ["hooks were skipped", "task-01: the name is odd"]


def test_state_says_that_nobody_reads_it_back() -> None:
    assert "never read back" in render_state_page(busy()).split("```")[0]


def test_state_of_a_run_that_has_not_begun() -> None:
    found = blocks(render_state_page(view({"a": ()})))
    assert found["current_task"]["started_at"] is None
    assert found["gate_stats"]["pass_rate"] == "–"
    assert found["recent_failures"] == []


@each_row("name", [text for text in HOSTILE if text])
def test_no_name_breaks_a_page(name: str) -> None:
    events = (started(), executed(), failed(error=name))
    seen = view({name: events}, title=name, reason=name, asks={name: name}, warnings=(name,))
    page = render_state_page(seen)
    found = blocks(page)
    assert found["tasks"][0]["name"] == name
    assert found["recent_failures"][0]["error"] == name
    assert found["concerns"] == [name]
    assert set(found) == {"run", "current_task", "gate_stats", "tasks", "recent_failures", "concerns"}
    summary = render_summary_page(seen)
    assert frontmatter(summary)["run"] == RUN
    for text in (page, summary):
        text.encode("utf-8")
        headings = [line for line in text.splitlines() if line.startswith("#")]
        assert len(headings) == len([line for line in state_or_summary(text) if line.startswith("#")])


def state_or_summary(text: str) -> list[str]:
    """The headings of the same page about a task with a harmless name."""
    seen = view(
        {"x": (started(), executed(), failed(error="x"))}, title="x", reason="x", asks={"x": "x"}, warnings=("x",)
    )
    return (render_summary_page(seen) if text.startswith("---") else render_state_page(seen)).splitlines()


def finished() -> RunView:
    links = (CriterionLink(criterion="prices are right", check="verify"), CriterionLink(criterion="it is nice"))
    passed = (started(), executed(), views.checked(*links), *views.PASSED[3:])
    return view(
        {"Prices": RECOVERED, "Basket": passed, "Colour": views.CONFIRMED, "Pay": (overridden(),)},
        checkpoints=("Colour",),
        outcome=RunOutcome.PASSED,
        must_haves=(
            MustHaveResult(what="src/shop.py", holds=True),
            MustHaveResult(what="docs/shop.md", holds=False, detail="is not there"),
            MustHaveResult(what="people like it", holds=None),
        ),
        warnings=("Pay (task-04) was skipped and is unverified",),
    )


def test_summary_opens_with_the_facts() -> None:
    assert frontmatter(render_summary_page(finished())) == {
        "phase": "03-shop",
        "plan": "01",
        "run": RUN,
        "outcome": "passed",
        "branch": "proofstone/a-shop",
        "commits": [views.COMMIT, views.COMMIT],
        "duration": "3 min 20 s",
    }


def test_summary_warns_before_anything_else() -> None:
    body = render_summary_page(finished()).split("\n---\n", 1)[1]
    assert body.startswith("\n# Summary: A shop\n\n**WARNING: Pay (task-04) was skipped and is unverified**\n")


@each_row(
    "line",
    [
        "### Basket (task-02)",
        f"- commit: `{views.COMMIT}`",
        "- files: `src/shop.py`",
        "- confidence: medium",
        "- attempts: 2",
        "- [x] prices are right: shown by `verify`",
        "- [ ] it is nice: unjudged: no check shows it, and nobody has judged it",
        "- the name is odd",
        "- attempt 1, VERIFY_FAILURE: first: a colon and a line (attempt 2 passed)",
        "- state: complete (unverified)",
        "- [ ] all tests pass",
        "- a person's note: we take the blue one",
        "- [x] src/shop.py",
        "- [ ] docs/shop.md: does not hold: is not there",
        "- [ ] people like it: for a person to judge",
        f"- `proofstone ledger show {RUN}`: every check and every event of the run",
        "- `proofstone ledger verify`: that nobody has changed the record since",
    ],
)
def test_summary_says_what_was_done_and_what_shows_it(line: str) -> None:
    assert line in render_summary_page(finished()).splitlines()


def test_summary_says_how_the_loss_went() -> None:
    passed = (*views.directed_failures(2), executed(), *views.PASSED[2:])
    page = render_summary_page(view({"Prices": passed, "Basket": RECOVERED}, outcome=RunOutcome.PASSED))
    assert page.count("- loss after attempts that did not pass: 0.60 ⊥ → 0.63 ⊥\n") == page.count("- loss") == 1


@pytest.mark.parametrize(
    ("end", "told"),
    [
        ("2026-02-26T14:30:00Z", "0 s"),
        ("2026-02-26T14:30:59.400+00:00", "59 s"),
        ("2026-02-26T16:30:01Z", "2 h 1 s"),
        ("2026-02-26T14:29:00Z", "0 s"),
    ],
)
def test_durations_are_told_in_words(end: str, told: str) -> None:
    assert format_time_between("2026-02-26T14:30:00Z", end) == told

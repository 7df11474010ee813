"""What a run of the pipeline may say: every gap is named, and nothing open is committed, through the command line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.pipeline.stage import (
    FOCI,
    Stage,
    designer,
    executor,
    finding,
    planner,
    reviewer,
    specifier,
    task,
)
from tests.staging import Entry, babbling, failing

HOLE = "Anybody may count"


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage.set_up(tmp_path / "stage")


def bundle_of(stage: Stage, run: str) -> dict[str, Any]:
    read: dict[str, Any] = json.loads(stage.proofstone("bundle", run, "--json").stdout)
    return read


def saying(status: str, entry: Entry) -> Entry:
    """The same answer, of which its author says something else."""
    completion = {"status": status, "summary": "the scope is not clear to me"}
    return {**entry, "output": {**entry["output"], "completion": completion}}


def critical_designs() -> Iterator[Entry]:
    """A design review that asks for a revision twice because of the same critical finding."""
    for focus in ("security", "correctness"):
        yield reviewer(focus, "design", finding(HOLE, "critical", "security"), verdict="needs_revision")


@pytest.mark.parametrize("role", ["specifier", "designer", "planner"])
def test_needs_revision_is_asked_for_once_and_then_a_person_decides(stage: Stage, role: str) -> None:
    unsure = {"specifier": specifier, "designer": designer, "planner": planner}[role]()
    came = stage.run(saying("NEEDS_REVISION", unsure))
    assert (came.exit, came.outcome) == (3, "needs_human"), came.report.reason
    run = came.report.run_id
    waiting = came.report.waiting
    assert waiting is not None and waiting.gate_id == "gate-revision"
    assert role in waiting.question and waiting.context == "the scope is not clear to me"
    steps = [one for one in stage.dispatches(run) if f"/{role}" in one]
    assert len(steps) == 2, steps
    timeline = [one for one in bundle_of(stage, run)["timeline"] if one["agent"] == role]
    assert [one["status"] for one in timeline] == ["NEEDS_REVISION", "NEEDS_REVISION"]
    assert stage.proofstone("approve", run, "gate-revision", "proceed").returncode == 0
    went_on = stage.resume(run)
    assert (went_on.outcome, went_on.report.confidence) == ("passed", "medium"), went_on.report.reason
    assert any(f"the {role} says NEEDS_REVISION" in one for one in went_on.report.gaps)


@pytest.mark.ci
def test_one_revision_settles_it(stage: Stage) -> None:
    came = stage.run(saying("NEEDS_REVISION", specifier(round=1)))
    assert (came.outcome, came.report.gaps) == ("passed", ()), came.report.reason
    assert [one for one in stage.dispatches(came.report.run_id) if "spec/" in one] == [
        "spec/r1/specifier",
        "spec/r2/specifier",
    ]


def test_an_open_critical_of_the_design_stops_the_commit(stage: Stage) -> None:
    """The code reviewers approve, and nobody says that the finding is resolved: they are asked again, then it ends."""
    came = stage.run(*critical_designs())
    assert (came.exit, came.outcome, came.report.confidence) == (1, "failed", "low"), came.report.reason
    assert came.report.commit is None and HOLE in came.report.reason
    criteria = [
        one["request"]["text"]
        for one in stage.messages(came.report.run_id, "Dispatch")
        if "code-review" in one["dispatch"]
    ]
    assert len(criteria) == 6 and all(HOLE in one for one in criteria)


@pytest.mark.ci
def test_a_critical_of_the_design_that_is_resolved_is_committed(stage: Stage) -> None:
    sees = reviewer("security", "code")
    sees["output"] = {**sees["output"], "resolved": [HOLE]}
    came = stage.run(*critical_designs(), sees)
    assert came.outcome == "passed", came.report.reason
    assert not any(issue.severity == "critical" for issue in came.report.known_issues)


def test_what_was_overridden_or_nobody_looked_at_is_in_bundle_and_confidence(stage: Stage) -> None:
    """A blocker that was overridden, and two researchers who said nothing."""
    blocker = {"severity": "blocker", "concern": "it breaks every client", "suggestion": "keep the old one"}
    unheard = failing("researcher", focus="impact"), babbling("researcher", focus="patterns")
    came = stage.run(specifier(blocker), *unheard, args=("--proceed-on-pushback",))
    assert (came.outcome, came.report.confidence) == ("passed", "medium"), came.report.reason
    wanted = ("it breaks every client", "research on impact", "research on patterns")
    reasons = " ".join(str(one) for one in came.report.reasons)
    bundle = bundle_of(stage, came.report.run_id)
    gaps = " ".join(one["text"] for one in bundle["gaps"])
    page = Path(came.report.bundle).read_text()
    for text in wanted:
        assert text in reasons and text in gaps and text in page, text
    assert all(one["rows"] for one in bundle["gaps"])


@pytest.mark.ci
def test_an_agent_that_runs_out_of_tool_calls_is_a_gap(stage: Stage) -> None:
    """A reviewer looks at one file again and again, until its calls are spent, and then approves."""
    looks = [{"tool": {"read": {"path": "shop/cart.py", "start": 1 + number % 2}}} for number in range(41)]
    tired = {**reviewer("security", "code"), "steps": looks}
    came = stage.run(tired)
    assert (came.outcome, came.report.confidence) == ("passed", "medium"), came.report.reason
    assert any("reviewer:security ran out of its" in one for one in came.report.gaps), came.report.gaps


def test_the_command_of_an_acceptance_criterion_is_run(stage: Stage) -> None:
    """The specification names how its criterion is seen. Nobody ran it before, and it fails: so does the task."""
    asks = specifier()
    criteria = [dict(one) for one in asks["output"]["acceptance_criteria"]]
    criteria[0]["test_method"] = "`python3 -c 'from shop.count import count_all'` exits 0"
    came = stage.run({**asks, "output": {**asks["output"], "acceptance_criteria": criteria}})
    assert came.outcome == "failed", came.report.reason
    reasons = [one.detail for one in came.report.gates[0].tasks[0].failures[0].reasons if one.check == "done"]
    assert reasons and "count_all" in reasons[0]
    assert came.report.commit is None


def test_the_audit_reads_the_parts_and_shows_what_was_caught(stage: Stage) -> None:
    """A lie about the verify command, and a path that leads out of the tree, both in the task gate."""
    lies = executor(body="return 2", attempt=1)
    lies["steps"] = [{"tool": {"read": {"path": "../../etc/passwd"}}}, *lies["steps"]]
    lies["output"] = {
        **lies["output"],
        "verification": {"command": "python3 -m unittest tests.test_count", "exit_code": 0},
    }
    came = stage.run(lies)
    assert came.outcome == "passed", came.report.reason
    audited = stage.proofstone("audit", came.report.run_id, "--json")
    found = json.loads(audited.stdout)
    assert audited.returncode == 1
    (escape, *_) = found["boundary_violations"]
    (lie, *_) = [one for one in found["anomalies"] if one["kind"] == "claim_mismatch"]
    assert (escape["rule"], escape["caught"]) == ("outside", "the tool call was refused")
    assert lie["run_id"] == came.report.gates[0].run_id and lie["caught"] == "the attempt was refused"
    shown = stage.proofstone("audit", "last").stdout  # the whole run, and not the part that began last
    assert "caught: the attempt was refused" in shown
    assert {one.caught for one in came.report.audit} >= {"the tool call was refused", "the attempt was refused"}
    bundle = bundle_of(stage, came.report.run_id)
    assert {one["kind"] for one in bundle["audit"]} >= {"boundary_violation", "claim_mismatch"}
    assert "**Caught**: the attempt was refused." in Path(came.report.bundle).read_text()


@pytest.mark.ci
def test_a_fix_has_its_prose_judged_by_the_reviewer(stage: Stage) -> None:
    """The short lane has no architect: what no check shows is a criterion of its reviewer, and named as judged so."""
    prose = planner(task("count", done=["The parser refuses an empty file"], relevant_context=[]))
    came = stage.run(prose, args=("--files", "shop/count.py"))
    assert (came.outcome, came.report.lane) == ("passed", "fix"), came.report.reason
    (result,) = came.report.tasks[0].criteria
    assert (result.status, result.judged_by) == ("judged", ("reviewer:correctness",))
    (asked,) = [one for one in stage.messages(came.report.run_id, "Dispatch") if "code-review" in one["dispatch"]]
    assert "The parser refuses an empty file" in asked["request"]["text"]


@pytest.mark.ci
def test_a_requirement_is_judged_by_the_reviewers_before_the_commit(stage: Stage) -> None:
    """It comes before the plan. The planner does not plan it, and one reviewer sees that: it is not committed."""
    first = stage.run(
        reviewer("correctness", "code", finding("The rate is not limited", "critical"), verdict="needs_revision"),
        args=("--mode", "interactive"),
    )
    run = first.report.run_id
    assert stage.proofstone("amend", run, "limit the rate").returncode == 0
    assert stage.proofstone("approve", run, "gate-post-research", "proceed").returncode == 0
    assert stage.resume(run).exit == 3
    assert stage.proofstone("approve", run, "gate-post-planning", "approve").returncode == 0
    came = stage.resume(run)
    if came.exit == 3:  # the revision is planned anew, and asked about
        assert came.report.waiting is not None
        stage.proofstone("approve", run, came.report.waiting.gate_id, "approve")
        came = stage.resume(run)
    assert (came.outcome, came.report.commit) == ("failed", None), came.report.reason
    asked = [one for one in stage.messages(run, "Dispatch") if "code-review" in one["dispatch"]]
    assert asked and all("added by the user: limit the rate" in one["request"]["text"] for one in asked)
    (added,) = bundle_of(stage, run)["requirements"]
    assert (added["text"], added["is_met"]) == ("limit the rate", False)
    assert "limit the rate" in Path(came.report.bundle).read_text()


@pytest.mark.parametrize("focus", FOCI[:1])
def test_a_run_in_which_all_goes_well_has_no_gaps(stage: Stage, focus: str) -> None:
    came = stage.run(reviewer(focus, "code"))
    assert (came.outcome, came.report.gaps, came.report.audit) == ("passed", (), ()), came.report.reason

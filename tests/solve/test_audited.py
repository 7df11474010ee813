"""What the auditor sees in runs of the control loop: one real run for each thing that it detects, and one that is
clean. It reads the record and writes nothing; what it has seen it tells the person."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from pydantic import JsonValue

from proofstone.agents.bus import MessageBus, NoRouteError
from proofstone.agents.models import DispatchKey
from proofstone.auditor.models import AuditFinding, AuditReport, Detection, ToolHealth
from proofstone.ledger.connection import ledger_path
from proofstone.ledger.sqlite import SqliteLedger
from tests.solve.stage import (
    COUNT,
    COUNTED,
    RIGHT,
    WRONG,
    Stage,
    executor,
    fails,
    is_there,
    perceiver,
    planner,
    runs,
    subtask,
    validator,
    writes,
)

ASKS = (perceiver(question="Which notes?", step="perceive"), perceiver("count them", step="perceive/2"))


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage.set_up(tmp_path / "stage")


def audited(stage: Stage) -> tuple[int, AuditReport]:
    done = stage.proofstone("audit", "last", "--json")
    assert done.stdout, done.stderr
    return done.returncode, AuditReport.model_validate_json(done.stdout)


def findings(report: AuditReport) -> tuple[AuditFinding, ...]:
    return (*report.boundary_violations, *report.drift_alerts, *report.anomalies)


def seen(report: AuditReport) -> list[tuple[Detection, str, str | None, str]]:
    return [(one.kind, one.rule, one.task, one.role) for one in findings(report)]


@contextmanager
def bus_of(stage: Stage, run_id: str) -> Iterator[MessageBus]:
    """The bus of the run, in the hands of somebody else."""
    with closing(SqliteLedger(ledger_path(stage.workshop.proofstone_home), "write")) as ledger:
        yield MessageBus(ledger, run_id)


def test_in_a_clean_run_nothing_is_found_and_nothing_is_written(stage: Stage) -> None:
    came = stage.solve(planner(subtask("count them", COUNTED, "it is a number")))
    assert came.status == "accepted"
    with closing(stage.ledger()) as ledger:
        before = ledger.head()
    code, report = audited(stage)
    assert (code, findings(report)) == (0, ())
    assert (report.tasks_observed, report.tool_health) == (1, {"write": ToolHealth(calls=1)})
    assert (
        stage.proofstone("audit").stdout.splitlines()[-2].startswith("0 findings  1 run, 1 task, 0 corrections a task")
    )
    with closing(stage.ledger()) as ledger:
        assert ledger.head() == before


@pytest.mark.ci
def test_honest_trouble_in_the_way_is_no_finding(stage: Stage) -> None:
    """A crash is a fault, and a question no end; where the engine could not look, nothing speaks against a claim."""
    stage.solve(
        *ASKS,
        planner(subtask("count them", runs("no-such-program-here notes.txt")), round=1),
        executor(attempt=1, round=1),
        {"role": "executor", "match": {"round": 1}, "steps": [{"error": {"kind": "crashed", "why": "it fell over"}}]},
    )
    assert stage.resume("last", "--answer", "those of today").status == "accepted"
    code, report = audited(stage)
    assert (code, seen(report)) == (0, [])
    (trend,) = report.convergence_health.trends
    assert (trend.corrections, trend.distances) == (1, (1.0, 0.0))


@pytest.mark.ci
def test_a_task_that_is_corrected_again_and_again_drifts(stage: Stage) -> None:
    """No subtask can be corrected five times: it is the task that drifts."""
    names = ("a.txt", "b.txt", "count.txt")
    came = stage.solve(
        planner(*(subtask(f"write {name}", is_there(name), sequence=n) for n, name in enumerate(names, 1))),
        *(executor(writes(name, "3\n"), task=f"*-s{n}", attempt=3) for n, name in enumerate(names, 1)),
        executor(status="failed", said="not yet"),
    )
    assert came.status == "accepted"
    code, report = audited(stage)
    assert code == 0, "it goes badly, and nobody has overstepped"
    assert seen(report) == [(Detection.DRIFT, "corrections", came.report.run_id, "executor")]
    (drift,) = report.drift_alerts
    assert drift.detail == "corrected 6 times" and len(drift.messages) == 6
    assert report.convergence_health.avg_corrections == 6.0


@pytest.mark.ci
def test_what_throws_its_approach_over_and_comes_no_nearer_thrashes_and_does_not_converge(stage: Stage) -> None:
    ways = {1: "write", 2: "run", 3: "edit"}
    plans = [planner(subtask(f"by {tool}", COUNTED, tools=[tool]), round=n) for n, tool in ways.items()]
    args = ("--policy", "gradient", "--max-replans", "3")
    came = stage.solve(*plans, executor(status="failed", said="it is not right"), args=args)
    assert came.directives == ["break_symmetry"] * 3 + ["abandon"]
    code, report = audited(stage)
    run_id = came.report.run_id
    assert code == 0
    assert seen(report) == [
        (Detection.DRIFT, "corrections", run_id, "executor"),
        (Detection.THRASHING, "break_symmetry", run_id, "controller"),
        (Detection.CONVERGENCE_FAILURE, "abandoned", run_id, "controller"),
    ]
    thrashing, abandoned = report.anomalies
    assert thrashing.detail == "the symmetry was broken 3 times and D did not fall below 1"
    assert "after 4 rounds in which D did not fall (1 → 1 → 1 → 1)" in abandoned.detail
    printed = stage.proofstone("audit").stdout
    assert f"{run_id}  1 → 1 → 1 → 1" in printed


@pytest.mark.ci
def test_what_was_given_up_with_something_done_did_not_converge_either(stage: Stage) -> None:
    first = subtask("look at the notes", "it says how many there are", tools=["read"])
    second = subtask("write the number down", COUNTED, sequence=2)
    came = stage.solve(
        planner(first, second),
        executor(said="three", task="*-s1"),
        executor(status="failed"),
        args=("--max-replans", "0"),
    )
    assert came.status == "partial"
    assert seen(audited(stage)[1]) == [
        (Detection.CONVERGENCE_FAILURE, "partial", came.report.run_id, "controller"),
    ]


@pytest.mark.ci
def test_what_was_called_completed_and_is_not_is_a_false_claim(stage: Stage) -> None:
    """Also where it was put right: the claim was wrong all the same. An opinion speaks against nobody."""
    came = stage.solve(
        planner(subtask("count them", "it is polite", COUNTED)),
        executor(WRONG, attempt=1),
        executor(RIGHT),
        validator(fails(), attempt=1),
    )
    assert came.status == "accepted"
    code, report = audited(stage)
    assert code == 1
    assert seen(report) == [(Detection.CLAIM_MISMATCH, "claim-mismatch", "r1-s1", "executor")]
    (wrong,) = report.anomalies
    assert wrong.detail == "claimed: completed; not met: `grep -qx 3 count.txt` exits 0"


def test_whoever_was_asked_and_never_answered_is_silent(stage: Stage) -> None:
    """Somebody hands work over while the run waits, and to that nobody answers, though the run goes on to its end."""
    run_id = stage.solve(*ASKS).report.run_id
    lost = DispatchKey(run_id=run_id, role="executor", step="lost", task="lost")
    with bus_of(stage, run_id) as bus:
        payload: dict[str, JsonValue] = {"dispatch": lost.id, "occasion": lost.model_dump(mode="json"), "task": "lost"}
        bus.publish("engine", "executor", "Dispatch", payload, message_id="lost/1")
        result = {"subtask_id": f"{run_id}-lost", "status": "completed"}
        bus.publish("executor", "agent_validator", "ExecutionResult", result, message_id="lost/2")
        bus.publish("meta_validator", "controller", "ReplanRequest", {"task_id": "another"}, message_id="lost/3")
    assert seen(audited(stage)[1]) == [], "while the run waits, anybody may still answer"
    assert stage.resume("last", "--answer", "those of today").status == "accepted"
    code, report = audited(stage)
    assert code == 0
    assert seen(report) == [
        (Detection.SILENT_ROLE, "no-answer", "lost", "executor"),
        (Detection.SILENT_ROLE, "no-answer", "lost", "agent_validator"),
        (Detection.SILENT_ROLE, "no-answer", "another", "controller"),
    ]


@pytest.mark.few(1, ci=2)
@pytest.mark.parametrize(
    ("sender", "recipient", "type", "rule"),
    [("executor", "planner", "SubTask", "off-route"), ("meta_validator", "person", "FinalResult", "final-result")],
)
@pytest.mark.seed("control-loop", "bus")
def test_a_message_off_the_routes_is_refused_and_reported(
    stage: Stage, sender: str, recipient: str, type: str, rule: str
) -> None:
    run_id = stage.solve(*ASKS).report.run_id
    with bus_of(stage, run_id) as bus, pytest.raises(NoRouteError):
        bus.publish(sender, recipient, type, {"task_id": run_id, "status": "accepted"}, message_id="m")
    came = stage.resume("last", "--answer", "those of today")
    assert came.status == "accepted"
    assert stage.said(run_id).count((sender, recipient, type)) == 0
    code, report = audited(stage)
    assert (code, seen(report)) == (1, [(Detection.BOUNDARY_VIOLATION, rule, None, sender)])
    (found,) = report.boundary_violations
    assert found.detail.startswith(f"{type} to {recipient} was refused: ")


def test_whoever_tries_the_fence_is_named(stage: Stage) -> None:
    """A tool that the plan does not name, one that nobody has, a path that leads out, a file that is secret."""
    (stage.root / ".env").write_text("KEY=1\n")
    tries = ({"run": {"command": "true"}}, {"web_search": {"query": "x"}}, {"read": {"path": "../../outside.txt"}})
    came = stage.solve(
        planner(subtask("write the number down", COUNTED, tools=["write"])),
        executor(*tries, {"read": {"path": ".env"}}, {"read": {"path": "nowhere.txt"}}, RIGHT),
    )
    assert came.status == "accepted"
    code, report = audited(stage)
    rules = ("unlisted", "unlisted", "outside", "secret")
    assert code == 1
    assert seen(report) == [(Detection.BOUNDARY_VIOLATION, rule, "r1-s1", "executor") for rule in rules]
    assert report.tool_health["read"] == ToolHealth(calls=3, errors=1, refusals=2)
    text = stage.proofstone("audit").stdout
    assert text.startswith("boundary violations:\n  boundary_violation unlisted  ")
    assert "4 findings  1 run, 1 task" in text


@pytest.mark.ci
def test_a_blocked_tool_is_out_of_bounds_in_the_next_round(stage: Stage) -> None:
    came = stage.solve(
        planner(subtask("write the number down", COUNTED, tools=["write"]), round=1),
        executor(WRONG, status="failed", round=1),
        planner(subtask("count the lines by a command", COUNTED, tools=["run"]), round=2),
        executor(RIGHT, {"run": {"command": "echo 3 > count.txt"}}, round=2),
        args=("--policy", "gradient"),
    )
    assert came.report.rounds[0].directive.blocked_tools == ("write",)
    assert came.status == "accepted", came.report.model_dump_json(indent=1)
    code, report = audited(stage)
    assert (code, seen(report)) == (1, [(Detection.BOUNDARY_VIOLATION, "unlisted", "r2-s1", "executor")])
    assert report.boundary_violations[0].detail.startswith("write was refused")


@pytest.mark.ci
def test_a_run_whose_budget_is_spent_came_to_no_good_end_until_it_goes_on(stage: Stage) -> None:
    stage.solve(planner(COUNT), args=("--budget", "requests=3"))
    assert seen(audited(stage)[1]) == [(Detection.CONVERGENCE_FAILURE, "budget_exhausted", None, "engine")]
    assert stage.resume("last", "--budget", "requests=100").status == "accepted"
    assert seen(audited(stage)[1]) == []

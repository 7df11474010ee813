"""Every detection, at its bound and just below it, on runs that are written down here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest
from pydantic import JsonValue

from proofstone.agents.models import DispatchKey, Envelope, RefusalRule, ToolResult
from proofstone.agents.roles.models.plan_gate_records import ClaimKind, LookupResult, RepositoryClaim
from proofstone.auditor.models import AuditFinding, AuditReport, Detection, ToolHealth
from proofstone.auditor.rules.detections import ObservedEvent, ObservedRun
from proofstone.auditor.rules.report import audit_runs, has_severe_findings
from proofstone.ledger.models import EventRow
from proofstone.plan_gate.models import FalseClaim
from tests.rows import each_row

Said = tuple[str, str, str, Mapping[str, JsonValue]]
Did = tuple[str, str | None, Mapping[str, JsonValue]]


def observed(*parts: Said | Did, run_id: str = "r1") -> ObservedRun:
    """Messages are (from, to, type, payload), events (type, task, payload); sequence numbers count from 1."""
    envelopes, events = [], []
    for seq, part in enumerate(parts, start=1):
        at = f"2026-01-01T00:00:{seq:02}Z"
        if len(part) == 4:
            sender, recipient, type, payload = part
            envelopes.append(
                Envelope(
                    id=f"m{seq}",
                    timestamp=at,
                    sender=sender,
                    recipient=recipient,
                    type=type,
                    payload=payload,
                    run_id=run_id,
                    seq=seq,
                )
            )
        else:
            event, task, payload = part
            events.append(ObservedEvent(seq, at, EventRow(run_id=run_id, task_id=task, type=event, payload=payload)))
    return ObservedRun(run_id, tuple(envelopes), tuple(events))


def report(*parts: Said | Did) -> AuditReport:
    return audit_runs([observed(*parts)], "r1")


def findings(found: AuditReport) -> Iterator[AuditFinding]:
    yield from (*found.boundary_violations, *found.drift_alerts, *found.anomalies)


def seen(*parts: Said | Did) -> list[tuple[Detection, str, str | None, str, tuple[int, ...]]]:
    """Kind, rule, task, role and rows of everything that is found."""
    return [(one.kind, one.rule, one.task, one.role, one.seqs) for one in findings(report(*parts))]


def dispatch(
    role: str, *, task: str | None = "t1", step: str = "t1/a1", focus: str | None = None, again: int = 1
) -> Said:
    occasion = DispatchKey(run_id="r1", role=role, step=step, task=task, focus=focus, dispatch=again)
    payload: dict[str, JsonValue] = {
        "dispatch": occasion.id,
        "occasion": occasion.model_dump(mode="json"),
        "task": task,
    }
    return "engine", occasion.agent, "Dispatch", payload


def answer(role: str, id: str, type: str = "Output") -> Said:
    return role, "engine", type, {"dispatch": id, "task": "t1"}


def tool(refused: RefusalRule | None = None, *, ok: bool = True, name: str = "read") -> Said:
    result = ToolResult(call_id="c", name=name, text="because\nof this", ok=ok, refused=refused)
    payload: dict[str, JsonValue] = {"dispatch": "d", "task": "t1", "result": result.model_dump(mode="json")}
    return "engine", "executor", "ToolResult", payload


def correction(task: str = "t1") -> Said:
    return "agent_validator", "executor", "CorrectionSignal", {"task_id": task}


def repair(role: str = "planner", task: str | None = None) -> Said:
    return "engine", role, "Repair", {"dispatch": "d", "text": "no", "repair": 1, "task": task}


def directive(word: str, distance: float, task: str = "t1") -> Said:
    return "controller", "planner", "PlanDirective", {"task_id": task, "directive": word, "loss": {"D": distance}}


# Of the control loop, whose task is the run.


def subtask(name: str, *, verifiable: str = "", plausible: str = "") -> Said:
    criteria: list[JsonValue] = [plausible] if plausible else []
    if verifiable:
        criteria.append({"criterion": verifiable, "mode": "verifiable", "command": "true"})
    payload: dict[str, JsonValue] = {"subtask_id": f"r1-{name}", "parent_task_id": "r1", "intent": "do it"}
    return "planner", "executor", "SubTask", {**payload, "sequence": 1, "success_criteria": criteria or ["done"]}


def executed(name: str, status: str = "completed") -> Said:
    return "executor", "agent_validator", "ExecutionResult", {"subtask_id": f"r1-{name}", "status": status}


def corrected(name: str) -> Said:
    return "agent_validator", "executor", "CorrectionSignal", {"subtask_id": f"r1-{name}", "attempt_number": 1}


def outcome(name: str, *gaps: Mapping[str, str]) -> Said:
    """What had failed after each attempt: criteria, and why."""
    trajectory: list[JsonValue] = [
        {"attempt": attempt, "failed_criteria": [{"criterion": one, "failure_class": of} for one, of in gap.items()]}
        for attempt, gap in enumerate(gaps, start=1)
    ]
    payload: dict[str, JsonValue] = {"subtask_id": f"r1-{name}", "parent_task_id": "r1", "gap_trajectory": trajectory}
    status = "failed" if gaps and gaps[-1] else "matched"
    return "agent_validator", "meta_validator", "SubTaskOutcome", {**payload, "status": status}


def final(status: str, distance: float = 0.0) -> Said:
    payload: dict[str, JsonValue] = {"task_id": "r1", "status": status, "loss": {"D": distance}, "summary": "no more"}
    return "controller", "person", "FinalResult", payload


def told(type: str) -> Said:
    return "meta_validator", "controller", type, {"task_id": "r1"}


def failed(attempt: int, *reasons: str, task: str = "t1") -> Did:
    found: list[JsonValue] = [{"check": reason, "detail": f"{reason} it is"} for reason in reasons]
    failure: JsonValue = {"attempt": attempt, "type": "VERIFY_FAILURE", "error": "no good", "reasons": found}
    return "task.failed", task, {"event": {"kind": "failed", "failure": failure}, "state": "FAILED"}


def checked(*mismatches: str) -> Did:
    return "task.checked", "t1", {"event": {"kind": "checked", "evidence": {"mismatches": list(mismatches)}}}


def held_against(agent: str = "researcher:resolve") -> Did:
    claim = RepositoryClaim(kind=ClaimKind.FILE, path="src/none.py")
    looked = LookupResult(claim=claim, holds=False, saw="there is no src/none.py")
    held = FalseClaim(agent=agent, iteration=2, about="U2", looked=looked)
    return "plan.held-against", None, held.model_dump(mode="json")


def finished(outcome: str) -> Did:
    return "run.finished", None, {"outcome": outcome, "reason": "so it is"}


REFUSED: Did = (
    "bus.refused",
    "t1",
    {"from": "executor", "to": "planner", "type": "Hint", "id": "m", "why": "executor may say nothing to planner"},
)
HONEST: tuple[Said | Did, ...] = (
    dispatch("executor"),
    tool(),
    repair("executor", "t1"),
    answer("executor", "t1/a1/executor"),
    failed(1, "tests:pytest"),
    checked(),
    ("controller", "person", "FinalResult", {"task_id": "t1", "status": "accepted"}),
    finished("passed"),
)

V, D, C, T, S, M = (
    Detection.BOUNDARY_VIOLATION,
    Detection.DRIFT,
    Detection.CONVERGENCE_FAILURE,
    Detection.THRASHING,
    Detection.SILENT_ROLE,
    Detection.CLAIM_MISMATCH,
)


def test_in_an_honest_run_nothing_is_found() -> None:
    assert seen(*HONEST) == []


def test_in_an_empty_run_nothing_is_found() -> None:
    found = report()
    assert list(findings(found)) == []
    assert (found.tasks_observed, found.period.start, found.convergence_health.avg_corrections) == (0, "", 0.0)


BOUNDARIES: list[tuple[str, Said | Did, list[tuple[str, str | None, str]]]] = [
    ("a message that the bus refused", REFUSED, [("off-route", "t1", "executor")]),
    (
        "a final result that the bus refused",
        ("bus.refused", None, {"from": "planner", "to": "person", "type": "FinalResult", "why": "no"}),
        [("final-result", None, "planner")],
    ),
    (
        "a message that was written past the bus",
        ("executor", "planner", "Hint", {"task": "t2"}),
        [("off-route", "t2", "executor")],
    ),
    (
        "a final result that is not the controller's",
        ("executor", "person", "FinalResult", {"task_id": "t1"}),
        [("final-result", "t1", "executor")],
    ),
    ("a tool that the role does not have", tool(RefusalRule.UNLISTED), [("unlisted", "t1", "executor")]),
    ("a path that leads out", tool(RefusalRule.OUTSIDE), [("outside", "t1", "executor")]),
    ("a path beyond the task", tool(RefusalRule.SCOPE), [("scope", "t1", "executor")]),
    ("a secret", tool(RefusalRule.SECRET), [("secret", "t1", "executor")]),
    ("arguments that are wrong", tool(RefusalRule.ARGUMENTS), []),
    ("a budget that is spent", tool(RefusalRule.BUDGET), []),
    ("an error of a tool", tool(ok=False), []),
]


@each_row(("part", "found"), [one[1:] for one in BOUNDARIES])
@pytest.mark.seed("control-loop", "auditor-detects")
def test_boundary_violations(part: Said | Did, found: list[tuple[str, str | None, str]]) -> None:
    assert seen(part) == [(V, rule, task, role, (1,)) for rule, task, role in found]


OTHERS: list[tuple[str, list[Said | Did], list[tuple[Detection, str, str | None, str, tuple[int, ...]]]]] = [
    ("four corrections", [correction()] * 4, []),
    ("five corrections", [correction()] * 5, [(D, "corrections", "t1", "executor", (1, 2, 3, 4, 5))]),
    ("five corrections of two tasks", [*[correction()] * 3, *[correction("t2")] * 2], []),
    (
        "corrections and repairs of one task count together",
        [*[correction()] * 3, *[repair("executor", "t1")] * 2],
        [(D, "corrections", "t1", "executor", (1, 2, 3, 4, 5))],
    ),
    ("repairs of one role without a task", [repair()] * 5, [(D, "corrections", None, "planner", (1, 2, 3, 4, 5))]),
    ("repairs of two roles without a task", [*[repair()] * 3, *[repair("designer")] * 2], []),
    (
        "corrections of the subtasks of one task count together, and so do repairs",
        [subtask("s1"), subtask("s2"), *[corrected("s1")] * 2, *[corrected("s2")] * 2, repair("executor", "s2")],
        [(D, "corrections", "r1", "executor", (3, 4, 5, 6, 7))],
    ),
    ("a run that passed", [finished("passed")], []),
    ("a run that failed", [finished("failed")], []),
    ("a run without budget", [finished("budget_exhausted")], [(C, "budget_exhausted", None, "engine", (1,))]),
    ("a run that was halted", [finished("halted")], [(C, "halted", None, "engine", (1,))]),
    ("a run that was abandoned", [finished("abandoned")], [(C, "abandoned", None, "engine", (1,))]),
    ("a run that goes on after it was halted", [finished("halted"), ("run.resumed", None, {})], []),
    ("a run that passed after it was halted", [finished("halted"), finished("passed")], []),
    (
        "a result that was abandoned",
        [("controller", "person", "FinalResult", {"task_id": "t1", "status": "abandoned"})],
        [(C, "abandoned", "t1", "controller", (1,))],
    ),
    (
        "a result that is only partial",
        [("controller", "person", "FinalResult", {"task_id": "t1", "status": "partial"})],
        [(C, "partial", "t1", "controller", (1,))],
    ),
    ("two failed attempts", [failed(1), failed(2)], []),
    ("three failed attempts", [failed(1), failed(2), failed(3)], [(C, "attempts", "t1", "executor", (1, 2, 3))]),
    ("three failed attempts of two tasks", [failed(1), failed(2), failed(1, task="t2")], []),
    ("the symmetry broken once", [directive("break_symmetry", 0.5)], []),
    (
        "the symmetry broken twice without D falling",
        [directive("break_symmetry", 0.5), directive("break_symmetry", 0.5)],
        [(T, "break_symmetry", "t1", "controller", (1, 2))],
    ),
    (
        "something else between the two",
        [directive("break_symmetry", 0.5), directive("refine", 0.6), directive("break_symmetry", 0.7)],
        [(T, "break_symmetry", "t1", "controller", (1, 3))],
    ),
    ("D fell in between", [directive("break_symmetry", 0.5), directive("break_symmetry", 0.4)], []),
    (
        "D fell in between and rose again",
        [directive("break_symmetry", 0.5), directive("refine", 0.4), directive("break_symmetry", 0.5)],
        [],
    ),
    (
        "after D fell it goes on without falling",
        [directive("break_symmetry", 0.5), directive("break_symmetry", 0.4), directive("break_symmetry", 0.4)],
        [(T, "break_symmetry", "t1", "controller", (2, 3))],
    ),
    (
        "the symmetry broken in two tasks",
        [directive("break_symmetry", 0.5), directive("break_symmetry", 0.5, "t2")],
        [],
    ),
    (
        "a dispatch without an answer when the run has ended",
        [dispatch("executor"), finished("passed")],
        [(S, "no-answer", "t1", "executor", (1,))],
    ),
    ("a dispatch without an answer so far", [dispatch("executor")], []),
    (
        "a dispatch without an answer that was made again",
        [dispatch("executor"), dispatch("executor", step="t1/a2")],
        [(S, "no-answer", "t1", "executor", (1,))],
    ),
    ("a dispatch that is begun anew after a crash", [dispatch("executor"), dispatch("executor")], []),
    (
        "a dispatch that was begun anew and is not answered either",
        [dispatch("executor"), dispatch("executor"), finished("passed")],
        [(S, "no-answer", "t1", "executor", (2,))],
    ),
    (
        "a dispatch with a fault",
        [dispatch("executor"), answer("executor", "t1/a1/executor", "Fault"), finished("passed")],
        [],
    ),
    (
        "the answer of another focus is none",
        [
            dispatch("reviewer", focus="security"),
            dispatch("reviewer", focus="tests"),
            answer("reviewer:tests", "t1/a1/reviewer/tests"),
            finished("passed"),
        ],
        [(S, "no-answer", "t1", "reviewer:security", (1,))],
    ),
    (
        "the answer to an earlier dispatch is none",
        [
            dispatch("executor"),
            answer("executor", "t1/a1/executor"),
            dispatch("executor", again=2),
            finished("passed"),
        ],
        [(S, "no-answer", "t1", "executor", (3,))],
    ),
    (
        "a result that nobody validated",
        [executed("s1"), finished("failed")],
        [(S, "no-answer", "s1", "agent_validator", (1,))],
    ),
    (
        "the outcome of another subtask is no answer",
        [executed("s1"), outcome("s2"), finished("passed")],
        [(S, "no-answer", "s1", "agent_validator", (1,))],
    ),
    (
        "a result that nobody validated before the next one came",
        [executed("s1"), executed("s1"), outcome("s1")],
        [(S, "no-answer", "s1", "agent_validator", (1,))],
    ),
    (
        "a result that was corrected, and then matched",
        [executed("s1"), corrected("s1"), executed("s1"), outcome("s1")],
        [],
    ),
    ("a result that may still be validated", [executed("s1")], []),
    ("a result in a run that was stopped", [executed("s1"), finished("needs_human")], []),
    (
        "results beside each other",
        [executed("s1"), executed("s2"), outcome("s2"), outcome("s1"), finished("passed")],
        [],
    ),
    (
        "a controller that decides nothing",
        [told("ReplanRequest"), finished("failed")],
        [(S, "no-answer", "r1", "controller", (1,))],
    ),
    (
        "the planner cannot decide in its place",
        [told("OutcomeSummary"), ("planner", "person", "FinalResult", {"task_id": "r1"}), finished("passed")],
        [(V, "final-result", "r1", "planner", (2,)), (S, "no-answer", "r1", "controller", (1,))],
    ),
    ("a controller that directs", [told("ReplanRequest"), directive("refine", 0.5, "r1"), finished("failed")], []),
    ("a controller that accepts", [told("OutcomeSummary"), final("accepted"), finished("passed")], []),
    (
        "a memory that says nothing",
        [("planner", "memory", "MemoryQuery", {"words": []}), finished("passed")],
        [(S, "no-answer", None, "memory", (1,))],
    ),
    (
        "a subtask that was called completed, and is not",
        [subtask("s1", verifiable="it runs"), executed("s1"), outcome("s1", {"it runs": "logical"})],
        [(M, "claim-mismatch", "s1", "executor", (2, 3))],
    ),
    (
        "one of two claims was wrong",
        [
            subtask("s1", verifiable="it runs"),
            *(executed("s1"), corrected("s1"), executed("s1")),
            outcome("s1", {"it runs": "logical"}, {}),
        ],
        [(M, "claim-mismatch", "s1", "executor", (2, 5))],
    ),
    (
        "a plain honest failure",
        [subtask("s1", verifiable="it runs"), executed("s1", "failed"), outcome("s1", {"it runs": "logical"})],
        [],
    ),
    (
        "something was in the way of the engine",
        [subtask("s1", verifiable="it runs"), executed("s1"), outcome("s1", {"it runs": "environmental"})],
        [],
    ),
    (
        "somebody else's opinion",
        [subtask("s1", plausible="it is kind"), executed("s1"), outcome("s1", {"it is kind": "logical"})],
        [],
    ),
    ("a claim that was wrong, and passed", [checked("it says so")], [(M, "claim-mismatch", "t1", "executor", (1,))]),
    (
        "a claim that was wrong, and failed",
        [failed(1, "tests:pytest", "claim-mismatch")],
        [(M, "claim-mismatch", "t1", "executor", (1,))],
    ),
    (
        "claims about a plan that were wrong, each with its author",
        [held_against(), held_against("challenger")],
        [(M, "claim-mismatch", None, "researcher:resolve", (1,)), (M, "claim-mismatch", None, "challenger", (2,))],
    ),
]


@each_row(("parts", "found"), [one[1:] for one in OTHERS])
@pytest.mark.seed("control-loop", "auditor-detects")
def test_what_else_is_found(
    parts: list[Said | Did], found: list[tuple[Detection, str, str | None, str, tuple[int, ...]]]
) -> None:
    assert seen(*parts) == found


def test_a_finding_names_its_messages_and_says_what_happened() -> None:
    (found,) = report(*[correction()] * 5).drift_alerts
    assert (found.run_id, found.messages) == ("r1", ("m1", "m2", "m3", "m4", "m5"))
    (refused,) = report(tool(RefusalRule.SECRET)).boundary_violations
    assert refused.detail == "read was refused: because"
    (wrong,) = report(held_against()).anomalies
    assert wrong.detail == "claimed for U2: src/none.py is there; seen: there is no src/none.py"


def test_a_finding_about_the_loop_says_what_happened() -> None:
    claims = [subtask("s1", verifiable="it runs"), executed("s1"), executed("s1")]
    wrong = {"it runs": "logical"}
    details = {one.kind: one.detail for one in report(*claims, outcome("s1", wrong, wrong)).anomalies}
    assert details[M] == "claimed 2 times: completed; not met: it runs"
    assert details[S] == "the ExecutionResult of executor has no answer, and the role was asked again"


@pytest.mark.parametrize(
    ("distances", "told"),
    [
        ((), "it was given up: no more"),
        ((0.5,), "it was given up: no more"),
        ((0.5, 0.5), "it was given up after 2 rounds in which D did not fall (0.5 → 0.5): no more"),
        ((0.75, 1, 0.5), "it was given up after 3 rounds in which D fell (0.75 → 1 → 0.5): no more"),
    ],
)
def test_what_was_given_up_tells_how_it_went(distances: tuple[float, ...], told: str) -> None:
    (found,) = report(*(directive("refine", one, "r1") for one in distances), final("abandoned", 0.5)).anomalies
    assert found.detail == told


@each_row(
    ("part", "grave"),
    [
        (REFUSED, True),
        (checked("it says so"), True),
        (held_against(), True),
        (finished("halted"), False),
        (finished("passed"), False),
    ],
)
def test_overstepping_is_grave_and_work_that_goes_badly_is_not(part: Did, grave: bool) -> None:
    assert has_severe_findings(report(part)) is grave


def test_the_health_of_each_tool_is_counted() -> None:
    found = report(tool(), tool(ok=False), tool(RefusalRule.ARGUMENTS, ok=False), tool(name="grep"))
    assert found.tool_health == {"grep": ToolHealth(calls=1), "read": ToolHealth(calls=3, errors=1, refusals=1)}


def test_corrections_are_averaged_over_tasks_and_distances_kept_by_round() -> None:
    health = report(*[correction()] * 3, correction("t2"), directive("refine", 0.5), directive("refine", 0.25))
    assert health.tasks_observed == 2
    assert health.convergence_health.avg_corrections == 2.0
    assert [(trend.task, trend.corrections, trend.distances) for trend in health.convergence_health.trends] == [
        ("t1", 3, (0.5, 0.25)),
        ("t2", 1, ()),
    ]


def test_subtasks_are_no_tasks_and_the_round_that_was_accepted_ends_the_trend() -> None:
    rounds = [subtask("s1"), executed("s1"), corrected("s1"), dispatch("executor", task="s1")]
    found = report(*rounds, directive("refine", 0.5, "r1"), final("accepted"))
    assert found.tasks_observed == 1
    assert [(one.task, one.corrections, one.distances) for one in found.convergence_health.trends] == [
        ("r1", 1, (0.5, 0.0))
    ]
    assert report(subtask("s1"), final("accepted")).convergence_health.trends == ()


def test_several_runs_make_one_report_and_are_not_mixed_up() -> None:
    runs = [observed(*[correction()] * 3, run_id="r1"), observed(*[correction()] * 3, REFUSED, run_id="r2")]
    found = audit_runs(runs, "all")
    assert found.drift_alerts == ()
    assert [one.run_id for one in found.boundary_violations] == ["r2"]
    assert (found.report_id, found.tasks_observed, found.period.runs) == ("audit-all-4", 2, 2)
    assert (found.period.start, found.period.end) == ("2026-01-01T00:00:01Z", "2026-01-01T00:00:04Z")
    assert found == audit_runs(runs, "all")


STRANGE: list[Mapping[str, JsonValue]] = [
    {},
    {"event": 1, "task": 2, "result": "x", "occasion": [], "loss": None, "outcome": {}},
    {"agent": "challenger", "iteration": "late", "about": None, "looked": {"claim": {"kind": "hearsay"}}},
    {"event": {"failure": {"reasons": "x"}, "evidence": {"mismatches": 5}}, "loss": {"D": "near"}, "task_id": None},
]


@pytest.mark.parametrize("payload", STRANGE)
def test_payloads_of_another_form_are_passed_over(payload: Mapping[str, JsonValue]) -> None:
    messages: list[Said] = [("engine", "executor", type, payload) for type in ("ToolResult", "Repair", "Dispatch")] + [
        ("controller", "planner", "PlanDirective", payload),
        ("controller", "person", "FinalResult", payload),
        ("planner", "executor", "SubTask", payload),
        ("executor", "agent_validator", "ExecutionResult", payload),
        ("agent_validator", "meta_validator", "SubTaskOutcome", payload),
    ]
    types = ("task.checked", "task.failed", "run.finished", "plan.held-against")
    events: list[Did] = [(type, "t1", payload) for type in types]
    assert {one.kind for one in findings(report(*messages, *events))} <= {Detection.SILENT_ROLE}


def test_the_fields_of_the_report_are_those_of_the_definition() -> None:
    assert list(AuditReport.model_fields) == [
        "report_id",
        "period",
        "tasks_observed",
        "boundary_violations",
        "convergence_health",
        "drift_alerts",
        "anomalies",
        "tool_health",
    ]

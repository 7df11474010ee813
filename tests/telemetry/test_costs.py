"""What a run has cost, counted from rows of the ledger."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from proofstone.agents.models import DispatchKey
from proofstone.common.models import Usage
from proofstone.errors import InputError
from proofstone.ledger.models import StepStatus
from proofstone.ledger.schema import LedgerRow
from proofstone.telemetry.costs import compute_run_cost
from proofstone.telemetry.models import Cost, RunCost
from tests.telemetry.rows import (
    GATE,
    OUTPUT,
    PLAN,
    REPAIR,
    RUN,
    Part,
    check,
    dispatch,
    event,
    fault,
    ledger_with,
    step,
    tool,
    turn,
)

PAID = Usage(requests=1, input_tokens=900, output_tokens=100, cache_read_tokens=300, usd=0.02)
UNPRICED = Usage(requests=1, input_tokens=50, output_tokens=5, usd=None)
SILENT = Usage(requests=1, usd=None)
PLANNER = DispatchKey(run_id=RUN, role="planner", step="plan/i1p1")


def cost(tmp_path: Path, *rows: LedgerRow) -> RunCost:
    with closing(ledger_with(tmp_path / "ledger.db", event(RUN, "run.started", command="run"), *rows)) as ledger:
        return compute_run_cost(ledger, RUN)


def figures(one: Cost) -> tuple[object, ...]:
    return one.requests, one.input_tokens, one.output_tokens, one.cache_read_tokens, one.usd


ONE_DISPATCH: Mapping[str, tuple[Sequence[Part], Mapping[str, object]]] = {
    "calls and tools are added up": (
        (turn(PAID, 2.0), tool(), turn(PAID, 1.0), OUTPUT),
        {"requests": 2, "tool_calls": 1, "seconds": 3.5, "input_tokens": 1800, "output_tokens": 200, "usd": 0.04},
    ),
    "what came from a cache is counted": ((turn(PAID), OUTPUT), {"cache_read_tokens": 300, "retries": 0}),
    "a call that ended in a fault costs what it used, and is a retry": (
        (fault(PAID, 4.0), turn(PAID), OUTPUT),
        {"requests": 2, "seconds": 5.0, "usd": 0.04, "retries": 1},
    ),
    "a fault that ended it was not made again": ((turn(PAID), fault()), {"retries": 0}),
    "a fault without a call is none": ((fault(seconds=0), turn(PAID), OUTPUT), {"retries": 0, "requests": 1}),
    "an answer that had to be mended is a retry": ((turn(PAID), REPAIR, turn(PAID), OUTPUT), {"retries": 1}),
    "a price that nobody knows is not nothing": (
        (turn(UNPRICED), OUTPUT),
        {"usd": None, "unpriced": 1, "input_tokens": 50},
    ),
    "a price that is known in part is told with what is missing": (
        (turn(PAID), turn(UNPRICED), OUTPUT),
        {"usd": 0.02, "unpriced": 1, "input_tokens": 950},
    ),
    "tokens that nobody has told are not none": (
        (turn(SILENT), OUTPUT),
        {"input_tokens": None, "output_tokens": None, "usd": None, "unmeasured": 1},
    ),
    "a call that is free and takes no tokens is known to be so": (
        (turn(Usage(requests=1, usd=0.0)), OUTPUT),
        {"input_tokens": 0, "usd": 0.0, "unmeasured": 0, "unpriced": 0},
    ),
    "one that was only begun has cost nothing yet": ((), {"dispatches": 1, "requests": 0, "usd": 0.0}),
}


@pytest.mark.parametrize(("parts", "expected"), ONE_DISPATCH.values(), ids=ONE_DISPATCH)
def test_what_one_dispatch_has_cost(tmp_path: Path, parts: Sequence[Part], expected: Mapping[str, object]) -> None:
    found = cost(tmp_path, *dispatch(PLANNER, *parts))
    assert found.total.dispatches == 1
    assert {name: getattr(found.total, name) for name in expected} == expected
    assert [one.cost for one in found.steps] == [found.total]


def test_each_call_is_on_the_account_of_the_model_that_made_it(tmp_path: Path) -> None:
    one, other = turn(PAID, model="openai:gpt-5"), turn(UNPRICED, model="ollama:qwen")
    found = cost(tmp_path, *dispatch(PLANNER, one, other, tool(), OUTPUT))
    assert [(line.role, line.model, *figures(line.cost)) for line in found.agents] == [
        ("planner", "openai:gpt-5", 1, 900, 100, 300, 0.02),
        ("planner", "ollama:qwen", 1, 50, 5, 0, None),
    ]
    assert found.agents[1].cost.tool_calls == 1, "whoever spoke last has called it"
    assert found.steps[0].models == ("openai:gpt-5", "ollama:qwen")


def test_a_dispatch_that_the_engine_made_again_is_two_and_one_retry(tmp_path: Path) -> None:
    again = PLANNER.model_copy(update={"dispatch": 2})
    found = cost(tmp_path, *dispatch(PLANNER, fault()), *dispatch(again, turn(PAID), OUTPUT))
    assert (found.total.dispatches, found.total.retries, found.dispatches) == (2, 1, 2)
    assert [(one.step, one.cost.dispatches, one.cost.retries) for one in found.steps] == [("plan/i1p1", 2, 1)]


def test_one_that_is_asked_on_after_a_crash_was_asked_once(tmp_path: Path) -> None:
    found = cost(tmp_path, *dispatch(PLANNER, turn(PAID)), dispatch(PLANNER)[0].model_copy(update={"message_id": "x"}))
    assert (found.total.dispatches, found.total.requests) == (1, 1)


def in_parts() -> list[LedgerRow]:
    challenger = DispatchKey(run_id=PLAN, role="challenger", step="plan/i1", focus="audit")
    executor = DispatchKey(run_id=GATE, role="executor", step="task-01/a1", task="task-01")
    second = executor.model_copy(update={"step": "task-01/a2", "attempt": 2})
    return [
        *dispatch(PLANNER, turn(PAID), OUTPUT),
        *step(RUN, "plan/i1p1", "planner", 0, 3),
        event(RUN, "run.child", run_id=PLAN, kind="plan", iteration=1),
        event(PLAN, "run.started", command="verify-plan"),
        *dispatch(challenger, turn(PAID), OUTPUT),
        event(PLAN, "run.finished", outcome="passed"),
        event(RUN, "run.child", run_id=GATE, kind="gate", iteration=1),
        event(GATE, "run.started", command="gate"),
        *step(GATE, "task-01/execute", "script:x", 5, 9),
        *dispatch(executor, turn(PAID), OUTPUT),
        *step(GATE, "task-01/check", "engine", 9, 11),
        check(GATE, "tests", 1500),
        check(GATE, "tests", 1500, reused_from=1),
        check(GATE, "review", None),
        *step(GATE, "task-01/execute", "script:x", 11, 14, retry=1),
        *dispatch(second, turn(UNPRICED), OUTPUT),
        event(GATE, "run.finished", outcome="failed"),
        event(RUN, "run.child", run_id="never-begun", kind="gate", iteration=2),
        event(RUN, "run.finished", outcome="failed"),
    ]


def test_a_run_is_the_sum_of_its_parts_and_of_its_steps(tmp_path: Path) -> None:
    found = cost(tmp_path, *in_parts())
    assert (found.command, found.outcome, found.running) == ("run", "failed", False)
    assert [(one.part, one.command, one.outcome, one.cost.dispatches) for one in found.parts] == [
        ("", "run", "failed", 1),
        ("plan 1", "verify-plan", "passed", 1),
        ("gate 1", "gate", "failed", 2),
    ]
    assert (found.dispatches, found.plan_gate_dispatches, found.total.dispatches) == (3, 1, 4)
    for every in (found.parts, found.steps, found.agents):
        assert sum(one.cost.requests for one in every) == found.total.requests == 4
        assert sum(one.cost.input_tokens or 0 for one in every) == found.total.input_tokens == 2750
        assert sum(one.cost.usd or 0 for one in every) == pytest.approx(found.total.usd or 0) == pytest.approx(0.06)
    assert (found.checks.runs, found.checks.reused, found.checks.seconds) == (1, 1, 1.5)


def test_the_steps_of_a_task_are_told_by_attempt_with_the_time_of_each(tmp_path: Path) -> None:
    found = cost(tmp_path, *in_parts())
    assert [(one.part, one.step, one.agent, one.instance, one.wall_seconds) for one in found.steps] == [
        ("", "plan/i1p1", "planner", "", 3.0),
        ("plan 1", "plan/i1", "challenger", "audit", None),
        ("gate 1", "task-01/a1", "executor", "", 4.0),
        ("gate 1", "task-01/a1", "engine", "", 2.0),
        ("gate 1", "task-01/a2", "executor", "", 3.0),
    ]
    assert [one.cost.retries for one in found.steps] == [0, 0, 0, 0, 1]


def test_a_step_that_was_cut_off_has_no_time_and_one_that_ended_later_has_its_own(tmp_path: Path) -> None:
    cut = cost(tmp_path, *step(RUN, "plan/i1p1", "planner", 0))
    assert [(one.status, one.wall_seconds) for one in cut.steps] == [(StepStatus.RUNNING, None)]
    (tmp_path / "again").mkdir()
    ended = cost(tmp_path / "again", *step(RUN, "plan", "planner", 0), *step(RUN, "plan", "planner", 60, 64))
    assert [(one.status, one.wall_seconds) for one in ended.steps] == [(StepStatus.DONE, 4.0)]


def test_what_a_program_of_the_persons_used_is_unknown_and_not_nothing(tmp_path: Path) -> None:
    gate = [event(RUN, "run.started", command="gate"), *step(RUN, "task-01/execute", "cmd:./agent.sh", 0, 5)]
    with closing(ledger_with(tmp_path / "ledger.db", *gate)) as ledger:
        found = compute_run_cost(ledger, RUN)
    assert (found.total.untold, found.total.usd, found.total.input_tokens) == (1, None, None)
    assert [(one.agent, one.wall_seconds) for one in found.steps] == [("executor", 5.0)]


def test_a_run_that_nobody_knows_is_refused(tmp_path: Path) -> None:
    with (
        closing(ledger_with(tmp_path / "ledger.db")) as ledger,
        pytest.raises(InputError, match="the ledger has no such run"),
    ):
        compute_run_cost(ledger, "another")

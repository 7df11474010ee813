"""What the terminal shows of a goal while it is pursued."""

from __future__ import annotations

import io
import os
import pty
import re

import pytest
from rich.console import Console

from proofstone.agents.roles.models.solve_messages import CriterionMode, DirectiveName, Gradient
from proofstone.cli.render.live_solve import LiveSolve
from proofstone.common.models import Allowance, BudgetUsage
from proofstone.solve.agents import SolveObserver, SolveStart
from tests.solve.reports import (
    FIRST,
    GOAL,
    HOSTILE,
    RUN,
    SECOND,
    SHOWN,
    directive,
    failed,
    loss,
    outcome,
    round,
    subtask,
)
from tests.waiting import run_side_by_side

ACCEPT = round(3, directive(DirectiveName.ACCEPT, loss(0.0), -0.001, Gradient.STABLE), outcome())


def console(*, terminal: bool = False) -> tuple[Console, io.StringIO]:
    """As the commands have it; what the variables of whoever runs the tests say of colours does not count."""
    file = io.StringIO()
    out = Console(
        file=file,
        width=200,
        force_terminal=terminal,
        color_system="standard" if terminal else None,
        markup=False,
        highlight=False,
        emoji=False,
        _environ={},
    )
    return out, file


def beginning(**said: object) -> SolveStart:
    agents = {"perceiver": "api:small", "planner": "api:large", "executor": "api:small"}
    body: dict[str, object] = {"goal": GOAL, "agents": agents, **said}
    return SolveStart(run_id=RUN, policy="patient", max_replans=3, time_budget_ms=300_000, **body)  # type: ignore[arg-type]


def test_a_run_is_told_line_by_line_where_there_is_no_terminal() -> None:
    out, file = console()
    live: SolveObserver = LiveSolve(out, interactive=False)
    live.on_run_started(beginning(notes=("there is no sandbox",)))
    live.on_agent_started("planner", "round 1")
    live.on_activity("planner", "reads the goal")
    live.on_agent_ended("planner", "2 subtasks", failed=False)
    live.on_plan_rejected(1, "it echoes the goal")
    live.on_plan_accepted(1, FIRST.subtasks)
    live.on_agent_started("executor", "write the greeting")
    live.on_agent_ended("executor", "no answer in 300 s", failed=True)
    live.on_message("executor", "who are you?")
    live.on_subtask_ended(FIRST.outcomes[0])
    live.on_round_ended(FIRST)
    live.on_plan_accepted(2, SECOND.subtasks)
    for one in SECOND.outcomes:
        live.on_subtask_ended(one)
    live.on_round_ended(SECOND)
    live.on_round_ended(ACCEPT)
    live.on_spending(BudgetUsage(requests=1))
    assert file.getvalue().splitlines() == [
        GOAL,
        f"run {RUN}",
        "perceiver, executor: api:small; planner: api:large",
        "policy patient, at most 3 replans and 300 s",
        "note: there is no sandbox",
        "  ✓ planner  2 subtasks",
        "  ! plan not taken: it echoes the goal",
        "round 1: 1 subtask",
        "  1. write the greeting",
        "  ✗ executor  no answer in 300 s",
        "  executor: who are you?",
        "  ✗ write the greeting: the test passes [looked up, logical]: exit 1",
        "round 1  D 1.00  P 1.00  ∇L +0.00  Ω 0.00  ⊥ plateau → refine",
        "  so it is refine",
        "round 2: 3 subtasks",
        "  1. write the greeting",
        "  2. say please",
        "  3. sign it",
        "  ✓ write the greeting",
        "  ✗ say please: it says please [judged, logical]: it says hey (and 1 more)",
        "round 2  D 0.50  P 1.00  ∇L -0.28  Ω 0.20  ↓ improving → break_symmetry",
        "  so it is break_symmetry",
        "  not again: grep",
        "round 3  D 0.00  P 0.50  ∇L +0.00  Ω 0.00  → stable → accept",
    ]


def test_a_merged_result_that_was_not_accepted_says_what_stands_against_it() -> None:
    out, file = console()
    decided = directive(DirectiveName.REFINE, loss(0.2))
    long = round(1, decided, outcome()).model_copy(update={"merged": (failed("it is short", "40 lines"),)})
    LiveSolve(out, interactive=False).on_round_ended(long)
    assert "  ✗ the merged result: it is short [looked up, logical]: 40 lines\n" in file.getvalue()


def test_a_round_without_a_plan_says_so() -> None:
    out, file = console()
    live = LiveSolve(out, interactive=False)
    live.on_subtask_ended(outcome(9, failed("there is a plan", "", mode=CriterionMode.VERIFIABLE)))
    live.on_subtask_ended(outcome(9, reason="the planner is gone"))
    assert file.getvalue().splitlines() == [
        "  ✗ a plan: there is a plan [looked up, logical]",
        "  ✗ a plan: the planner is gone",
    ]


def test_a_run_that_goes_on_says_so_and_a_long_goal_takes_a_line() -> None:
    out, file = console()
    LiveSolve(out, interactive=False).on_run_started(beginning(resumed=True, goal="x\n" * 5000))
    goal, run, *_ = file.getvalue().splitlines()
    assert run == f"run {RUN}, resumed"
    assert len(goal) <= 160 and goal.endswith("…")


def test_what_an_agent_wrote_drives_no_terminal() -> None:
    out, file = console(terminal=True)
    live = LiveSolve(out, interactive=True)
    bad = outcome(1, failed(HOSTILE, HOSTILE))
    decided = directive(DirectiveName.REFINE, loss(1.0), rationale=HOSTILE, blocked_tools=(HOSTILE,))
    with live.show_live():
        live.on_run_started(beginning(goal=HOSTILE, notes=(HOSTILE,), agents={"planner": HOSTILE}))
        live.on_agent_started("planner", HOSTILE)
        live.on_activity("planner", HOSTILE)
        out.print(live._render())
        live.on_message("planner", HOSTILE)
        live.on_agent_ended("planner", HOSTILE, failed=False)
        live.on_plan_rejected(1, HOSTILE)
        live.on_plan_accepted(1, (subtask(1, HOSTILE),))
        live.on_subtask_ended(bad)
        live.on_round_ended(round(1, decided, bad))
    text = file.getvalue()
    assert "\x1b[2J" not in text and "\r\n" not in text
    assert text.count(SHOWN) >= 11


def test_a_terminal_has_colours_and_a_row_for_each_agent_at_work() -> None:
    out, file = console(terminal=True)
    live = LiveSolve(out, interactive=True, allowance=Allowance(tokens=100_000))
    with live.show_live():
        live.on_agent_started("executor", "write the greeting")
        live.on_agent_started("executor", "say please")
        live.on_activity("executor", "grep please")
        live.on_spending(BudgetUsage(requests=2, input_tokens=3_000, usd=0.05))
        shown = io.StringIO()
        Console(file=shown, width=200).print(live._render())
        live.on_round_ended(SECOND)
    assert re.sub(r"\d+ s ", "N s ", shown.getvalue()).splitlines() == [
        "  executor N s  write the greeting",
        "  executor N s  grep please",
        "  2 model calls, 3.0k of 100.0k tokens, $0.05",
    ]
    assert "\x1b[32m  ↓ improving\x1b[0m\x1b[1;33m → break_symmetry\x1b[0m" in file.getvalue()


def test_of_a_long_intent_the_row_shows_the_beginning() -> None:
    out, _ = console(terminal=True)
    live = LiveSolve(out, interactive=False)
    live.on_agent_started("executor", "write the greeting " * 10)
    shown = io.StringIO()
    Console(file=shown, width=200).print(live._render())
    row = shown.getvalue().splitlines()[0]
    assert "s  write the greeting write" in row and row.endswith("…")


HIDDEN, SHOWN_AGAIN = "\x1b[?25l", "\x1b[?25h"


def test_rows_stay_until_the_last_of_those_with_one_name_has_answered() -> None:
    out, file = console(terminal=True)
    live = LiveSolve(out, interactive=True)
    live.on_agent_started("executor", "a")
    live.on_agent_started("executor", "b")
    live.on_agent_ended("executor", "done", failed=False)
    assert SHOWN_AGAIN not in file.getvalue()
    live.on_agent_ended("executor", "done", failed=False)
    assert file.getvalue().count(HIDDEN) == file.getvalue().count(SHOWN_AGAIN) == 1


def test_there_are_no_rows_where_a_person_serves_a_role() -> None:
    out, file = console(terminal=True)
    live = LiveSolve(out, interactive=True)
    live.on_run_started(beginning(agents={"executor": "human"}))
    with live.show_live():
        live.on_agent_started("executor", "a")
    assert HIDDEN not in file.getvalue()


def test_no_row_is_left_when_it_ends_in_the_middle() -> None:
    out, file = console(terminal=True)
    live = LiveSolve(out, interactive=True)
    with pytest.raises(KeyboardInterrupt), live.show_live():
        live.on_agent_started("planner", "round 1")
        raise KeyboardInterrupt
    assert file.getvalue().count(HIDDEN) == file.getvalue().count(SHOWN_AGAIN) == 1


def test_on_a_real_terminal_rows_come_and_go_and_the_lines_stay() -> None:
    master, slave = pty.openpty()
    with os.fdopen(slave, "w") as terminal:
        out = Console(file=terminal, width=100, markup=False, highlight=False, emoji=False, _environ={"TERM": "xterm"})
        live = LiveSolve(out, interactive=out.is_terminal)
        with live.show_live():
            live.on_agent_started("planner", "round 1")
            live.on_agent_ended("planner", "1 subtask", failed=False)
            live.on_round_ended(FIRST)
        terminal.write("the end")
        terminal.flush()
        shown = ""
        while not shown.endswith("the end"):
            shown += os.read(master, 65536).decode("utf-8", "replace")
    os.close(master)
    assert shown.count(HIDDEN) == shown.count(SHOWN_AGAIN) == 1
    assert "✓ planner  1 subtask" in shown and "→ refine" in shown


def test_agents_beside_each_other_wait_for_nobody_for_ever() -> None:
    out, file = console(terminal=True)
    live = LiveSolve(out, interactive=True)

    def work(agent: str) -> None:
        for number in range(50):
            live.on_agent_started(agent, "its subtask")
            live.on_activity(agent, f"step {number}")
            live.on_spending(BudgetUsage(requests=number))
            live.on_subtask_ended(outcome())
            live.on_agent_ended(agent, f"answer {number}", failed=False)

    with live.show_live():
        run_side_by_side(work, ["executor"] * 4)
    assert file.getvalue().count("✓ executor") == 200

"""What the terminal shows of a plan at the gate: while it is discussed, and at the end."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

from proofstone.agents.roles.models.plan_gate_records import ChallengeStatus, ConvergenceStatus, PlanQuality, TeamMode
from proofstone.cli.render.plan_gate import LivePlanGate, print_plan_report
from proofstone.common.models import Allowance, BudgetUsage
from proofstone.plan_gate.models import Complexity, OpenQuestion, PlanEvent, PlanEventKind, PlanReport
from proofstone.plan_gate.run import PlanGateObserver, PlanGateStart
from tests.plan_gate import reports
from tests.plan_gate.reports import BLOCKING, MINOR, OPEN, PLAN, RESOLVED, RUN, challenge, state
from tests.waiting import run_side_by_side

CONTINUE, CONVERGED = ConvergenceStatus.CONTINUE, ConvergenceStatus.CONVERGED


def console(*, terminal: bool = False) -> tuple[Console, io.StringIO]:
    file = io.StringIO()
    return Console(file=file, width=200, force_terminal=terminal, markup=False, highlight=False, emoji=False), file


def beginning(**said: object) -> PlanGateStart:
    agents = {"challenger": "api:small", "synthesizer": "api:large"}
    body: dict[str, object] = {"title": "A basket", "agents": agents, **said}
    return PlanGateStart(
        run_id=RUN,
        plan_path=PLAN,
        quality=PlanQuality.RICH,
        complexity=Complexity(steps=3, domains=1),
        team_mode=TeamMode.BASE,
        **body,  # type: ignore[arg-type]
    )


def test_a_discussion_is_told_line_by_line() -> None:
    out, file = console()
    live: PlanGateObserver = LivePlanGate(out, interactive=False)
    first = (challenge("C1", MINOR, claim="m"), challenge("C2", BLOCKING, claim="b"), challenge("C3", claim="s"))
    second = (first[0], first[1].model_copy(update={"status": RESOLVED}), first[2], challenge("C4", claim="new"))
    live.on_run_started(beginning())
    live.on_iteration_started(1)
    live.on_agent_started("challenger", "")
    live.on_activity("challenger", "reads the plan")
    live.on_agent_ended("challenger", "3 challenges", failed=False)
    live.on_agent_started("researcher:probe", "")
    live.on_agent_ended("researcher:probe", "no answer in 300 s", failed=True)
    live.on_spending(BudgetUsage(requests=1))
    live.on_iteration_ended(
        state(1, first, CONTINUE), first, [PlanEvent(iteration=1, kind=PlanEventKind.FAILURE, text="gone")]
    )
    live.on_iteration_started(2)
    live.on_iteration_ended(state(2, second, CONVERGED), second, [])
    assert file.getvalue().splitlines() == [
        "A basket: RICH, complexity 4, base team",
        f"run {RUN}",
        "challenger: api:small, synthesizer: api:large",
        "iteration 1 of 3",
        "  ✓ challenger  3 challenges",
        "  ✗ researcher:probe  no answer in 300 s",
        "  C2 BLOCKING OPEN  b",
        "  C3 SIGNIFICANT OPEN  s",
        "  C1 MINOR OPEN  m",
        "  ! failure: gone",
        "  1 blocking, 1 significant, 1 minor open → CONTINUE",
        "iteration 2 of 3",
        "  C2 BLOCKING OPEN → RESOLVED  b",
        "  C4 SIGNIFICANT OPEN  new",
        "  0 blocking, 2 significant, 1 minor open → CONVERGED",
    ]


@pytest.mark.parametrize(
    ("note", "said"),
    [("", "no agent is asked: the rules decide alone"), ("the plan is trivial", "the plan is trivial")],
)
def test_where_nobody_is_asked_it_is_said_why(note: str, said: str) -> None:
    out, file = console()
    LivePlanGate(out, interactive=False).on_run_started(beginning(agents={}, note=note, title=""))
    assert file.getvalue().splitlines() == [f"{PLAN}: RICH, complexity 4, base team", f"run {RUN}", said]


def test_what_an_agent_wrote_drives_no_terminal() -> None:
    out, file = console(terminal=True)
    live = LivePlanGate(out, interactive=True)
    hostile = "\x1b[2J[red]one\ntwo\r\ud803"
    with live.show_live():
        live.on_run_started(beginning(title=hostile))
        live.on_agent_started("challenger", "")
        live.on_activity("challenger", hostile)
        out.print(live._render())
        live.on_agent_ended("challenger", hostile, failed=False)
        one = challenge("C1", claim="\x1b[2J[red]one\ntwo\r")
        live.on_iteration_ended(
            state(1, (one,), CONTINUE), (one,), [PlanEvent(iteration=1, kind=PlanEventKind.TEAM, text="\x1b[2J")]
        )
    text = file.getvalue()
    assert "\x1b[2J" not in text
    assert "\\x1b[2J[red]one two \\ud803" in text
    assert "C1 SIGNIFICANT OPEN  \\x1b[2J[red]one two" in text


def test_a_terminal_has_a_row_for_each_agent_at_work_and_what_was_spent() -> None:
    out, file = console(terminal=True)
    live = LivePlanGate(out, interactive=True, allowance=Allowance(tokens=100_000))
    with live.show_live():
        live.on_agent_started("challenger", "")
        live.on_agent_started("domain_expert")
        live.on_activity("challenger", "x" * 100)
        live.on_activity("nobody", "is not at work")
        live.on_spending(BudgetUsage(requests=2, input_tokens=3_000, usd=0.05))
        shown = io.StringIO()
        Console(file=shown, width=200).print(live._render())
    assert re.sub(r"\d+ s ", "N s ", shown.getvalue()).splitlines() == [
        f"  challenger N s  …{'x' * 60}",
        "  domain_expert N s  ",
        "  2 model calls, 3.0k of 100.0k tokens, $0.05",
    ]
    assert "3.0k of 100.0k tokens" in file.getvalue()


HIDDEN, SHOWN = "\x1b[?25l", "\x1b[?25h"


def test_no_row_is_left_while_nobody_works() -> None:
    """A person may be typing then: the cursor is theirs."""
    out, file = console(terminal=True)
    live = LivePlanGate(out, interactive=True)
    live.on_agent_started("challenger", "")
    live.on_agent_started("domain_expert")
    live.on_agent_ended("challenger", "1 challenge", failed=False)
    assert SHOWN not in file.getvalue()
    live.on_agent_ended("domain_expert", "1 challenge", failed=False)
    assert file.getvalue().count(HIDDEN) == file.getvalue().count(SHOWN) == 1


def test_no_row_is_left_when_it_ends_in_the_middle() -> None:
    out, file = console(terminal=True)
    live = LivePlanGate(out, interactive=True)
    with pytest.raises(KeyboardInterrupt), live.show_live():
        live.on_agent_started("challenger", "")
        raise KeyboardInterrupt
    assert file.getvalue().count(HIDDEN) == file.getvalue().count(SHOWN) == 1


def test_agents_beside_each_other_wait_for_nobody_for_ever() -> None:
    out, file = console(terminal=True)
    live = LivePlanGate(out, interactive=True)

    def work(agent: str) -> None:
        for number in range(50):
            live.on_agent_started(agent)
            live.on_activity(agent, f"step {number}")
            live.on_spending(BudgetUsage(requests=number))
            live.on_agent_ended(agent, f"answer {number}", failed=False)

    with live.show_live():
        run_side_by_side(work, (f"agent-{number}" for number in range(4)))
    assert file.getvalue().count("✓ agent-") == 200


def printed(report: PlanReport, written: Path | None = None) -> list[str]:
    out, file = console()
    print_plan_report(out, report, written)
    return file.getvalue().splitlines()


LEDGER = f"  run {RUN}; `proofstone ledger show {RUN}` shows all of it"


def test_a_revision_shows_what_to_take_in_and_where_the_report_is() -> None:
    assert printed(reports.report(), Path("plans/basket/REPORT.md")) == [
        "open challenges:",
        f"  C2 SIGNIFICANT OPEN  {PLAN}:14  The plan assumes that basket C2 fits in a cookie",
        "    A cookie holds 4 KiB, and a basket with 60 lines is larger",
        "    mitigation: Write a migration for open baskets",
        "",
        "REVISE  nothing BLOCKING stands, and one or two SIGNIFICANT challenges",
        f"  next: take the mitigations into {PLAN}, then verify it again",
        "  report: plans/basket/REPORT.md",
        LEDGER,
    ]


def test_a_question_comes_with_its_options_and_the_command_that_answers() -> None:
    lines = printed(reports.waiting())
    at = lines.index("you are asked:")
    assert lines[at + 1 : at + 5] == [
        "  C1: Who may see a basket?",
        "    1. Its owner",
        "    2. Anybody",
        f'    proofstone verify-plan --resume {RUN} --answer "C1=…"',
    ]
    assert "A QUESTION IS WAITING  a BLOCKING challenge is UNRESOLVED: only the person can settle it" in lines


def test_a_good_plan_takes_a_line_and_its_evidence() -> None:
    assert printed(reports.proceed()) == ["", "PROCEED (rules alone)  nothing BLOCKING or SIGNIFICANT stands", LEDGER]


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (reports.strong, "  Strongly recommended: address these before proceeding"),
        (reports.rethink, "RETHINK  the last iteration, and a BLOCKING challenge stands"),
        (
            lambda: reports.report(debt_warning=True),
            "technical debt: five challenges or more were deferred; the report lists them",
        ),
        (
            lambda: reports.report(challenges=(challenge("C1", status=ChallengeStatus.DEFERRED_SURFACED),), lines={}),
            "  C1 SIGNIFICANT DEFERRED_SURFACED  The plan assumes that basket C1 fits in a cookie",
        ),
    ],
)
def test_how_it_ends_is_said(made: Callable[[], PlanReport], said: str) -> None:
    assert said in printed(made())


def test_nothing_in_the_report_drives_the_terminal() -> None:
    hostile = "\x1b[2Jone\ntwo"
    stands = challenge("C1", BLOCKING, OPEN, claim=hostile, concern=hostile, mitigation=hostile)
    question = OpenQuestion(challenge="C1", question=hostile, options=(hostile,))
    lines = printed(reports.report(challenges=(stands,), questions=(question,), next_step=hostile, reason=hostile))
    assert sum("\\x1b[2Jone two" in line for line in lines) == 7
    assert not any("\x1b" in line for line in lines)

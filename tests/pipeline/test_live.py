"""What the terminal shows of a feature while it goes through the pipeline."""

from __future__ import annotations

import io
import os
import pty
import re

import pytest
from rich.console import Console

from proofstone.cli.render.live_pipeline import LivePipeline
from proofstone.common.models import BudgetUsage, Phase
from proofstone.pipeline.journal import PipelineObserver
from tests.gate import views
from tests.pipeline.reports import BRANCH, BROKEN, CHECKS, COMMIT, HOSTILE, REQUEST, RUN, SHOWN, entry, setup
from tests.waiting import run_side_by_side

WHOLE = (
    "  research ×4 → approval → specification → design → design review ×3 → plan → plan gate → approval → tasks → "
    "whole cascade → code review ×3 → knowledge → commit"
)
HIDDEN, SHOWN_AGAIN = "\x1b[?25l", "\x1b[?25h"


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


def answers(live: PipelineObserver, *agents: str) -> None:
    for agent in agents:
        live.on_agent_started(agent, "its work")
    for agent in agents:
        live.on_agent_ended(agent, "done", failed=False)


def test_a_run_is_told_step_by_step_where_there_is_no_terminal() -> None:
    out, file = console()
    live: PipelineObserver = LivePipeline(out, interactive=False)
    live.on_run_started(RUN, setup(notes=("there is no sandbox",)), resumed=False)
    live.on_note("lane", "standard: no files are named")
    answers(live, "researcher:impact", "researcher:patterns")
    live.on_note("unheard", "research on patterns: no answer")
    live.on_approval(entry("proceed", gate="gate-post-research"))
    answers(live, "specifier")
    live.on_note("concern", "major: it breaks clients")
    answers(live, "designer")
    answers(live, "reviewer:security")
    live.on_note("review-gate", "design, round 1: revise: critical and open")
    answers(live, "designer")
    answers(live, "reviewer:security")
    answers(live, "planner")
    live.on_note("not-taken", "plan 1.1: too large")
    live.on_plan_gate_started(1)
    live.on_note("plan-gate", "plan 1.1: PROCEED")
    live.on_approval(entry(auto=False, said="fine"))
    live.on_note("plan", "1 tasks")
    live.on_task_gate_started(1).on_run_started(views.view({"Basket": ()}))
    live.on_checks_started().on_step("running 2 checks")
    live.on_checks_ended(BROKEN)
    live.on_note("direction", "iteration 1: D=0.50 P=1.00 ∇=+0.00 Ω=0.33 ⊥ refine: so it is")
    answers(live, "planner")
    live.on_checks_started()
    live.on_checks_ended(CHECKS)
    answers(live, "reviewer:security")
    answers(live, "knowledge")
    live.on_commit(COMMIT, BRANCH)
    assert file.getvalue().splitlines() == [
        REQUEST,
        f"run {RUN}",
        f"onto {BRANCH}, from bbbbbbbbbbbb, autonomous",
        "researcher: api:small; planner: api:large or cli:claude",
        "note: there is no sandbox",
        "  lane: standard: no files are named",
        WHOLE,
        "step 1 of 13: research ×4",
        "  ✓ researcher:impact  done",
        "  ✓ researcher:patterns  done",
        "  ! not heard: research on patterns: no answer",
        "  ✓ gate-post-research: proceed, by default",
        "step 3 of 13: specification",
        "  ✓ specifier  done",
        "  ! concern: major: it breaks clients",
        "step 4 of 13: design",
        "  ✓ designer  done",
        "step 5 of 13: design review ×3",
        "  ✓ reviewer:security  done",
        "  review gate: design, round 1: revise: critical and open",
        "step 4 of 13: design, again",
        "  ✓ designer  done",
        "step 5 of 13: design review ×3, again",
        "  ✓ reviewer:security  done",
        "step 6 of 13: plan",
        "  ✓ planner  done",
        "  ! not taken: plan 1.1: too large",
        "step 7 of 13: plan gate",
        "  plan gate: plan 1.1: PROCEED",
        "  ✓ gate-post-planning: approve, by a person: fine",
        "  plan: 1 tasks",
        "step 9 of 13: tasks",
        "A shop: 1 task, onto proofstone/a-shop",
        f"run {RUN}",
        "step 10 of 13: whole cascade",
        "running 2 checks …",
        "  ✗ the merged tree aaaaaaaaaaaa does not pass: 2 tests fail; 1 regression",
        "  direction: iteration 1: D=0.50 P=1.00 ∇=+0.00 Ω=0.33 ⊥ refine: so it is",
        "step 6 of 13: plan, again",
        "  ✓ planner  done",
        "step 10 of 13: whole cascade, again",
        "  ✓ all checks pass on the merged tree aaaaaaaaaaaa",
        "step 11 of 13: code review ×3",
        "  ✓ reviewer:security  done",
        "step 12 of 13: knowledge",
        "  ✓ knowledge  done",
        "step 13 of 13: commit",
        f"  ✓ committed cccccccccccc onto {BRANCH}",
    ]


def test_a_short_lane_has_its_own_picture_until_it_is_left() -> None:
    out, file = console()
    live = LivePipeline(out, interactive=False)
    live.on_note("lane", "fix: few files")
    answers(live, "planner")
    live.on_task_gate_started(1)
    live.on_checks_started()
    answers(live, "reviewer:correctness")
    live.on_note("lane", "standard: the plan has 2 tasks")
    answers(live, "researcher:impact")
    answers(live, "reviewer:security")
    steps = [line for line in file.getvalue().splitlines() if not line.startswith("  ✓")]
    assert steps == [
        "  lane: fix: few files",
        "  plan → task → whole cascade → code review ×1 → commit",
        "step 1 of 5: plan",
        "step 2 of 5: task",
        "step 3 of 5: whole cascade",
        "step 4 of 5: code review ×1",
        "  lane: standard: the plan has 2 tasks",
        WHOLE,
        "step 1 of 13: research ×4",
        "step 5 of 13: design review ×3",
    ]


def test_a_run_that_goes_on_tells_a_review_of_code_from_one_of_the_design() -> None:
    out, file = console()
    live = LivePipeline(out, interactive=False)
    live.on_run_started(RUN, setup(), resumed=True)
    live.on_note("plan", "1 tasks")
    answers(live, "reviewer:security")
    assert f"run {RUN}, resumed\n" in file.getvalue()
    assert "step 11 of 13: code review ×3\n" in file.getvalue()


SERVED = {
    "one for all": ({"planner": ("api:a",), "executor": ("api:a",)}, "all agents: api:a"),
    "one for a role": (
        {"reviewer:security": ("api:a",), "reviewer:correctness": ("api:a",), "planner": ("api:b",)},
        "reviewer: api:a; planner: api:b",
    ),
    "several for a role": (
        {"reviewer:security": ("api:a",), "reviewer:correctness": ("api:b",), "planner": ("api:b",)},
        "reviewer:security: api:a; reviewer:correctness, planner: api:b",
    ),
}


@pytest.mark.parametrize(("agents", "told"), SERVED.values(), ids=SERVED)
def test_who_serves_whom_is_said_in_a_line(agents: dict[str, tuple[str, ...]], told: str) -> None:
    out, file = console()
    LivePipeline(out, interactive=False).on_run_started(RUN, setup(agents=agents), resumed=False)
    assert file.getvalue().splitlines()[3] == told


def test_what_an_agent_wrote_drives_no_terminal() -> None:
    out, file = console()
    live = LivePipeline(out, interactive=False)
    live.on_run_started(
        RUN, setup(request=HOSTILE, notes=(HOSTILE,), branch=HOSTILE, agents={"a": (HOSTILE,)}), resumed=False
    )
    live.on_agent_started(HOSTILE, HOSTILE)
    live.on_activity(HOSTILE, HOSTILE)
    out.print(live._render())
    live.on_message("planner", HOSTILE)
    live.on_agent_ended(HOSTILE, HOSTILE, failed=True)
    for kind in ("lane", "concern", HOSTILE):
        live.on_note(kind, HOSTILE)
    live.on_approval(entry(HOSTILE, auto=False, said=HOSTILE, gate=HOSTILE))
    live.on_checks_ended(BROKEN.model_copy(update={"reason": HOSTILE}))
    live.on_commit(COMMIT, HOSTILE)
    text = file.getvalue()
    assert "\x1b" not in text and "\r" not in text
    assert text.count(SHOWN) >= 15


def test_the_rows_show_who_works_and_where_in_the_picture_it_is() -> None:
    out, _ = console(terminal=True)
    live = LivePipeline(out, interactive=False)
    live.on_agent_started("planner", "cuts it into tasks")
    live.on_activity("planner", "reads the design")
    live.on_spending(BudgetUsage(requests=2, input_tokens=3_000, usd=0.05))
    shown = io.StringIO()
    Console(file=shown, width=200).print(live._render())
    assert re.sub(r"\d+ s ", "N s ", shown.getvalue()).splitlines() == [
        "  planner N s  reads the design",
        "  2 model calls, 3.0k tokens, $0.05",
        "  … → design → design review ×3 → plan → plan gate → approval → tasks → whole cascade → …",
    ]


PARTS = {"plan gate": "plan_gate", "task gate": "gate", "cascade": "checking"}


def begin(live: LivePipeline, part: str) -> None:
    """As far as its own rows are shown."""
    if part == "gate":
        live.on_task_gate_started(1).on_run_started(views.view({"Basket": views.TO_REVIEW}))
    elif part == "plan_gate":
        live.on_plan_gate_started(1).on_agent_started("challenger", "")
    else:
        live.on_checks_started().on_start("tests", Phase.AFTER)


@pytest.mark.parametrize("part", PARTS.values(), ids=PARTS)
def test_rows_of_a_part_are_gone_when_we_are_told_something_else(part: str) -> None:
    out, file = console(terminal=True)
    live = LivePipeline(out, interactive=True)
    with live.show_live():
        live.on_agent_started("planner", "plan")
        live.on_agent_ended("planner", "done", failed=False)
        begin(live, part)
        assert (file.getvalue().count(HIDDEN), file.getvalue().count(SHOWN_AGAIN)) == (2, 1), "only its own are there"
        live.on_note("plan", "1 tasks")
        assert file.getvalue().count(SHOWN_AGAIN) == 2
        answers(live, "reviewer:security")
    assert file.getvalue().count(HIDDEN) == file.getvalue().count(SHOWN_AGAIN) == 3


@pytest.mark.parametrize("part", PARTS.values(), ids=PARTS)
def test_no_row_is_left_when_it_ends_in_the_middle_of_a_part(part: str) -> None:
    out, file = console(terminal=True)
    live = LivePipeline(out, interactive=True)
    with pytest.raises(KeyboardInterrupt), live.show_live():
        begin(live, part)
        raise KeyboardInterrupt
    assert file.getvalue().count(HIDDEN) == file.getvalue().count(SHOWN_AGAIN) == 1


def test_one_part_after_another_shows_its_own_rows() -> None:
    out, file = console(terminal=True)
    live = LivePipeline(out, interactive=True)
    with live.show_live():
        for part in PARTS.values():
            begin(live, part)
        live.clear_rows()
        assert file.getvalue().count(HIDDEN) == file.getvalue().count(SHOWN_AGAIN) == 3, "a person can be asked"


def test_there_are_no_rows_where_a_person_serves_a_role() -> None:
    out, file = console(terminal=True)
    live = LivePipeline(out, interactive=True)
    live.on_run_started(RUN, setup(agents={"planner": ("api:a", "human")}), resumed=False)
    with live.show_live():
        live.on_agent_started("planner", "plan")
        for part in PARTS.values():
            begin(live, part)
    assert HIDDEN not in file.getvalue()


def test_on_a_real_terminal_rows_come_and_go_and_the_lines_stay() -> None:
    master, slave = pty.openpty()
    with os.fdopen(slave, "w") as terminal:
        out = Console(file=terminal, width=100, markup=False, highlight=False, emoji=False, _environ={"TERM": "xterm"})
        live = LivePipeline(out, interactive=out.is_terminal)
        with live.show_live():
            answers(live, "planner")
            begin(live, "gate")
            live.on_commit(COMMIT, BRANCH)
        terminal.write("the end")
        terminal.flush()
        shown = ""
        while not shown.endswith("the end"):
            shown += os.read(master, 65536).decode("utf-8", "replace")
    os.close(master)
    assert shown.count(HIDDEN) == shown.count(SHOWN_AGAIN) == 2
    assert "✓ planner  done" in shown and "✓ committed cccccccccccc onto" in shown


def test_agents_beside_each_other_wait_for_nobody_for_ever() -> None:
    out, file = console(terminal=True)
    live = LivePipeline(out, interactive=True)

    def work(agent: str) -> None:
        for number in range(50):
            live.on_agent_started(agent, "its part")
            live.on_activity(agent, f"step {number}")
            live.on_spending(BudgetUsage(requests=number))
            live.on_agent_ended(agent, f"answer {number}", failed=False)

    with live.show_live():
        agents = ("researcher:impact", "researcher:patterns", "researcher:dependencies", "researcher:architecture")
        run_side_by_side(work, agents)
    assert file.getvalue().count("✓ researcher") == 200
    assert file.getvalue().count("research ×4\n") + file.getvalue().count("research ×4\x1b[0m\n") == 1

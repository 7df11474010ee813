"""What the terminal shows of a run: while it goes on, at its end, and afterwards."""

from __future__ import annotations

import io
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from proofstone.check.models import CheckKind, CheckLine
from proofstone.cli.render.gate import print_gate, print_status
from proofstone.cli.render.live_gate import LiveGate
from proofstone.cli.render.tables import print_runs
from proofstone.common.models import Phase, Verdict
from proofstone.gate.models import MustHaveResult, RunOutcome, RunView, TaskEvent
from proofstone.runtime.run_index import RunSummary
from tests.gate import views
from tests.gate.views import RUN, executed, failed, overridden, report, started, view
from tests.waiting import run_side_by_side


def console() -> tuple[Console, io.StringIO]:
    file = io.StringIO()
    return Console(file=file, width=200, markup=False, highlight=False, emoji=False), file


def terminal() -> tuple[Console, io.StringIO]:
    file = io.StringIO()
    return Console(file=file, width=200, force_terminal=True, markup=False, highlight=False), file


def shown(seen: RunView, outcome: RunOutcome) -> str:
    out, file = console()
    print_gate(out, report(seen, outcome), seen)
    return file.getvalue()


PASSED = view({"Prices": views.PASSED}, outcome=RunOutcome.PASSED)
FAILED = view(
    {"Prices": views.PASSED, "Basket": views.THRICE_FAILED},
    outcome=RunOutcome.FAILED,
    reason="failed: Basket (task-02)",
)


def test_a_run_that_passed_says_where_the_work_is() -> None:
    text = shown(PASSED, RunOutcome.PASSED)
    assert "task-01  APPROVED     1  medium      cccccccccccc  Prices\n" in text
    assert "PASSED\n  confidence medium\n" in text
    assert "merge them with: git merge --ff-only proofstone/a-shop\n" in text
    assert "state: plans/STATE.md; summary: plans/SUMMARY.md\n" in text
    assert "resume" not in text


def test_a_run_that_failed_says_why_and_what_can_be_done() -> None:
    text = shown(FAILED, RunOutcome.FAILED)
    assert "FAILED  failed: Basket (task-02)\n" in text
    assert "  task-02 Basket: attempt 3, VERIFY_FAILURE\n    2 tests fail\n    - tests (fail): shop fails\n" in text
    assert "evidence: proofstone ledger artifact dddddddddddd\n" in text
    assert f"    proofstone resume {RUN} --retry task-02   # try it again\n" in text
    assert f"    proofstone skip {RUN} task-02 --category" in text
    assert "resume with" not in text


def test_what_an_attempt_left_is_named_where_it_was_kept(tmp_path: Path) -> None:
    folder = tmp_path / ".proofstone" / RUN
    folder.mkdir(parents=True)
    (folder / "task-02.patch").write_text("x")
    seen = FAILED.model_copy(update={"repository": str(tmp_path)})
    assert f"what it left: git apply {folder / 'task-02.patch'}\n" in shown(seen, RunOutcome.FAILED)
    assert "what it left" not in shown(FAILED, RunOutcome.FAILED)


def test_a_run_that_waits_says_what_for_and_how_to_go_on() -> None:
    seen = view(
        {"Colour": ()},
        checkpoints=("Colour",),
        asks={"Colour": "which one?\nblue or red"},
        outcome=RunOutcome.NEEDS_HUMAN,
    )
    text = shown(seen, RunOutcome.NEEDS_HUMAN)
    assert "  task-01 Colour: which one?\n    blue or red\n" in text
    assert f'    proofstone done {RUN} task-01 --note "…"' in text
    assert f"when you have answered, resume with: proofstone resume {RUN}\n" in text


def test_a_budget_that_ran_out_is_gone_on_from() -> None:
    seen = view({"a": ()}, outcome=RunOutcome.BUDGET_EXHAUSTED, reason="5 minutes are over")
    assert f"  resume with: proofstone resume {RUN}\n" in shown(seen, RunOutcome.BUDGET_EXHAUSTED)


def test_must_haves_and_notes_are_shown() -> None:
    must = (MustHaveResult(what="a.py", holds=True), MustHaveResult(what="b.py", holds=False, detail="is not there"))
    seen = view({"a": views.PASSED}, must_haves=must, warnings=("hooks were skipped",))
    text = shown(seen, RunOutcome.FAILED)
    assert "must-haves:\n  ✓ a.py\n  ✗ b.py: is not there\n" in text
    assert "note: hooks were skipped\n" in text


def test_names_cannot_drive_the_terminal() -> None:
    text = shown(view({"\x1b[2Jx": (overridden(),)}, asks={"\x1b[2Jx": "\x1b[1m"}), RunOutcome.NEEDS_HUMAN)
    assert "\x1b" not in text
    assert "\\x1b[2Jx" in text


def test_status_shows_the_steps_of_what_is_under_way() -> None:
    out, file = console()
    print_status(out, view({"a": views.PASSED, "b": (started(), executed()), "c": ()}))
    text = file.getvalue()
    assert "1 of 3 passed, 0 failed, 1 under way, 1 pending; pass rate 100%, 1.0 attempts on average\n" in text
    assert "task-02 b\nGate Progress: [####----] Step 2/3\n  [x] Step 1: Executor    - SUCCESS (14:30:01)\n" in text
    assert "resume with" not in text


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"running": True}, "running"),
        ({"running": False, "outcome": RunOutcome.HALTED}, "halted"),
        ({"running": False, "interrupted": True}, "interrupted"),
    ],
)
def test_a_run_is_known_by_one_word(changes: dict[str, object], word: str) -> None:
    seen = view({"a": ()}).model_copy(update=changes)
    assert seen.state == word


def test_the_list_of_runs_shows_kind_state_repository_and_subject() -> None:
    gate = SimpleNamespace(command="gate", repository="/srv/shop", subject="plans/PLAN.md")
    check = SimpleNamespace(command="check", repository="/srv/shop", subject="tree 0123456789ab")
    at, details = "2026-02-26T14:30:00Z", {"tasks": 1, "passed": 0, "title": "A shop"}
    views: list[RunSummary[Any]] = [
        RunSummary(RUN, gate, "halted", "", at, at, details),
        RunSummary("other", check, "passed", "", at, at),
    ]
    out, file = console()
    print_runs(out, views)
    assert file.getvalue().splitlines() == [
        f"{RUN}  2026-02-26 14:30  gate   halted  shop  0/1  A shop  (plans/PLAN.md)",
        "other  2026-02-26 14:30  check  passed  shop  tree 0123456789ab",
    ]


def test_an_interrupted_run_says_how_to_go_on() -> None:
    out, file = console()
    print_status(out, view({"a": (started(),)}).model_copy(update={"running": False, "interrupted": True}))
    assert f"resume with: proofstone resume {RUN}\n" in file.getvalue()


def test_where_there_are_no_runs_it_says_how_to_start_one() -> None:
    out, file = console()
    print_runs(out, [])
    assert file.getvalue() == "no runs yet; `proofstone check`, `gate`, `verify-plan`, `solve` and `run` start one\n"


def follow(live: LiveGate, events: tuple[TaskEvent, ...]) -> None:
    """The run as it goes on, event by event."""
    live.on_run_started(view({"Prices": ()}))
    for count in range(1, len(events) + 1):
        live.on_task_changed(view({"Prices": events[:count]}), "task-01")


def test_every_event_has_its_line_where_there_is_no_terminal() -> None:
    out, file = console()
    live = LiveGate(out, interactive=False)
    with live.show_live():
        follow(live, (started(), executed(), failed()))
    assert file.getvalue().splitlines() == [
        "A shop: 1 task, onto proofstone/a-shop",
        f"run {RUN}",
        "▶ task-01 Prices  attempt 1 of 3",
        "  task-01 Prices  executed, now the checks",
        "✗ task-01 Prices  attempt 1: VERIFY_FAILURE: 2 tests fail (will be tried again)",
    ]


def test_another_attempt_begins_with_how_it_is_to_go_about_it() -> None:
    out, file = console()
    follow(LiveGate(out, interactive=False), views.directed_failures(2))
    second, third = [line for line in file.getvalue().splitlines() if line.startswith("  task-01: ")]
    assert second.startswith("  task-01: D=0.50 P=1.00 ∇=+0.00 Ω=0.00 ⊥ refine: the first round")
    assert third.startswith("  task-01: D=0.50 P=1.00 ∇=+0.00 Ω=0.30 ⊥ break_symmetry: a local minimum")


def test_a_failure_is_shown_with_its_direction_and_the_way_of_the_loss() -> None:
    text = shown(view({"Prices": views.directed_failures(2)}), RunOutcome.FAILED)
    assert "    D=0.50 P=1.00 ∇=+0.00 Ω=0.30 ⊥ break_symmetry: a local minimum" in text
    assert "    loss so far: 0.60 ⊥ → 0.63 ⊥\n" in text
    assert "loss so far" not in shown(FAILED, RunOutcome.FAILED), "it was recorded before there was a controller"


def test_what_blocks_a_task_is_told() -> None:
    out, file = console()
    follow(LiveGate(out, interactive=False), views.BLOCKED)
    assert "✗ task-01 Prices  blocked: there is no compiler\n" in file.getvalue()


def test_an_event_is_told_once() -> None:
    out, file = console()
    live = LiveGate(out, interactive=False)
    live.on_run_started(view({"Prices": (started(),)}))
    live.on_task_changed(view({"Prices": (started(), executed())}), "task-01")
    live.on_task_changed(view({"Prices": (started(), executed())}), "task-01")
    assert "▶" not in file.getvalue()
    assert file.getvalue().count("executed, now the checks") == 1


def test_a_commit_and_an_override_are_told() -> None:
    out, file = console()
    follow(LiveGate(out, interactive=False), views.PASSED)
    follow(LiveGate(out, interactive=False), (overridden(),))
    assert "✓ task-01 Prices  committed cccccccccccc\n" in file.getvalue()
    assert "! task-01 Prices  skipped, unverified\n" in file.getvalue()


def line(verdict: Verdict) -> CheckLine:
    return CheckLine(
        name="tests",
        kind=CheckKind.TESTS,
        tier=2,
        verdict=verdict,
        baseline=None,
        duration_ms=5,
        reused=False,
        required=True,
        decides=True,
        reason="2 fail",
        command="pytest",
        assurance=None,
        tests=3,
        seq=None,
        artifact=None,
    )


def test_only_checks_that_do_not_pass_are_told() -> None:
    out, file = console()
    checks = LiveGate(out, interactive=False).on_checks_started("task-01")
    checks.on_check_judged(line(Verdict.PASS))
    checks.on_check_judged(line(Verdict.FAIL))
    assert file.getvalue() == "  task-01: tests fail: 2 fail\n"


def test_a_terminal_shows_bars_while_threads_report() -> None:
    """And nobody waits for anybody for ever: the bars are drawn by a thread of their own."""
    out, file = terminal()
    live = LiveGate(out, interactive=True)
    seen = view({f"t{number}": (started(), executed()) for number in range(1, 5)})

    def work(id: str) -> None:
        checks = live.on_checks_started(id)
        for _ in range(50):
            live.on_task_changed(seen, id)
            checks.on_start("tests", Phase.AFTER)
            checks.on_output("tests", Phase.AFTER, b"half way\n")
            live.on_output(id, b"\x1b[2Jtyping\n")
            live.on_message(id, "a word")
            checks.on_end("tests", Phase.AFTER, reused=False)

    with live.show_live():
        live.on_run_started(seen)
        run_side_by_side(work, (f"task-{number:02}" for number in range(1, 5)))
    text = file.getvalue()
    assert "[####----] task-01" in text
    assert "0 of 4 passed" in text
    assert "\x1b[2J" not in text


def test_half_a_character_in_what_is_being_done_breaks_no_view() -> None:
    out, file = terminal()
    live = LiveGate(out, interactive=True)
    with live.show_live():
        live.on_run_started(view({"Prices": (started(),)}))
        live.on_task_changed(view({"Prices": (started(),)}), "task-01")
        live.on_activity("task-01", "▸ tool\ud803")
        out.print(live._render())
    assert "▸ tool?" in file.getvalue()


def test_where_a_person_types_there_are_no_bars() -> None:
    out, file = terminal()
    live = LiveGate(out, interactive=True, can_ask_here=True)
    with live.show_live():
        live.on_run_started(view({"Prices": (started(),)}).model_copy(update={"executor": "human"}))
        live.on_message("task-01", "it is yours")
    assert "0 of 1 passed" not in file.getvalue()
    assert "task-01: it is yours" in file.getvalue()

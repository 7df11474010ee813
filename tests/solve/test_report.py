"""What came of a goal, as it is printed and as a page."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

from proofstone.agents.roles.models.solve_messages import DirectiveName, FinalStatus, TaskSpec
from proofstone.cli.render.solve import print_solve_report
from proofstone.cli.render.solve_page import fence_block, render_markdown
from proofstone.solve.models import SolveReport
from tests.solve import reports
from tests.solve.reports import FIRST, GOAL, HOSTILE, RUN, SHOWN, directive, loss, outcome, result, round

LEDGER = f"run {RUN}; `proofstone ledger show {RUN}` shows all of it"
COST = "cost: agents asked 7 times, 12 model calls, 3.0k tokens, $0.05, 41.0 s"


def printed(report: SolveReport, *, plot: bool = False, written: Path | None = None) -> list[str]:
    file = io.StringIO()
    print_solve_report(Console(file=file, width=80, markup=False, highlight=False, emoji=False), report, plot, written)
    return file.getvalue().splitlines()


def test_what_was_accepted_comes_with_its_result_its_rounds_and_how_to_take_it_in() -> None:
    assert printed(reports.accepted(), written=Path("report.md")) == [
        "ACCEPTED  it says please now  (2 rounds, 41.0 s)",
        f"asked for: {GOAL}",
        "",
        "the result:",
        "Hello, please.",
        "Thank you.",
        "",
        "  round  L     D     P     Ω     ∇L     ∇      direction    then    after",
        "  1      0.90  1.00  1.00  0.00  +0.00  +0.00  ⊥ plateau    refine  12.3 s",
        "  2      0.21  0.00  0.50  0.25  -0.55  +0.00  ↓ improving  accept  24.7 s",
        "",
        "changed:",
        "  ~ greeting.py",
        "  - old.py",
        "  + new.py",
        "  nothing is committed, and your files are unchanged; to apply the patch: "
        "git -C /srv/shop apply '/srv/state/solve/my run.patch'",
        "",
        "memory: 2 entries written; `proofstone memory list` shows all of it",
        COST,
        "report: report.md",
        LEDGER,
    ]


def test_what_was_abandoned_comes_with_what_was_done_and_what_to_do_now() -> None:
    lines = printed(reports.partial())
    assert lines[0] == "PARTIAL  half of it  (3 rounds, 41.0 s)"
    text = "\n".join(lines)
    for part in (
        "done, and can be used:\n  the greeting is written\n",
        "what you could do now:\n  say please yourself\n  try another model\n",
        "what failed:\n  say please: it says please [judged, logical]: it says hey\n"
        "  say please: the test passes [looked up, logical]: exit 1\n",
        "plans that were not taken:\n  round 2: it repeats the plan before it\n",
        "notes:\n  there is no sandbox\n",
    ):
        assert part in text
    assert "changed:" not in text and "memory:" not in text and "the result:" not in text


def test_a_question_comes_with_the_command_that_answers() -> None:
    assert printed(reports.waiting()) == [
        "A QUESTION IS WAITING  (0 rounds, 41.0 s)",
        f"asked for: {GOAL}",
        "",
        "you are asked: Which greeting?",
        "",
        f'next: proofstone solve --resume {RUN} --answer "…"',
        COST,
        LEDGER,
    ]


def test_what_was_answered_is_shown_below_what_was_asked_for() -> None:
    spec = TaskSpec(task_id="t", intent="i", raw_input=GOAL, clarification="the German one")
    assert printed(reports.accepted(task=spec))[1:3] == [f"asked for: {GOAL}", "and answered: the German one"]


def test_a_rejected_merge_is_what_failed() -> None:
    decided = directive(DirectiveName.ABANDON, loss(0.5))
    long = round(1, decided, outcome()).model_copy(update={"merged": (reports.failed("it is short", "40 lines"),)})
    lines = printed(reports.report(result=result(FinalStatus.PARTIAL), rounds=(long,)))
    assert lines[lines.index("what failed:") + 1] == "  the merged result: it is short [looked up, logical]: 40 lines"


def test_a_round_without_a_plan_is_what_failed() -> None:
    nothing = round(1, directive(DirectiveName.ABANDON, loss(1.0)), outcome(9, reason="there is no plan: gone"))
    lines = printed(reports.report(result=result(FinalStatus.ABANDONED), rounds=(nothing,)))
    assert lines[lines.index("what failed:") + 1] == "  there is no plan: gone"


def test_what_crashed_says_why_once_and_not_for_each_criterion() -> None:
    crash = "crashed: it fell over"
    fallen = outcome(1, reports.failed("the test passes", crash), reports.failed("it is polite", crash), reason=crash)
    last = round(1, directive(DirectiveName.ABANDON, loss(1.0)), fallen)
    lines = printed(reports.report(result=result(FinalStatus.ABANDONED), rounds=(last,)))
    assert [line for line in lines if crash in line] == [f"  write the greeting: {crash}"]


def test_a_plan_that_a_planner_insists_on_is_one_line() -> None:
    insists = ("round 1: it uses grep", "round 1: it uses grep", "round 2: it uses grep")
    lines = printed(reports.partial(rejected=insists))
    assert "  round 1: it uses grep (2 times)" in lines and "  round 2: it uses grep" in lines
    assert "- round 1: it uses grep (2 times)" in render_markdown(reports.partial(rejected=insists)).splitlines()


def test_changes_that_were_not_accepted_say_so() -> None:
    kept = {"changed": reports.accepted().changed, "patch": "/srv/state/a.patch"}
    take = "nothing is committed, and your files are unchanged; to apply the patch anyway:"
    assert f"  this was not accepted; {take} git -C /srv/shop apply /srv/state/a.patch" in printed(
        reports.partial(**kept)
    )
    page = render_markdown(reports.partial(**kept))
    assert f"This was not accepted; {take} `git -C /srv/shop apply /srv/state/a.patch`" in page


def test_what_is_no_text_is_shown_as_json() -> None:
    lines = printed(reports.accepted(result=result(output={"greeting": ["é"]})))
    assert lines[lines.index("the result:") + 1 :][:5] == ["{", '  "greeting": [', '    "é"', "  ]", "}"]


def test_long_lists_and_long_goals_do_not_fill_the_screen() -> None:
    spec = TaskSpec(task_id="t", intent="i", raw_input="all of it\n" * 1000)
    lines = printed(reports.accepted(task=spec, rejected=tuple(f"plan {number}" for number in range(50))))
    assert len(lines[1]) < 420 and lines[1].endswith("…")
    assert "  … and 30 more" in lines and "  plan 19" in lines and "  plan 20" not in lines


def test_the_plot_is_below_the_rounds_if_asked_for() -> None:
    assert "the loss, round by round:" in printed(reports.partial(), plot=True)
    assert "the loss, round by round:" not in printed(reports.partial())


def test_nothing_in_the_report_drives_the_terminal() -> None:
    text = "\n".join(printed(reports.hostile(), plot=True))
    assert "\x1b" not in text and "\r" not in text
    assert text.count(SHOWN) >= 9
    assert "\\x1b[2J[red]<script>one\ntwo" in text, "the result has line breaks of its own, and nothing else"


# The page.


MADE: dict[str, Callable[[], SolveReport]] = {
    "accepted": reports.accepted,
    "partial": reports.partial,
    "waiting": reports.waiting,
    "hostile": reports.hostile,
}


@pytest.mark.parametrize("name", MADE)
def test_a_page_has_one_heading_and_no_section_that_is_empty(name: str) -> None:
    page = render_markdown(MADE[name]())
    outside = re.sub(r"^(`{3,}).*?^\1$", "", page, flags=re.MULTILINE | re.DOTALL)
    assert [line for line in outside.splitlines() if line.startswith("# ")] == ["# Control loop"]
    assert "\n\n\n" not in page and page.endswith("\n") and not page.endswith("\n\n")
    assert not re.search(r"^## .*\n\n(## |\Z)", outside, flags=re.MULTILINE)


def test_a_page_has_the_rounds_with_their_subtasks_and_what_failed() -> None:
    page = render_markdown(reports.partial())
    for line in (
        "**PARTIAL** after 3 rounds, 41.0 s: half of it",
        "| 2 | 0.62 | 0.50 | 1.00 | 0.20 | -0.28 | -0.30 | ↓ improving | break_symmetry | 24.7 s |",
        "- matched: write the greeting (sequence 1)",
        "- failed: say please (sequence 2)",
        "  - failed: it says please \\[judged, logical\\]: it says hey",
        "- not begun: sign it (sequence 3)",
        "  - wanted: the test passes (verifiable, by `pytest -q`)",
        "- decided: **break_symmetry** (∇ -0.30): so it is break_symmetry",
        "- not again: `grep`",
        "- say please yourself",
    ):
        assert line in page.splitlines(), line


def test_a_page_says_how_to_take_the_changes_in_and_how_to_answer() -> None:
    page = render_markdown(reports.accepted())
    assert "- modified: `greeting.py`" in page
    take = "Nothing is committed, and your files are unchanged; to apply the patch:"
    assert f"{take} `git -C /srv/shop apply '/srv/state/solve/my run.patch'`" in page
    assert "- asked: planner: `api:large`; executor: `api:small`" in page
    assert f'Answer with `proofstone solve --resume {RUN} --answer "…"`' in render_markdown(reports.waiting())


def test_a_round_without_a_plan_is_on_the_page() -> None:
    nothing = round(1, FIRST.directive, outcome(9, reason="there is no plan: it is gone"), subtasks=())
    assert "- there is no plan: it is gone" in render_markdown(reports.report(rounds=(nothing,))).splitlines()


def test_what_an_agent_wrote_stays_text_on_the_page() -> None:
    page = render_markdown(reports.hostile())
    assert "\x1b" not in page and "\r" not in page
    fences = re.compile(r"^(`{3,})text\n.*?^\1$", flags=re.MULTILINE | re.DOTALL)
    assert len(fences.findall(page)) == 3, "what was asked for, the result and the plot"
    outside = re.sub(r"(`+).*?(?<!`)\1(?!`)", "", fences.sub("", page))
    assert "<script>" not in outside.replace("\\<script\\>", ""), "a tag outside of code is escaped"


@pytest.mark.parametrize("text", ["plain", "```\n# not a heading", "`````", HOSTILE])
def test_no_line_of_a_text_closes_its_fence(text: str) -> None:
    first, *inside, last = fence_block(text).split("\n")
    assert first == f"{last}text" and set(last) == {"`"} and len(last) >= 3
    assert not any(last in line for line in inside)

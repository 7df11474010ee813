"""What is asked at an approval gate on a terminal, and what is made of what is typed."""

from __future__ import annotations

import io
from collections.abc import Sequence

from rich.console import Console

from proofstone.cli.approval_questions import ApprovalQuestions
from proofstone.pipeline.models.run import ApprovalRequest
from tests.pipeline.reports import HOSTILE, QUESTION, SHOWN
from tests.rows import each_row


def asked(typed: Sequence[str | None], request: ApprovalRequest = QUESTION) -> tuple[tuple[str, str] | None, str]:
    """What is taken, and what was shown; every line that is typed is read."""
    file, lines = io.StringIO(), iter(typed)
    console = Console(file=file, width=200, markup=False, highlight=False, emoji=False)
    taken = ApprovalQuestions(console, lambda: next(lines)).ask(request)
    assert list(lines) == [], "it stopped too early"
    return taken, file.getvalue()


TYPED: Sequence[tuple[Sequence[str | None], tuple[str, str] | None]] = [
    (["1"], ("approve", "")),
    (["approve"], ("approve", "")),
    (["Approve"], ("approve", "")),
    (["2", "smaller, please"], ("revise", "smaller, please")),
    (["revise", "smaller"], ("revise", "smaller")),
    (["2", "", "1"], ("approve", "")),
    (["0", "3", "²", "-1", "proceed", "1"], ("approve", "")),
    (["2", "\udcff", "smaller"], ("revise", "smaller")),
    (["\udcff", "1"], ("approve", "")),
    ([""], None),
    ([None], None),
    (["2", None, None], None),
    (["nonsense", ""], None),
]


@each_row(("typed", "taken"), TYPED)
def test_an_option_is_taken_by_its_number_or_its_word(
    typed: Sequence[str | None], taken: tuple[str, str] | None
) -> None:
    assert asked(typed)[0] == taken


def test_the_question_stands_above_its_options() -> None:
    _, shown = asked(["9", "1"])
    assert shown.splitlines() == [
        "",
        "Review and approve?",
        "2 tasks.",
        "1. 🔴 auth",
        "gate-post-planning, step 4a; 0 findings",
        "  1. approve: Approve (the default): Begin.",
        "  2. revise: Revise: Plan anew.",
        "type a number or a name; an empty line leaves the question, and the run waits",
        "`9` is not one of the 2 options",
        "type a number or a name; an empty line leaves the question, and the run waits",
    ]


def test_what_an_agent_wrote_drives_no_terminal() -> None:
    options = tuple(one.model_copy(update={"label": HOSTILE, "description": HOSTILE}) for one in QUESTION.options)
    update = {"question": HOSTILE, "context": HOSTILE, "options": options}
    _, shown = asked([""], QUESTION.model_copy(update=update))
    assert "\x1b" not in shown and "\r" not in shown
    assert shown.count(SHOWN) == 4

"""The report as a page: the verdict first, nothing that says nothing, and no text that is more than text."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from markdown_it import MarkdownIt

from proofstone.agents.roles.models.plan_gate_records import ChallengeStatus
from proofstone.common.models import BudgetUsage
from proofstone.plan_gate.models import OpenQuestion, PlanReport, PlanVerdict
from proofstone.plan_gate.rules.report import list_open_challenges, render_report
from tests.gate.test_page_text import HOSTILE
from tests.plan_gate import reports
from tests.plan_gate.reports import BLOCKING, MINOR, RUN, challenge, report
from tests.rows import each_row

PUT_OFF = ChallengeStatus.DEFERRED_SURFACED


def headings(text: str) -> list[str]:
    return re.findall(r"^## (.+)$", text, re.MULTILINE)


def section(text: str, title: str) -> list[str]:
    """The lines of one section."""
    found = re.search(rf"^## {re.escape(title)}\n\n(.*?)(?=\n\n## |\Z)", text, re.MULTILINE | re.DOTALL)
    assert found, f"no section {title}"
    return found[1].rstrip("\n").splitlines()


@each_row(
    ("made", "said"),
    [
        (reports.proceed, "**PROCEED (rules alone)**: nothing BLOCKING or SIGNIFICANT stands."),
        (reports.report, "**REVISE**: nothing BLOCKING stands, and one or two SIGNIFICANT challenges."),
        (
            reports.strong,
            "**REVISE (strong)**: three or more SIGNIFICANT challenges stand, each with a mitigation.\n\n"
            "**Strongly recommended: address these before proceeding.**",
        ),
        (reports.rethink, "**RETHINK**: the last iteration, and a BLOCKING challenge stands."),
        (
            reports.waiting,
            "**A QUESTION IS WAITING**: a BLOCKING challenge is UNRESOLVED: only the person can settle it.",
        ),
    ],
)
def test_the_verdict_and_its_reason_come_first(made: Callable[[], PlanReport], said: str) -> None:
    assert render_report(made()).startswith(f"# Plan gate: A basket that survives\n\n{said}\n")


def test_what_to_do_next_follows_the_verdict() -> None:
    before = render_report(report()).split("\n## ", 1)[0]
    assert "Next: take the mitigations into plans/basket/PLAN.md, then verify it again" in before


EVIDENCE = ["Score", "Disputes", "Closing audit", "Surfaced context", "Probed risks", "Unknowns"]
DISCUSSED = ["Challenges", "What stands against it"]


@pytest.mark.parametrize(
    ("made", "titles"),
    [
        (reports.proceed, ["How it was made"]),
        (
            reports.report,
            ["Mitigations to take in", *DISCUSSED, *EVIDENCE, "False claims", "Events", "How it was made"],
        ),
        (reports.waiting, ["Open questions", *DISCUSSED, *EVIDENCE, "False claims", "Events", "How it was made"]),
        (
            reports.rethink,
            [*DISCUSSED, *EVIDENCE, "Answers", "False claims", "Events", "Iteration history", "How it was made"],
        ),
    ],
)
def test_a_section_without_anything_to_say_is_left_out(made: Callable[[], PlanReport], titles: list[str]) -> None:
    assert headings(render_report(made())) == titles


def test_the_table_has_every_challenge_with_its_line_and_evidence() -> None:
    assert section(render_report(report()), "Challenges") == [
        "| id | challenge | origin | severity | status | evidence |",
        "|---|---|---|---|---|---|",
        "| C1 | The plan assumes that basket C1 fits in a cookie | challenger | BLOCKING | RESOLVED "
        "| U1; the basket moves to the server; mitigation: a session table |",
        "| C2 (line 14) | The plan assumes that basket C2 fits in a cookie | surfaced | SIGNIFICANT | OPEN | – |",
        "| C3 (line 31) | The plan assumes that basket C3 fits in a cookie | rules | MINOR | DEFERRED "
        "| still open at the end |",
    ]


def test_the_mitigation_of_a_withdrawn_challenge_is_not_its_evidence() -> None:
    withdrawn = challenge("C1", status=ChallengeStatus.WITHDRAWN, resolution="it is not so", mitigation="not needed")
    assert section(render_report(report(challenges=(withdrawn,))), "Challenges")[2].endswith(
        "| WITHDRAWN | U1; it is not so |"
    )


def test_a_revision_names_each_mitigation_that_is_missing_or_has_settled_something() -> None:
    challenges = (
        challenge("C1", MINOR),
        challenge("C2", mitigation="Measure it first"),
        challenge("C3", BLOCKING, ChallengeStatus.RESOLVED, mitigation="Keep it on the server"),
        challenge("C4", status=PUT_OFF),
        challenge("C5", BLOCKING, ChallengeStatus.RESOLVED, resolution="it is not so"),
        challenge("C6", status=ChallengeStatus.WITHDRAWN, mitigation="not needed"),
    )
    assert section(render_report(report(challenges=challenges)), "Mitigations to take in") == [
        "- **C3 (line 31)**, BLOCKING, RESOLVED: The plan assumes that basket C3 fits in a cookie",
        "  - mitigation: Keep it on the server",
        "- **C2 (line 14)**, SIGNIFICANT, OPEN: The plan assumes that basket C2 fits in a cookie",
        "  - mitigation: Measure it first",
    ]


def test_where_nothing_is_to_be_revised_a_mitigation_stands_with_its_challenge() -> None:
    assert "  - mitigation: another store" in section(render_report(reports.rethink()), "What stands against it")
    assert not any("mitigation:" in line for line in section(render_report(report()), "What stands against it"))


def test_the_gravest_stands_first_and_what_was_settled_or_deferred_does_not() -> None:
    challenges = (
        challenge("C1", MINOR),
        challenge("C2"),
        challenge("C3", BLOCKING),
        challenge("C4", status=PUT_OFF),
        challenge("C5", MINOR, PUT_OFF),
        challenge("C6", MINOR, ChallengeStatus.DEFERRED),
        challenge("C7", BLOCKING, ChallengeStatus.WITHDRAWN),
        challenge("C10"),
    )
    assert [one.id for one in list_open_challenges(report(challenges=challenges))] == ["C3", "C2", "C4", "C10", "C1"]


def test_a_question_has_its_options_and_the_command_that_answers() -> None:
    assert section(render_report(reports.waiting()), "Open questions") == [
        "- **C1**: Who may see a basket?",
        "  - option 1: Its owner",
        "  - option 2: Anybody",
        f'  - answer with `proofstone verify-plan --resume {RUN} --answer "C1=…"`',
    ]


def test_both_scores_are_shown_where_they_are_two_apart() -> None:
    rows = section(render_report(report()), "Score")
    assert rows[0] == "6 of 10. It decides nothing."
    assert "| approach | 0.25 | 7 | steps follow each other |" in rows
    assert "| risk | 0.20 | 6; the challenger gives 3 | no way back is named |" in rows


@pytest.mark.seed("plan-gate", "debt-warning")
def test_the_debt_warning_lists_everything_deferred() -> None:
    challenges = (
        *(challenge(f"C{number}", MINOR, ChallengeStatus.DEFERRED) for number in (1, 2, 3, 4)),
        challenge("C5", status=PUT_OFF),
        challenge("C6"),
    )
    warned = section(render_report(report(challenges=challenges, debt_warning=True)), "Technical Debt Warning")
    assert warned[0] == "5 challenges deferred. None of it is done when the plan is."
    assert [re.findall(r"\*\*(C\d)", line) for line in warned[2:]] == [["C5"], ["C1"], ["C2"], ["C3"], ["C4"]]
    assert "Technical Debt Warning" not in render_report(report(challenges=challenges))


@pytest.mark.seed("plan-gate", "forced-exit")
def test_a_plan_to_be_rethought_has_its_history() -> None:
    lines = section(render_report(reports.rethink()), "Iteration history")
    assert lines[:8] == [
        "### Iteration 1",
        "",
        "- BLOCKING: 1 UNRESOLVED",
        "- SIGNIFICANT: 1 OPEN",
        "- MINOR: 1 DEFERRED",
        "- convergence: CONTINUE, 1 blocking and 1 significant open",
        "- directive: RE-SWEEP: look at the session store",
        "- answer: C1=its owner",
    ]
    assert [line for line in lines if line.startswith("###")] == [f"### Iteration {number}" for number in (1, 2, 3)]


def test_a_false_claim_names_its_author_and_what_was_seen() -> None:
    assert section(render_report(report()), "False claims") == [
        "- `researcher:resolve`, iteration 1, for U2: claimed that Basket.load is defined in src/shop/basket.py;"
        " the engine saw: src/shop/basket.py defines no Basket.load"
    ]


def test_the_page_says_how_it_was_made() -> None:
    assert section(render_report(report()), "How it was made") == [
        f"- plan: `plans/basket/PLAN.md`, SHA-256 `{reports.DIGEST}`",
        f"- base commit: `{reports.BASE}`",
        "- quality: ADEQUATE: 2 of 3 tasks have a verification",
        "- complexity: 6 of 16 (steps 3, domains 1, integrations 2)",
        "- asked: the base team: challenger (`api:small`), researcher (`api:small`), synthesizer (`api:large`)",
        "- iterations: 2",
        "- cost: agents asked 9 times, 12 model calls, 34.0k tokens, $0.42",
        f"- run: `{RUN}`; `proofstone ledger show {RUN}` shows all of it",
    ]


@pytest.mark.parametrize(
    ("said", "line"),
    [
        ({"agents": {}}, "- asked: nobody: the rules alone"),
        ({"trivial": True}, "- asked: nobody: the plan is trivial"),
        ({"dispatches": 1, "spent": BudgetUsage()}, "- cost: agents asked 1 time, no model calls"),
    ],
)
def test_who_was_not_asked_and_what_was_not_spent_is_said(said: dict[str, Any], line: str) -> None:
    assert line in section(render_report(report(**said)), "How it was made")


MARKDOWN = [
    "| a | b |",
    "a\\|b",
    "a \\",
    "- item",
    "1. item",
    "===",
    "    code",
    "> quote",
    "[ref]: http://127.0.0.1",
    "![image](x)",
    "<b>bold</b><!-- gone",
    "```\nfence\n```\n## Heading",
    "~~~\nfence",
    "**bold** *it*",
    "line\n\n## PROCEED\n\n| x |\n|---|",
]
WRITTEN = {
    *("title", "reason", "quality_reason", "next_step", "claim", "concern", "failure_scenario", "alternative"),
    *("resolution", "mitigation", "description", "finding", "location", "relevance", "risk", "trigger", "cascade"),
    *("evidence", "disputes", "audit", "agent", "about", "path", "name", "saw", "text", "challenge", "question"),
    *("options", "synthesizer_directives", "user_responses", "plan_path"),
}


def rewritten(value: object, text: str, key: str = "", within: str = "") -> object:
    """The same document with `text` wherever somebody else chose the words."""
    match value:
        case dict():
            return {name: rewritten(item, text, name, within or key) for name, item in value.items()}
        case list():
            return [rewritten(item, text, key, within) for item in value]
        case str() if key in WRITTEN and not (key == "resolution" and within != "challenges"):
            return text
        case _:
            return value


def everything(text: str, verdict: PlanVerdict) -> PlanReport:
    full = reports.rethink().model_copy(
        update={
            "verdict": verdict,
            "debt_warning": True,
            "questions": (OpenQuestion(challenge="C1", question="q", options=("a", "b")),),
        }
    )
    body = rewritten(full.model_dump(mode="json"), text)
    assert isinstance(body, dict)
    served = {"agents": dict.fromkeys((text, "challenger"), text), "evidence": {"C1": text}}
    return PlanReport.model_validate({**body, **served})


def structure(text: str) -> list[str]:
    """What Markdown makes of the page, block by block, without the words."""
    return [token.type + token.tag for token in MarkdownIt("commonmark").enable("table").parse(text)]


def inlines(text: str) -> set[str]:
    parsed = MarkdownIt("commonmark").enable("table").parse(text)
    return {child.type for token in parsed for child in token.children or ()}


@each_row("verdict", [PlanVerdict.REVISE, PlanVerdict.RETHINK])
@each_row("text", [text for text in [*HOSTILE, *MARKDOWN] if text not in ("", "\udcff")])
def test_no_text_changes_the_structure_of_the_page(text: str, verdict: PlanVerdict) -> None:
    shown = render_report(everything(text, verdict))
    assert structure(shown) == structure(render_report(everything("plain", verdict)))
    assert inlines(shown) <= {"text", "text_special", "code_inline", "strong_open", "strong_close"}

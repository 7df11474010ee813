"""Whatever stands in the file, it is read or refused: never a crash, and never longer than its length allows."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proofstone.common.commands import is_vacuous, loses_exit_code, proves_nothing
from proofstone.common.shell import ShellSyntaxError, is_complete, lex, split_statements
from proofstone.plans.lint import find_lint_problems
from proofstone.plans.parser import read_plan
from tests.plans.reading import element, fixture

PIECES = [
    *(
        "<task>",
        '<task type="auto">',
        '<task type="checkpoint:decision" id="a">',
        "</task>",
        "<task",
        "<Task/>",
        "<tasks>",
    ),
    *(
        "<name>",
        "</name>",
        "<files>",
        "</files>",
        "<action>",
        "</action>",
        "<verify>",
        "</verify>",
        "<done>",
        "</done>",
    ),
    *("<heldout>", "</heldout>", "<automated>", "</automated>", "<options>", "<option id=a>", "</options>", "<done/>"),
    *("```", "````", "~~~", "```bash\n", "`", "``", "<!--", "-->", "---\n", "\n", "\n\n", "\r\n", " ", "\t", "    "),
    *(
        "# ",
        "### Wave 2\n",
        "### Task 1: x\n",
        "depends_on=",
        '"1, 2"',
        "wave='3'",
        "- ",
        "1. ",
        "* ",
        "[",
        "]",
        "{",
        "}",
    ),
    *("echo a", "pytest -q", "a && b", "|", "||", "&&", ";", "$(", ")", "(", "'", '"', "\\", "<<E", "E\n", "if ", "fi"),
    *(
        "phase: 01\n",
        "must_haves:\n",
        "  artifacts:\n",
        "    - path: a\n",
        "&a ",
        "*a",
        "src/{a,b}.py",
        ",",
        "..",
        "/x",
    ),
    *(
        "ü",
        "日本",
        "\u2028",
        "\x00",
        "\x1b",
        "&amp;&amp;",
        "&lt;",
        "<",
        ">",
        "Open the page",
        "done",
        "for ",
        "do ",
        "!",
    ),
]
TEXTS = st.lists(st.sampled_from(PIECES), max_size=60).map("".join)


def lint_all(text: str) -> None:
    plan, problems = read_plan(text, "PLAN.md")
    if plan is None:
        assert any(problem.severity == "error" for problem in problems)
        return
    lines = text.count("\n") + text.count("\r") + 1
    for problem in (*problems, *find_lint_problems(plan, text)):
        assert 1 <= problem.line <= lines
        assert problem.message
        assert problem.hint
    ids = [task.id for task in plan.tasks]
    assert len(set(ids)) == len(ids)
    assert all(other in ids for task in plan.tasks for other in task.depends_on)


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    lint_all(text)


@settings(max_examples=400)
@given(TEXTS)
def test_any_heap_of_pieces_is_read_or_refused(text: str) -> None:
    lint_all(text)


@given(TEXTS, st.sampled_from(["name", "files", "action", "verify", "done"]))
def test_whatever_stands_in_one_element(text: str, part: str) -> None:
    lint_all(element(**{part: text}))


@given(TEXTS)
def test_whatever_stands_in_the_frontmatter(text: str) -> None:
    lint_all(f"---\n{text}\n---\n{element()}")


@given(st.data())
def test_a_plan_with_a_piece_out_or_in(data: st.DataObject) -> None:
    text = fixture(data.draw(st.sampled_from(["plain", "sloppy", "checkpoints", "waves", "graph", "pasted", "wrong"])))
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, min(len(text), start + 40)))
    lint_all(text[:start] + data.draw(st.sampled_from(PIECES)) + text[end:])


@given(TEXTS)
def test_any_command_is_judged(text: str) -> None:
    assert proves_nothing(text) or not is_vacuous(text)
    assert loses_exit_code(text) or not proves_nothing(text)
    is_complete(text)
    try:
        pieces = lex(text)
    except ShellSyntaxError:
        return
    assert all(text.startswith(piece.text, piece.start) for piece in pieces if not piece.is_operator)
    assert "".join("".join(split_statements(text)).split()) == "".join(text.split())


@pytest.mark.few(12, ci=34)
@pytest.mark.parametrize(
    "text",
    [
        "<", "<task", "<task>", "<task>\n", "`", "` ", "```\n", "```a\n", "<!--", " ", "\n", "# #", "<task a=\"<",
        "<task>\n<verify>\n", "<files\n", "</task>", "<action>```\n", "(", "{,", "!", "'\n", "[", "\\", "a: [", "&amp;",
    ],
)  # fmt: skip
@pytest.mark.parametrize("where", ["alone", "name", "files", "action", "verify", "done", "options", "frontmatter"])
@pytest.mark.parametrize("size", [64 * 1024, pytest.param(2 * 1024 * 1024, marks=pytest.mark.sweep)])
def test_a_file_full_of_one_thing_ends(text: str, where: str, size: int) -> None:
    """By construction: a search that went over the rest of the text again and again would take hours here."""
    many = text * (size // len(text))
    if where == "frontmatter":
        many = f"---\n{many}\n---\n{element()}"
    elif where == "options":
        many = f'<task type="checkpoint:decision"><options>{many}</options></task>'
    elif where != "alone":
        many = element(**{where: many})
    lint_all(many)


def test_a_tag_with_one_endless_word_ends() -> None:
    """Each letter of it could begin the name of an attribute."""
    lint_all(f'<task type="auto" {"false" * 200_000}>\n<name>One</name>\n</task>\n')

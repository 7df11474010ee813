from __future__ import annotations

import pytest

from proofstone.common.shell import (
    ShellSyntaxError,
    has_blocks,
    is_complete,
    lex,
    list_programs,
    split_statements,
    unquote,
)
from tests.rows import each_row


@each_row(
    ("text", "pieces"),
    [
        ("a  b", ["a", "b"]),
        ("a&&b||c", ["a", "&&", "b", "||", "c"]),
        ("a 'b && c' \"d;e\"", ["a", "'b && c'", '"d;e"']),
        ("a 2>&1 | b >out", ["a", "|", "b"]),
        ("a $(b; c) `d|e`", ["a", "$(b; c)", "`d|e`"]),
        ('a "$(b ")" c)"', ["a", '"$(b ")" c)"']),
        ("a # b && c\nd", ["a", "\n", "d"]),
        ("a#b", ["a#b"]),
        ("a \\\n b", ["a", "b"]),
        ("cat <<E && x\nif '\nE\ny", ["cat", "&&", "x", "\n", "y"]),
        ("cat <<-'E'\n\tq\n\tE\ny", ["cat", "\n", "y"]),
        ("${a:-b c} d", ["${a:-b c}", "d"]),
    ],
)
def test_text_comes_apart_where_a_shell_would_cut_it(text: str, pieces: list[str]) -> None:
    assert [piece.text for piece in lex(text)] == pieces


@each_row("text", ["'a", '"a', "$(a", "`a", "cat <<E\nx", "${a", '"$(a"'])
def test_what_has_no_end_is_told(text: str) -> None:
    with pytest.raises(ShellSyntaxError):
        lex(text)


@each_row("text", ["a &&", "a \\", "if x; then", "for f in a; do", "while x", "echo 'x", "cat <<E", "(a", "{ a"])
def test_a_shell_would_wait_for_more(text: str) -> None:
    assert not is_complete(text)


@each_row("text", ["a", "a # it's", "a {b", "echo if", "if a; then b; fi", "(a)", "", "a done"])
def test_a_shell_would_run_it(text: str) -> None:
    assert is_complete(text)


def test_statements_end_where_a_shell_would_have_run_them() -> None:
    text = "a\nb \\\n c\nfor x in 1; do\n y\ndone\ncat <<E\nq\n\nE\nd &&\n e\n(f\ng)"
    assert split_statements(text) == (
        "a", "b \\\n c", "for x in 1; do\n y\ndone", "cat <<E\nq\n\nE", "d &&\n e", "(f\ng)",
    )  # fmt: skip


def test_blocks_are_told_from_words() -> None:
    assert has_blocks("for x in a; do b; done")
    assert not has_blocks("echo for if while")
    assert not has_blocks("'")


def test_quotes_come_off_where_one_word_remains() -> None:
    assert [unquote(word) for word in ("'a b'", '"c"', "d", "'e")] == ["a b", "c", "d", "'e"]


@each_row(
    ("text", "programs"),
    [
        ("python3 -m pytest tests", ("python3",)),
        ("A=1 B='x y' tox -q && /usr/bin/git diff | grep -c x", ("tox", "git", "grep")),
        ("make > out.txt 2>&1; ls < in.txt", ("make", "ls")),
        ("'my tool' a; tox; tox", ("my tool", "tox")),
        ("echo 'unfinished", ()),
        ("", ()),
    ],
)
def test_the_programs_of_a_command_line(text: str, programs: tuple[str, ...]) -> None:
    assert list_programs(text) == programs

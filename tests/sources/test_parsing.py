"""A text that is nothing but errors does not keep the engine busy for ever; honest source is parsed."""

from __future__ import annotations

import pytest
from tree_sitter import Node

from proofstone.check.variants.views import split_views
from proofstone.sources import text as parsing
from proofstone.sources.syntax import find_syntax_errors
from proofstone.sources.text import parse_source

HOPELESS = b"describe('a', () => { it('b', async () => " + b",:" * 20_000
"""In Go's grammar; its parser needs time that grows with the square of the length."""
QUOTED = b"package a\n\nconst text = `" + b",:" * 8_000 + b"`\n"


def test_a_text_that_is_too_broken_is_an_error_and_not_a_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parsing, "_try_in_process", lambda _content, _language: False)
    monkeypatch.setattr(parsing, "_try_results", {})
    assert parse_source(HOPELESS, "go") is None
    (error,) = find_syntax_errors("a.go", HOPELESS) or ()
    assert "does not finish" in error.message
    lines = split_views("a.go", HOPELESS)
    assert lines is not None and lines[0].code.startswith("describe"), "all of it counts as code"


def test_another_process_tries_it_for_a_limited_time(monkeypatch: pytest.MonkeyPatch) -> None:
    assert parsing._try_in_process(b"package a\n", "go")
    monkeypatch.setattr(
        parsing,
        "_TRY_SCRIPT",
        parsing._TRY_SCRIPT.replace(f"({parsing.MAX_PARSE_SECONDS}, {parsing.MAX_PARSE_SECONDS})", "(0, 0)"),
    )
    assert not parsing._try_in_process(HOPELESS, "go")


@pytest.mark.parametrize("text", [b"- " * 600 + b"a\n", b"".join(b" " * n + b"a:\n" for n in range(400))])
def test_yaml_that_breaks_its_scanner_is_tried_by_another_process(text: bytes) -> None:
    """In this one it would be the end of the tests."""
    assert parse_source(text, "yaml") is None
    assert find_syntax_errors("a.yaml", text)


def test_yaml_with_long_lines_is_parsed() -> None:
    text = b"a: {" + b", ".join(b"k%d: %d" % (n, n) for n in range(300)) + b"}\nb: |\n" + b" " * 90 + b"x\n"
    assert find_syntax_errors("a.yaml", text) == ()


def test_source_with_a_long_string_is_parsed() -> None:
    """A piece that begins inside of a string is mostly errors, and the whole is not."""
    assert any(
        parsing._is_mostly_errors(_root(QUOTED[at : at + parsing.PIECE_BYTES]))
        for at in range(0, len(QUOTED), parsing.PIECE_BYTES)
    )
    root = parse_source(QUOTED, "go")
    assert root is not None and not root.has_error


def _root(piece: bytes) -> Node:
    from tree_sitter_language_pack import get_parser

    return get_parser("go").parse(piece).root_node

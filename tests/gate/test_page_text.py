"""Text that somebody else chose stays text: in YAML it reads back as it was, in Markdown it is shown as it is."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from proofstone.documents.markdown import (
    YamlValue,
    code_span,
    escape_markdown,
    format_yaml,
    format_yaml_block,
    make_visible,
)
from tests.rows import each_row

HOSTILE = [
    "plain",
    "",
    "a: b",
    "- x",
    "'single' and \"double\"",
    "line\nbreak\r\nand\ttab",
    "---\nkey: value\n---",
    "...",
    "```yaml\nx: 1\n```",
    "````",
    "emoji 🦊 and ümlaut",
    "# heading",
    "null",
    "true",
    "01",
    "1e3",
    "2026-01-01",
    "{a: 1}",
    "back\\slash \\n",
    "\x1b[2J",
    "\x7f\x80\x85\u2028\u2029\ufeff\uffff",
    "\udcff",
    "&anchor *alias !tag %directive @at `tick`",
    "  spaces  ",
    "\U000e0001",
]


def read(text: str) -> object:
    return YAML(typ="safe", pure=True).load(io.StringIO(text))


@each_row("text", HOSTILE)
def test_a_text_reads_back_as_it_was(text: str) -> None:
    values: dict[str, YamlValue] = {
        "name": text,
        "list": [text, text],
        "deep": {"list": [{"name": text, "other": text}]},
    }
    assert read(format_yaml(values)) == values


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(0.1, 1000.0).map(lambda number: round(number, 1)) | st.text(),
    lambda inner: (
        st.lists(inner.filter(lambda value: not isinstance(value, list)), max_size=3)
        | st.dictionaries(st.from_regex(r"[a-z]{1,8}", fullmatch=True).map(lambda key: f"k_{key}"), inner, max_size=3)
    ),
    max_leaves=12,
)


@given(st.dictionaries(st.from_regex(r"[a-z]{1,8}", fullmatch=True).map(lambda key: f"k_{key}"), values, max_size=4))
def test_whatever_is_written_reads_back(wanted: dict[str, YamlValue]) -> None:
    assert read(format_yaml(wanted)) == (wanted or None)


@each_row("text", HOSTILE)
def test_no_text_closes_the_fence(text: str) -> None:
    lines = format_yaml_block({"name": text, "list": [text]}).splitlines()
    assert lines[0] == "```yaml"
    assert lines[-1] == "```"
    assert not any("```" in line for line in lines[1:-1])


@each_row(
    ("text", "shown"),
    [
        ("a\n\n# b", "a \\# b"),
        ("<script>", "\\<script\\>"),
        ("[x](y)", "\\[x\\](y)"),
        ("*bold* _it_ snake_case", "\\*bold\\* \\_it\\_ snake_case"),
        ("a | b", "a \\| b"),
        ("\x1b[2J", "\\\\x1b\\[2J"),
        ("`code`", "\\`code\\`"),
    ],
)
def test_prose_is_one_line_that_means_nothing_to_markdown(text: str, shown: str) -> None:
    assert escape_markdown(text) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [("pytest -q", "`pytest -q`"), ("a `b` c", "``a `b` c``"), ("`b`", "`` `b` ``"), ("a\nb", "`a b`")],
)
def test_a_code_span_is_fenced_by_more_backticks_than_it_holds(text: str, shown: str) -> None:
    assert code_span(text) == shown


def test_what_cannot_be_seen_is_written_out() -> None:
    assert make_visible("a\x00\u202eb\U000e0001") == "a\\x00\\u202eb\\U000e0001"

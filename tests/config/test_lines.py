"""A key is found on the line where a person would look for it, however the TOML is written."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from proofstone.config.setting_docs import find_line
from tests.rows import each_row

CASES: dict[str, tuple[str, tuple[str | int, ...], int | None]] = {
    "under a table": ("[a]\nb = 1\n", ("a", "b"), 2),
    "the table itself": ("# a\n\n[a]\nb = 1\n", ("a",), 3),
    "a dotted key": ("x = 1\na.b = 2\n", ("a", "b"), 2),
    "an inline table": ("x = 1\na = { b = 2 }\n", ("a", "b"), 2),
    "a quoted key": ('[a]\n"b" = 1\n', ("a", "b"), 2),
    "the same key of another table": ("[z]\nb = 1\n[a]\nb = 1\n", ("a", "b"), 4),
    "mentioned in a comment": ("[a] # b\n# b = 3\nb = 1\n", ("a", "b"), 3),
    "mentioned in a text of several lines": ('[a]\nt = """\nb = 2\n"""\nb = 1\n', ("a", "b"), 5),
    "an entry of a list on one line": ("[a]\nb = [1, 2]\n", ("a", "b", 1), 2),
    "an entry of a list on several": ("[a]\nb = [\n1,\n\n2, 3,\n4\n]\n", ("a", "b", 3), 6),
    "a parent when the key is not there": ("[x]\n[a]\n", ("a", "b"), 2),
    "nothing of it": ("[x]\n", ("a", "b"), None),
}


@each_row(("text", "path", "line"), CASES.values())
def test_the_line_of_a_key(text: str, path: tuple[str | int, ...], line: int | None) -> None:
    assert find_line(text, path) == line


# JSON and TOML write a text alike, as long as it is ASCII.
NOISE = st.sampled_from(["", "# target = 1", "other = 'target = 1'", 'many = """\ntarget = 0\n"""', "list = [\n1,\n]"])


@given(
    before=st.lists(NOISE, unique=True),
    after=st.lists(NOISE, unique=True),
    value=st.text(st.characters(codec="ascii", exclude_characters="\x7f")),
)
def test_whatever_stands_around_it_the_keys_own_line_is_found(before: list[str], after: list[str], value: str) -> None:
    after = [noise for noise in after if noise not in before]
    statement = f"target = {json.dumps(value)}"
    lines = "\n".join([*before, statement]).count("\n") + 1
    assert find_line("\n".join([*before, statement, *after]), ("target",)) == lines

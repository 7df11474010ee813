"""What is read from lines that a program printed, and what is not."""

from __future__ import annotations

import pytest
from pydantic import JsonValue

from proofstone.agents.backends.programs.lines import (
    LineSplitter,
    classify_status,
    get_amount,
    get_count,
    get_objects,
    get_text,
    get_value,
    make_relative,
    parse_object,
)
from proofstone.agents.models import FaultKind
from tests.rows import each_row

# What comes, in pieces → lines that have ended, and what stands behind the last.
PIECES: list[tuple[list[bytes], list[bytes], bytes]] = [
    ([], [], b""),
    ([b"a\nb"], [b"a"], b"b"),
    ([b"a", b"b\n", b"\nc\n"], [b"ab", b"", b"c"], b""),
    ([b"12345678\n", b"x\n"], [b"12345678", b"x"], b""),
    ([b"123456789\n", b"x\n"], [b"x"], b""),
    ([b"1234567", b"89", b"123", b"4\nx", b"\n"], [b"x"], b""),
    ([b"1234567", b"89"], [], b""),
    ([b"x\n", b"123456789" * 3], [b"x"], b""),
]


@each_row(("pieces", "lines", "rest"), PIECES)
def test_lines_come_in_pieces_and_one_that_is_too_long_is_left_out_up_to_its_end(
    pieces: list[bytes], lines: list[bytes], rest: bytes
) -> None:
    read = LineSplitter(longest=8)
    assert [line for piece in pieces for line in read.add(piece)] == lines
    assert read.take_rest() == rest


@each_row("line", ["", "{", "[]", "null", "5", '"x"', "[" * 100_000, "\ud800"])
def test_a_line_without_an_object_is_nothing(line: str) -> None:
    assert parse_object(line) is None


def test_a_value_lies_at_its_path_or_is_not_there() -> None:
    told: dict[str, JsonValue] = {"a": {"b": "text", "n": 3, "list": [1, {"c": 1}, None]}}
    assert (get_value(told, "a", "b"), get_value(told, "a", "b", "c"), get_value(told, "x", "b")) == (
        "text",
        None,
        None,
    )
    assert (get_text(told, "a", "b"), get_text(told, "a", "n")) == ("text", "")
    assert (get_objects(told, "a", "list"), get_objects(told, "a", "b")) == ([{"c": 1}], [])


@each_row(("told", "count"), [(7, 7), (7.9, 7), (-1, 0), (1e400, 0), (float("nan"), 0), ("7", 0)])
def test_only_a_sane_number_is_a_count(told: JsonValue, count: int) -> None:
    assert get_count({"n": told}, "n") == count


@each_row(("told", "amount"), [(0.5, 0.5), (0, 0.0), (-1, None), (1e400, None), (True, None), ("1", None)])
def test_only_a_sane_number_is_an_amount(told: JsonValue, amount: float | None) -> None:
    assert get_amount({"n": told}, "n") == amount


@pytest.mark.parametrize(
    ("path", "found"), [("/tree/src/a.py", "src/a.py"), ("/trees/a.py", "/trees/a.py"), ("a.py", "a.py")]
)
def test_a_path_is_told_from_the_root_where_it_lies_below_it(path: str, found: str) -> None:
    assert make_relative(path, "/tree") == found


@each_row(
    ("status", "kind"),
    [
        (401, FaultKind.DENIED), (402, FaultKind.DENIED), (403, FaultKind.DENIED), (404, FaultKind.DENIED),
        (400, FaultKind.REJECTED), (413, FaultKind.REJECTED),
        (408, FaultKind.UNAVAILABLE), (429, FaultKind.UNAVAILABLE), (500, FaultKind.UNAVAILABLE),
        (529, FaultKind.UNAVAILABLE), (302, FaultKind.FAILED),
    ],
)  # fmt: skip
def test_a_status_says_what_kind_of_fault_it_is(status: int, kind: FaultKind) -> None:
    assert classify_status(status) is kind

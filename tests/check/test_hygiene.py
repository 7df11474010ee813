"""Conflict markers and sizes: only what the change itself brought in."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from proofstone.check.rules.scan_paths import check_size, find_conflict_markers
from tests.rows import each_row

CONFLICT = b"<<<<<<< HEAD\nours\n=======\ntheirs\n>>>>>>> branch\n"

SILENT: dict[str, tuple[str, bytes]] = {
    "a heading in prose": ("a.rst", b"Title\n=======\n\ntext\n"),
    "bare markers in prose": ("a.md", b"<<<<<<<\na\n=======\nb\n>>>>>>>\n"),
    "only the middle": ("a.py", b"=======\n"),
    "only the start": ("a.py", b"<<<<<<< HEAD\n"),
    "the wrong order": ("a.py", b">>>>>>> b\n=======\n<<<<<<< a\n"),
    "indented": ("a.py", b"  <<<<<<< a\n  =======\n  >>>>>>> b\n"),
    "eight characters": ("a.py", b"<<<<<<<< a\n========\n>>>>>>>> b\n"),
    "binary": ("a.bin", b"\0" + CONFLICT),
}


@each_row(("path", "content"), SILENT.values())
def test_what_only_looks_like_a_conflict_is_not_one(path: str, content: bytes) -> None:
    assert find_conflict_markers(path, None, content) == ()


@each_row("path", ["a.py", "a.md", "Makefile"])
@each_row("ending", [b"\n", b"\r\n"])
def test_a_conflict_is_found_with_its_line(path: str, ending: bytes) -> None:
    found = find_conflict_markers(path, b"a\n", (b"a\n" + CONFLICT).replace(b"\n", ending))
    assert [item.line for item in found] == [2]


def test_a_three_way_conflict_is_one_conflict() -> None:
    content = b"<<<<<<< HEAD\na\n||||||| base\nb\n=======\nc\n>>>>>>> x\n"
    assert len(find_conflict_markers("a.py", None, content)) == 1


def test_a_conflict_that_was_there_before_is_not_new() -> None:
    assert find_conflict_markers("a.py", CONFLICT, b"moved\n" + CONFLICT) == ()
    assert len(find_conflict_markers("a.py", CONFLICT, CONFLICT + CONFLICT)) == 1


@given(st.binary(max_size=300))
def test_a_file_has_no_conflict_that_is_new_against_itself(content: bytes) -> None:
    assert find_conflict_markers("a.py", content, content) == ()


@each_row(
    ("old", "new", "said"),
    [
        (None, 101, True),
        (None, 100, False),
        (50, 101, True),
        (150, 101, False),
        (101, 101, False),
        (101, 102, True),
    ],
)
def test_a_file_over_the_limit_is_said_when_it_is_new_or_grew(old: int | None, new: int, said: bool) -> None:
    assert bool(check_size("a", old, new, limit=100)) is said


def test_the_message_names_sizes_a_person_can_read() -> None:
    (item,) = check_size("a", None, 6 * 1024 * 1024, limit=5 * 1024 * 1024)
    assert item.message.startswith("6 MiB and is new; the limit is 5 MiB")

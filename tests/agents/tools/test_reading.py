"""Reads are bounded, every cut is said, and odd files and names are shown for what they are."""

from __future__ import annotations

import os
import threading

import pytest

from proofstone.agents.tools.definitions import check_definition
from proofstone.agents.tools.files import find_files
from proofstone.agents.tools.grep import grep
from proofstone.agents.tools.models import GlobArguments, GrepArguments, SymbolsArguments
from proofstone.agents.tools.symbols import show_symbols
from proofstone.agents.tools.tool_context import ToolContext, ToolDeadline
from proofstone.agents.tools.tree import FileTree
from tests.agents.tools.desk import Desk


def test_a_file_is_shown_with_line_numbers(desk: Desk) -> None:
    desk.put("a.py", "def f():\n\treturn 1\n\n\nx\n")
    assert desk.ok("read", path="a.py") == "1\tdef f():\n2\t\treturn 1\n3\t\n4\t\n5\tx"


@pytest.mark.parametrize(
    ("content", "shown"),
    [
        (b"", "a.txt: an empty file."),
        (b"\n", "1\t"),
        (b"a", "1\ta\n[the last line has no newline]"),
        (b"a\r\nb\r\n", "1\ta\n2\tb\n[the lines end in CRLF]"),
        (
            b"caf\xe9\n",
            "1\tcaf\N{REPLACEMENT CHARACTER}\n[not UTF-8: \N{REPLACEMENT CHARACTER} replaces the invalid bytes]",
        ),
        ("naïve ☃ \u2028 \x0c x\n".encode(), "1\tnaïve ☃ \u2028 \x0c x"),
        (b"\x89PNG\0\0", "a.txt: a binary file of 6 bytes; it is not shown."),
        ("x\n".encode("utf-16"), "a.txt: a binary file of 6 bytes; it is not shown."),
    ],
)
def test_what_a_file_holds_is_shown_for_what_it_is(desk: Desk, content: bytes, shown: str) -> None:
    desk.put("a.txt", content)
    assert desk.ok("read", path="a.txt") == shown


def test_a_long_file_is_read_in_parts_to_its_end(desk: Desk) -> None:
    desk.put("long.txt", "".join(f"line {number}\n" for number in range(1, 4502)))
    first = desk.ok("read", path="long.txt").splitlines()
    assert first[-1] == "[lines 1-2000 of 4501; continue with offset 2001]" and len(first) == 2001
    assert desk.ok("read", path="long.txt", offset=4501) == "4501\tline 4501"
    some = desk.ok("read", path="long.txt", offset=10, limit=2)
    assert some == "10\tline 10\n11\tline 11\n[lines 10-11 of 4501; continue with offset 12]"
    assert "only 4,501 lines" in desk.failed("read", path="long.txt", offset=4502)


def test_a_wide_file_ends_at_the_byte_limit(desk: Desk) -> None:
    desk.put("wide.txt", ("é" * 1000 + "\n") * 100)
    shown = desk.ok("read", path="wide.txt")
    assert len(shown.encode()) < 65 * 1024 and shown.endswith("[lines 1-32 of 100; continue with offset 33]")


def test_a_long_line_is_cut_and_that_is_said(desk: Desk) -> None:
    desk.put("min.js", "x" * 1_000_000 + "\n")
    shown = desk.ok("read", path="min.js")
    assert shown == "1\t" + "x" * 2000 + "… [998,000 more characters on this line]"


def test_a_huge_file_is_refused_without_reading_it(desk: Desk) -> None:
    with (desk.files / "huge.bin").open("wb") as file:
        file.truncate(1 << 40)
    assert "too large" in desk.failed("read", path="huge.bin")
    assert "too large to be searched: huge.bin" in desk.ok("grep", pattern="x")
    assert "too large" in desk.failed("edit", path="huge.bin", old="a", new="b")


def test_what_is_not_there_or_not_a_file_is_said(desk: Desk) -> None:
    desk.put("src/a.txt")
    assert desk.failed("read", path="src/b.txt") == "There is no src/b.txt. Use `list` or `glob` to see what there is."
    assert "is a folder; use `list`" in desk.failed("read", path="src")
    assert "is a file; use `read`" in desk.failed("list", path="src/a.txt")
    assert "There is no nowhere" in desk.failed("glob", pattern="*", path="nowhere")
    assert desk.failed("read", path="src/a.txt/b").startswith("src/a.txt/b: Not a directory")


ODD = [
    "a b.txt",
    "a\nb.txt",
    "app/[id]/page.tsx",
    "*.txt",
    "-rf",
    "ünï☃.txt",
    'q"uote',
    " lead",
    "tab\there",
    "\\x",
    "%2e%2e",
]


@pytest.mark.parametrize("name", ODD)
def test_any_name_can_be_listed_found_read_and_written(desk: Desk, name: str) -> None:
    desk.put(name, "needle\n")
    assert desk.ok("read", path=name) == "1\tneedle"
    found = desk.ok("glob", pattern="**")
    assert len(found.splitlines()) == 1
    assert desk.ok("grep", pattern="needle") == f"{found}:1: needle"
    desk.ok("edit", path=name, old="needle", new="thread")
    assert (desk.files / name).read_text() == "thread\n"
    desk.ok("delete", path=name)
    assert not (desk.files / name).exists()


def test_a_name_that_is_not_utf_8_is_shown_and_harms_nothing(desk: Desk) -> None:
    (desk.files / os.fsdecode(b"caf\xe9.txt")).write_text("needle\n")
    assert desk.ok("list") == "caf\\xe9.txt" == desk.ok("glob", pattern="*.txt")
    assert desk.ok("grep", pattern="needle") == "caf\\xe9.txt:1: needle"


def test_a_folder_is_listed_sorted_and_bounded(desk: Desk) -> None:
    for name in ("b", "a", "C", ".hidden", "d/x"):
        desk.put(name)
    desk.link("l", "nowhere")
    assert desk.ok("list").splitlines() == [".hidden", "C", "a", "b", "d/", "l -> nowhere"]
    for number in range(600):
        desk.put(f"many/{number:03}")
    listed = desk.ok("list", path="many").splitlines()
    assert len(listed) == 501 and listed[-1] == "[not shown: 100 more of 600; use `glob`]"
    (desk.files / "empty").mkdir()
    assert desk.ok("list", path="empty") == "empty: an empty folder."


@pytest.mark.parametrize(
    ("pattern", "path", "found"),
    [
        ("**/*.py", "", ["a.py", "src/b.py", "src/deep/c.py"]),
        ("*.py", "", ["a.py"]),
        ("src/*.py", "", ["src/b.py"]),
        ("src", "", ["src/b.py", "src/deep/c.py", "src/deep/d.txt"]),
        ("**", "src/deep", ["src/deep/c.py", "src/deep/d.txt"]),
        ("**/?.txt", "", ["src/deep/d.txt"]),
        ("**", "node_modules/lib", ["node_modules/lib/i.py"]),
    ],
)
def test_files_are_found_by_pattern(desk: Desk, pattern: str, path: str, found: list[str]) -> None:
    for name in ("a.py", "src/b.py", "src/deep/c.py", "src/deep/d.txt", "node_modules/lib/i.py", ".venv/lib/j.py"):
        desk.put(name)
    assert desk.ok("glob", pattern=pattern, path=path).splitlines() == found


def test_a_glob_that_finds_nothing_says_how_to_look_further(desk: Desk) -> None:
    desk.put("src/a.py")
    assert desk.ok("glob", pattern="*.py") == "No file matches *.py. `**/*.py` looks in all folders."


def test_a_glob_is_bounded(desk: Desk) -> None:
    for number in range(501):
        desk.put(f"{number:03}.txt")
    found = desk.ok("glob", pattern="*.txt").splitlines()
    assert len(found) == 501 and found[-1].startswith("[more than 500 files match")


def test_lines_are_found_with_file_and_number(desk: Desk) -> None:
    desk.put("a.py", "import os\r\nx = 1\r\n")
    desk.put("src/b.py", "y = 2\nX = 1\n\nno end x = 1")
    desk.put("src/c.txt", "x = 1\n")
    desk.put("d.bin", b"x = 1\0")
    assert desk.ok("grep", pattern=r"^x = \d$").splitlines() == ["a.py:2: x = 1", "src/c.txt:1: x = 1"]
    assert desk.ok("grep", pattern="x =", path="src", glob="**/*.py") == "src/b.py:4: no end x = 1"
    assert desk.ok("grep", pattern="^x", ignore_case=True, path="src/b.py") == "src/b.py:2: X = 1"
    assert desk.ok("grep", pattern="^$") == "src/b.py:3: "
    assert desk.ok("grep", pattern="nowhere") == "Nothing matches in 3 files."


def test_matches_are_bounded_and_long_lines_shown_around_them(desk: Desk) -> None:
    desk.put("many.txt", "needle\n" * 300)
    found = desk.ok("grep", pattern="needle", limit=200).splitlines()
    assert len(found) == 201 and found[-1].startswith("[more than 200 lines match")
    desk.put("exact.txt", "thread\n" * 100)
    assert len(desk.ok("grep", pattern="thread").splitlines()) == 100
    desk.put("wide.txt", "x" * 5000 + "needle" + "y" * 5000 + "\n")
    line = desk.ok("grep", pattern="needle", path="wide.txt")
    assert len(line) < 400 and "…xxx" in line and "xneedley" in line and line.endswith("yyy…")


def test_more_than_one_batch_is_searched(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proofstone.agents.tools.grep._BATCH_BYTES", 1000)
    for number in range(4):
        desk.put(f"{number}.txt", ("x" * 99 + "\n") * 8 + f"needle {number}\n")
    assert desk.ok("grep", pattern="needle").splitlines() == [f"{n}.txt:9: needle {n}" for n in range(4)]


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|aa)+$", "(.*)*b$"])
def test_a_pathological_pattern_is_ended_in_time(desk: Desk, pattern: str) -> None:
    desk.put("a.txt", "a" * 5000 + "!\n")
    result = desk.call("grep", 1.0, pattern=pattern)
    assert result.ok and "matching takes too long" in result.text


def test_a_search_that_runs_out_of_time_never_says_that_there_is_nothing(desk: Desk) -> None:
    desk.put("a.py", "y = 1\n")
    tree, over = FileTree(ToolContext(files=desk.files)), ToolDeadline(0.0, threading.Event())
    answers = [
        grep(tree, GrepArguments(pattern="x"), over),
        find_files(tree, GlobArguments(pattern="*.md"), over),
        show_symbols(tree, SymbolsArguments(name="gone"), over),
    ]
    for answer in answers:
        assert answer.startswith("The search was stopped before it had seen everything.")
        assert "stopped after time, at" in answer
    for name in ("gone", "module.gone"):
        checked = check_definition(tree, name, "", over)
        assert (checked.holds, checked.where) == (None, "The search was stopped before it had seen everything.")


def test_a_search_that_is_stopped_ends(desk: Desk) -> None:
    desk.put("a.txt", "a" * 5000 + "!\n")
    threading.Timer(0.3, desk.cancel.set).start()
    assert "stopped" in desk.failed("grep", pattern="(a+)+$")

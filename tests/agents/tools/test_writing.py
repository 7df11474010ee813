"""Write, edit and delete do what they say, and nothing else."""

from __future__ import annotations

import os
import stat

import pytest

from tests.agents.tools.desk import Desk


def test_a_file_is_made_with_the_folders_on_the_way(desk: Desk) -> None:
    assert desk.ok("write", path="src/new/a.py", content="x\ny\n") == "Made src/new/a.py: 2 lines."
    assert (desk.files / "src/new/a.py").read_bytes() == b"x\ny\n"
    assert desk.ok("write", path="src/new/a.py", content="z") == "Wrote src/new/a.py: 1 line."
    assert desk.ok("write", path="src/new/a.py", content="") == "Wrote src/new/a.py: 0 lines."
    assert [path.name for path in (desk.files / "src/new").iterdir()] == ["a.py"]


@pytest.mark.parametrize("mode", [0o644, 0o755, 0o600])
def test_a_file_keeps_its_mode(desk: Desk, mode: int) -> None:
    path = desk.put("run.sh", "echo\n")
    path.chmod(mode)
    desk.ok("write", path="run.sh", content="true\n")
    desk.ok("edit", path="run.sh", old="true", new="false")
    assert stat.S_IMODE(path.stat().st_mode) == mode and path.read_text() == "false\n"


def test_another_name_of_the_same_file_keeps_what_it_holds(desk: Desk) -> None:
    """Checkouts may share files by hard links."""
    path = desk.put("a.txt", "old\n")
    other = desk.folder / "shared.txt"
    other.hardlink_to(path)
    desk.ok("write", path="a.txt", content="new\n")
    assert other.read_text() == "old\n"


def test_what_is_no_file_is_not_written(desk: Desk) -> None:
    desk.put("src/a.txt")
    assert "is a folder" in desk.failed("write", path="src", content="x")
    assert desk.failed("write", path="src/a.txt/b.txt", content="x").endswith("Not a directory.")
    assert "root is a folder" in desk.failed("write", path=".", content="x")
    assert "is a folder" in desk.failed("delete", path="src")
    assert "There is no" in desk.failed("delete", path="gone.txt")
    assert [path.name for path in desk.files.iterdir()] == ["src"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written_is_said(desk: Desk) -> None:
    desk.put("src/a.txt")
    (desk.files / "src").chmod(0o500)
    assert "Permission denied" in desk.failed("write", path="src/b.txt", content="x")


def test_losing_crlf_is_said(desk: Desk) -> None:
    desk.put("a.txt", "a\r\nb\r\n")
    assert desk.ok("write", path="a.txt", content="a\nb\n").endswith(
        "[the lines of the file ended in CRLF; now they end in LF]"
    )
    desk.put("a.txt", "a\r\nb\r\n")
    assert desk.ok("write", path="a.txt", content="a\r\nb\r\n") == "Wrote a.txt: 2 lines."


@pytest.mark.parametrize(
    ("before", "old", "new", "after"),
    [
        (b"a b c\n", "b", "B", b"a B c\n"),
        (b"a\nb\nc\n", "a\nb\n", "", b"c\n"),
        (b"a\r\nb\r\n", "a\nb", "x\ny", b"x\r\ny\r\n"),
        (b"a\r\nb\r\n", "a", "x\ny", b"x\ny\r\nb\r\n"),
        (b"caf\xe9 b\n", "b", "c", b"caf\xe9 c\n"),
        (b"a.*b\n", ".*", "\\1", b"a\\1b\n"),
        ("☃\n".encode(), "☃", "é", "é\n".encode()),
        (b"no end", "end", "more", b"no more"),
    ],
)
def test_a_piece_is_replaced_to_the_letter(desk: Desk, before: bytes, old: str, new: str, after: bytes) -> None:
    path = desk.put("a.txt", before)
    desk.ok("edit", path="a.txt", old=old, new=new)
    assert path.read_bytes() == after


def test_a_piece_that_is_there_twice_is_not_replaced_unless_all_are(desk: Desk) -> None:
    path = desk.put("a.txt", "x = 1\ny = 2\nx = 1\n")
    said = desk.failed("edit", path="a.txt", old="x = 1", new="x = 2")
    assert "2 times" in said and "lines 1, 3" in said and path.read_text() == "x = 1\ny = 2\nx = 1\n"
    assert desk.ok("edit", path="a.txt", old="x = 1", new="x = 2", all=True) == "Changed a.txt: lines 1, 3."
    assert path.read_text() == "x = 2\ny = 2\nx = 2\n"


def test_a_piece_that_overlaps_itself_is_there_twice(desk: Desk) -> None:
    desk.put("a.txt", "aaa\n")
    assert "2 times" in desk.failed("edit", path="a.txt", old="aa", new="b")
    desk.put("b.txt", "a" * 1_000_000)
    assert "100 times or more" in desk.failed("edit", path="b.txt", old="a" * 500_000, new="b")


def test_a_piece_that_is_not_there_is_answered_with_lines_like_it(desk: Desk) -> None:
    path = desk.put("a.py", "import os\n\ndef  greet(name):\n    return name\n")
    said = desk.failed("edit", path="a.py", old="def greet(name):\n    return 1", new="x")
    assert "Nothing was changed" in said and "3\tdef  greet(name):" in said
    assert "4\t    return name" in desk.failed("edit", path="a.py", old="\treturn name\n", new="x")
    assert "Read the file again" in desk.failed("edit", path="a.py", old="zzzzzzzzzz", new="x")
    assert path.read_text() == "import os\n\ndef  greet(name):\n    return name\n"


def test_a_file_does_not_grow_past_the_limit(desk: Desk) -> None:
    path = desk.put("a.txt", "x" * 1000)
    assert "would have" in desk.failed("edit", path="a.txt", old="x", new="y" * 2000, all=True)
    assert path.read_text() == "x" * 1000
    assert "There is no new.txt" in desk.failed("edit", path="new.txt", old="a", new="b")

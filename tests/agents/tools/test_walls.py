"""No path and no link leads out of the ground, for reading or for writing."""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from proofstone.agents.models import RefusalRule
from tests.agents.tools.desk import CANARY, Desk

_LIBC = ctypes.CDLL(None, use_errno=True)
_HERE = -100
T = TypeVar("T")

TRAVERSALS = [
    "..",
    "../canary.txt",
    "../beside/canary.txt",
    "./../canary.txt",
    "src/../../canary.txt",
    "src/../a.txt",
    "src/./.././../canary.txt",
    "src//..//..//canary.txt",
    "../ground/../canary.txt",
    "src/..",
    "../" * 50 + "etc/passwd",
    "/etc/passwd",
    "//etc/passwd",
    "/",
    "/proc/self/environ",
    "/proc/self/cwd/a.txt",
    "/proc/self/root/etc/passwd",
    "/dev/stdin",
    "a.txt\0",
    "a.txt\0/../../canary.txt",
    "\0",
    "a" * 256,
    "é" * 128,
    "a/" * 3000 + "b",
    ".git/config",
    ".git",
    "./.git/HEAD",
    "vendor/lib/.git/config",
    ".GIT/config",
    "src/.Git",
]

LINKS = {
    "file": ("out", "../canary.txt"),
    "deeper file": ("src/out", "../../canary.txt"),
    "absolute file": ("out", "{folder}/canary.txt"),
    "absolute into the ground": ("out", "{folder}/ground/a.txt"),
    "proc": ("out", "/proc/self/environ"),
    "into .git": ("out", ".git/config"),
    "winding": ("out", "src/../../ground/../canary.txt"),
    "to itself": ("out", "out"),
}

READS: list[tuple[str, dict[str, Any]]] = [
    ("read", {}),
    ("list", {}),
    ("glob", {"pattern": "**"}),
    ("grep", {"pattern": "."}),
    ("symbols", {"name": "canary"}),
    ("symbols", {}),
]
WRITES: list[tuple[str, dict[str, Any]]] = [
    ("write", {"content": "overwritten"}),
    ("edit", {"old": "canary", "new": "overwritten", "all": True}),
]
DELETES: list[tuple[str, dict[str, Any]]] = [("delete", {})]


def prepared(desk: Desk) -> dict[str, str]:
    desk.put("a.txt")
    desk.put("src/a.txt")
    desk.put(".git/config", CANARY)
    desk.put("vendor/lib/.git/config", CANARY)
    return desk.beside()


@pytest.mark.parametrize("path", TRAVERSALS, ids=lambda path: repr(path[:30]))
@pytest.mark.parametrize(("tool", "arguments"), [*READS, *WRITES, *DELETES])
def test_a_path_that_leads_out_is_refused(desk: Desk, tool: str, arguments: dict[str, Any], path: str) -> None:
    before = prepared(desk)
    result = desk.call(tool, path=path, **arguments)
    assert result.refused is RefusalRule.OUTSIDE
    assert CANARY not in result.text and "from its root" in result.text
    assert desk.beside() == before and (desk.files / ".git/config").read_text() == CANARY


@pytest.mark.parametrize(("name", "to"), LINKS.values(), ids=LINKS)
@pytest.mark.parametrize(("tool", "arguments"), [*READS, *WRITES])
def test_a_link_that_leads_out_is_refused(desk: Desk, tool: str, arguments: dict[str, Any], name: str, to: str) -> None:
    before = prepared(desk)
    desk.link(name, to.format(folder=desk.folder))
    result = desk.call(tool, path=name, **arguments)
    assert result.refused is RefusalRule.OUTSIDE and CANARY not in result.text
    assert desk.beside() == before


@pytest.mark.parametrize("to", ["../beside", "{folder}/beside", "one"])
@pytest.mark.parametrize(("tool", "arguments"), [*READS, *WRITES, *DELETES])
def test_a_folder_behind_a_link_that_leads_out_is_refused(
    desk: Desk, tool: str, arguments: dict[str, Any], to: str
) -> None:
    """Also behind a chain of links."""
    before = prepared(desk)
    desk.link("one", "src/two")
    desk.link("src/two", "../three")
    desk.link("three", "../beside")
    desk.link("out", to.format(folder=desk.folder))
    result = desk.call(tool, path="out/canary.txt", **arguments)
    assert result.refused is RefusalRule.OUTSIDE and CANARY not in result.text
    assert desk.beside() == before


def test_searches_do_not_follow_links(desk: Desk) -> None:
    prepared(desk)
    desk.link("file", "../canary.txt")
    desk.link("folder", "../beside")
    assert CANARY not in desk.ok("grep", pattern="canary")
    assert desk.ok("glob", pattern="**/canary*").startswith("No file matches")
    assert "Nothing called" in desk.ok("symbols", name="the")
    assert desk.ok("list").splitlines() == ["a.txt", "file -> ../canary.txt", "folder -> ../beside", "src/", "vendor/"]


def test_what_git_keeps_for_itself_is_not_searched(desk: Desk) -> None:
    prepared(desk)
    assert CANARY not in desk.ok("grep", pattern="canary") and ".git" not in desk.ok("glob", pattern="**")


def test_a_link_that_stays_within_is_read(desk: Desk) -> None:
    desk.put("src/deep/a.txt", "hello\n")
    desk.link("here", "src/deep/../deep/a.txt")
    desk.link("folder", "./src")
    assert desk.ok("read", path="here") == "1\thello"
    assert desk.ok("read", path="folder/deep/a.txt") == "1\thello"
    assert desk.ok("list", path="folder/deep") == "a.txt"


@pytest.mark.parametrize("path", ["here", "folder/a.txt", "folder/new.txt", "dangling"])
def test_nothing_is_written_through_a_link(desk: Desk, path: str) -> None:
    desk.put("src/a.txt", "hello\n")
    desk.link("here", "src/a.txt")
    desk.link("folder", "src")
    desk.link("dangling", "src/made.txt")
    assert "real path is src/" in desk.failed("write", path=path, content="overwritten")
    assert (desk.files / "src/a.txt").read_text() == "hello\n"
    assert [path.name for path in (desk.files / "src").iterdir()] == ["a.txt"]


def test_a_link_is_deleted_and_not_what_it_leads_to(desk: Desk) -> None:
    desk.link("out", "../canary.txt")
    desk.link("folder", "../beside")
    assert desk.ok("delete", path="out") and desk.ok("delete", path="folder")
    assert not any(desk.files.iterdir()) and desk.canary.read_text() == CANARY and (desk.folder / "beside").is_dir()


def test_a_root_that_was_replaced_by_a_link_is_not_entered(desk: Desk) -> None:
    desk.files.rmdir()
    desk.files.symlink_to(desk.folder / "beside")
    for tool, arguments in (*READS, *WRITES, *DELETES):
        result = desk.call(tool, path="canary.txt", **arguments)
        assert not result.ok and CANARY not in result.text
    assert (desk.folder / "beside" / "canary.txt").read_text() == CANARY


def exchanged(one: Path, other: Path) -> None:
    """Both at once, so that there is never nothing."""
    at_once = 2
    outcome = _LIBC.renameat2(_HERE, os.fsencode(one), _HERE, os.fsencode(other), at_once)
    assert outcome == 0, os.strerror(ctypes.get_errno())


def outcomes(call: Callable[[], T], until: T) -> set[T]:
    """Of a hundred tries, and as many more as it takes to meet the harmless side of the exchange."""
    seen: set[T] = set()
    for number in range(10_000):
        seen.add(call())
        if number > 100 and until in seen:
            break
    return seen


@pytest.mark.parametrize("swapped", ["x", "x/canary.txt"])
def test_a_link_that_is_swapped_in_between_never_leads_out(desk: Desk, swapped: str) -> None:
    """Somebody exchanges a folder or a file for a link to one outside, as fast as they can."""
    desk.put("x/canary.txt", "harmless\n")
    desk.link("other", "../../canary.txt" if "/" in swapped else "../beside")
    over = threading.Event()

    def exchange() -> None:
        while not over.is_set():
            exchanged(desk.files / swapped, desk.files / "other")

    before = desk.beside()
    swapping = threading.Thread(target=exchange)
    swapping.start()
    try:
        read = outcomes(lambda: desk.call("read", path="x/canary.txt").text, "1\tharmless")
        written = outcomes(lambda: desk.call("write", path="x/canary.txt", content="written\n").ok, True)
        found = {desk.call("grep", pattern="canary", path="x").text for _ in range(3)}
    finally:
        over.set()
        swapping.join()
    assert not any(CANARY in text for text in read | found)
    assert "1\tharmless" in read and True in written
    assert desk.beside() == before


def test_a_pipe_is_not_waited_for(desk: Desk) -> None:
    os.mkfifo(desk.files / "pipe")
    assert "is a pipe" in desk.failed("read", path="pipe")
    assert "is a pipe" in desk.failed("write", path="pipe", content="x")
    assert desk.ok("grep", pattern="x") == "Nothing matches in 0 files."


_PIECES = st.sampled_from(
    [
        "..",
        ".",
        "",
        "/",
        "a.txt",
        "src",
        "out",
        "folder",
        "canary.txt",
        "ground",
        "beside",
        ".git",
        "~",
        "\0",
        "\\",
        "%2e%2e",
    ]
)
_PATHS = st.one_of(st.text(max_size=40), st.lists(_PIECES | st.text(max_size=5), max_size=8).map("/".join))


@given(path=_PATHS, link=st.lists(_PIECES, min_size=1, max_size=6).map("/".join))
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_the_path_nothing_outside_is_read_or_written(
    tmp_path_factory: pytest.TempPathFactory, path: str, link: str
) -> None:
    desk = Desk(tmp_path_factory.mktemp("desk"))
    desk.put("a.txt")
    desk.put("src/a.txt")
    desk.link("out", link.replace("\0", "") or ".")
    desk.link("folder", "../beside")
    before = desk.beside()
    for tool, arguments in (*READS, *DELETES, *WRITES):
        assert CANARY not in desk.call(tool, path=path, **arguments).text
        assert CANARY not in desk.call(tool, path=f"out/{path}", **arguments).text
    assert desk.beside() == before


def test_a_long_way_down_is_said_and_not_walked(desk: Desk) -> None:
    desk.put("a.txt", "x\n")
    deep = desk.files
    for _ in range(150):
        deep /= "d"
        deep.mkdir()
    (deep / "bottom.txt").write_text("x\n")
    said = desk.ok("glob", pattern="**/*.txt")
    assert said.startswith("a.txt\n[skipped: d/d/") and "nested too deeply" in said
    assert Path(desk.ok("read", path="/".join(["d"] * 150) + "/bottom.txt")).name == "1\tx"

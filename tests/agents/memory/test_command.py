"""`proofstone memory`: what is remembered is shown as data, and forgotten when a person says so."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from proofstone.agents.memory.rules.consolidation import consolidate
from proofstone.agents.memory.store import FileMemory, memory_path
from tests.agents.memory.making import PROCEDURAL, entry, failure, moment
from tests.workshop import proofstone


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def memory(home: Path) -> FileMemory:
    memory = FileMemory(memory_path(home))
    memory.write(entry("won", "count the rows", at=1, run="r1", cost=0.5, tags=("tool:grep",)))
    memory.write(failure("lost", "push the branch", at=2, tags=("tool:shell", "target:a b")))
    memory.write(entry("how", "rows are counted by wc", at=3, type=PROCEDURAL))
    return memory


def run(home: Path, *words: str, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return proofstone("memory", *words, home=home, env=env)


def document(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    assert (done.returncode, done.stderr) == (0, "")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def ids(done: subprocess.CompletedProcess[str], key: str = "entries") -> list[str]:
    return [one["entry_id"] for one in document(done)[key]]


@pytest.mark.usefixtures("memory")
def test_a_list_is_newest_first_with_what_each_says_and_where_it_comes_from(home: Path) -> None:
    done = run(home, "list")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (
        "how  procedural, worked  2026-01-01T00:00:03Z\n"
        "  rows are counted by wc\n\n"
        "lost  procedural, failed  2026-01-01T00:00:02Z\n"
        "  push the branch\n"
        "  tool:shell target:a b; run run of lost\n\n"
        "won  episodic, worked  2026-01-01T00:00:01Z\n"
        "  count the rows\n"
        "  tool:grep; run r1; cost 0.5\n\n"
        "3 entries\n"
    )


@pytest.mark.usefixtures("memory")
@pytest.mark.parametrize(
    ("words", "found", "total"),
    [
        (("list",), ["how", "lost", "won"], 3),
        (("list", "--limit", "2"), ["how", "lost"], 3),
        (("list", "--type", "procedural"), ["how", "lost"], 2),
        (("list", "--type", "procedural", "--limit", "1"), ["how"], 2),
        (("list", "--type", "semantic"), [], 0),
        (("search", "count", "ROWS"), ["how", "won"], 2),
        (("search", "counting rows", "--limit", "1"), ["how"], 2),
        (("search", "rows", "--type", "procedural"), ["how"], 1),
        (("search", "shell"), ["lost"], 1),
        (("search", "nothing"), [], 0),
        (("search", " "), [], 0),
    ],
)
def test_what_is_listed_and_found(home: Path, words: tuple[str, ...], found: list[str], total: int) -> None:
    done = run(home, *words, "--json")
    assert ids(done) == found
    assert document(done)["total"] == total


@pytest.mark.usefixtures("memory")
def test_that_there_are_more_is_said(home: Path) -> None:
    assert run(home, "list", "--limit", "1").stdout.endswith("1 entry of 3; --limit shows more\n")


def test_where_nothing_is_remembered_it_is_said_and_nothing_is_made(home: Path) -> None:
    assert run(home, "list").stdout == "the memory is empty\n"
    assert run(home, "search", "rows").stdout == "no entry matches rows\n"
    assert not memory_path(home).exists()


def test_text_of_an_entry_drives_no_terminal_and_looks_like_no_other_entry(home: Path, memory: FileMemory) -> None:
    memory.write(entry("bad\x1b[2J", "one\x1b[31m\ntwo  episodic, worked\r" + "x" * 900, at=9, tags=("t\x07\n",)))
    page = run(home, "list", "--limit", "1").stdout
    assert "\x1b" not in page and "\x07" not in page and "\r" not in page
    assert r"bad\x1b[2J" in page and r"one\x1b[31m\ntwo" in page and "more characters]" in page
    assert len(page.splitlines()) == 5


def test_forgetting_says_what_was_forgotten_and_it_is_gone(home: Path, memory: FileMemory) -> None:
    done = run(home, "forget", "won", "lost")
    assert (done.returncode, done.stderr) == (0, "")
    assert "count the rows" in done.stdout and "push the branch" in done.stdout
    assert done.stdout.endswith("forgotten: 2 entries\n")
    assert [one.entry_id for one in memory.entries()] == ["how"]
    assert b"branch" not in memory.path.read_bytes()


def test_an_id_that_is_not_known_is_bad_input_and_nothing_is_forgotten(home: Path, memory: FileMemory) -> None:
    done = run(home, "forget", "won", "wom")
    assert done.returncode == 2
    assert "no entry wom; nothing was forgotten" in done.stderr and "there are: how, lost, won;" in done.stderr
    assert len(memory.entries()) == 3
    for number in range(9):
        memory.write(entry(f"e{number}"))
    assert "there are: e8, e7, e6, e5, e4 and 7 more" in run(home, "forget", "wom").stderr


def test_forgetting_in_an_empty_memory_says_that_it_is_empty(home: Path) -> None:
    for words in (("won",), ("--all-of", "r1")):
        done = run(home, "forget", *words)
        assert done.returncode == 2 and "the memory is empty" in done.stderr


def test_all_of_a_run_is_forgotten(home: Path, memory: FileMemory) -> None:
    memory.write(entry("too", "something else", at=4, run="r1"))
    assert ids(run(home, "forget", "--all-of", "r1", "--json"), "forgotten") == ["won", "too"]
    assert [one.entry_id for one in memory.entries()] == ["lost", "how"]
    done = run(home, "forget", "--all-of", "r1")
    assert done.returncode == 2
    assert "--all-of r1: there is no entry of such a run" in done.stderr and "there are: run of lost;" in done.stderr


@pytest.mark.parametrize("words", [("won",), ("--all-of", "r1"), ("again",), ("--all-of", "r2")])
def test_a_lesson_goes_with_what_it_was_made_of(home: Path, memory: FileMemory, words: tuple[str, ...]) -> None:
    memory.write(entry("again", "count the rows", at=5, run="r2"))
    [lesson] = memory.revise(lambda entries: consolidate(entries, moment(9))).new
    page = run(home, "list", "--type", "semantic").stdout
    assert "made from 2 entries, weight 1.00" in page and "by dreamer" in page
    assert ids(run(home, "forget", *words, "--json"), "forgotten") == [lesson.entry_id]
    assert b"count the rows" not in memory.path.read_bytes()


@pytest.mark.parametrize("words", [(), ("won", "--all-of", "r1")])
def test_it_must_be_said_what_to_forget(home: Path, memory: FileMemory, words: tuple[str, ...]) -> None:
    done = run(home, "forget", *words)
    assert done.returncode == 2 and "say what to forget" in done.stderr
    assert len(memory.entries()) == 3


def test_an_executor_forgets_nothing_and_may_look(home: Path, memory: FileMemory) -> None:
    executor = {"PROOFSTONE_TASK": "task.json"}
    done = run(home, "forget", "won", env=executor)
    assert done.returncode == 2 and "only a person may do this" in done.stderr
    assert len(memory.entries()) == 3
    assert run(home, "list", env=executor).returncode == 0


def test_a_file_that_somebody_edited_is_named_with_its_line(home: Path, memory: FileMemory) -> None:
    memory.path.write_text("not JSON\n")
    for words in (("list",), ("search", "rows"), ("forget", "won")):
        done = run(home, *words)
        assert done.returncode == 2 and "entries.jsonl, line 1: not a memory entry" in done.stderr


@pytest.mark.parametrize("words", [("list", "--type", "dreamt"), ("list", "--limit", "0"), ("search",)])
def test_a_wrong_command_line_is_bad_input(home: Path, words: tuple[str, ...]) -> None:
    assert run(home, *words).returncode == 2

"""The memory in a file: what was written stays, what is searched for is found, what is forgotten is gone."""

from __future__ import annotations

import stat
import threading
from pathlib import Path

import pytest

from proofstone.agents.memory.models import MemoryEntry, MemoryRevision, MemoryStore, MemoryType
from proofstone.agents.memory.store import FileMemory, memory_path
from proofstone.errors import InputError, MachineError


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return memory_path(tmp_path / "home")


@pytest.fixture
def memory(path: Path) -> FileMemory:
    return FileMemory(path)


def entry(id: str, content: str = "words", *, tags: tuple[str, ...] = (), cost: float = 0.0) -> MemoryEntry:
    return MemoryEntry(
        entry_id=id,
        task_id="task-01",
        type=MemoryType.PROCEDURAL,
        content=content,
        criteria_met=True,
        timestamp="2026-01-01T00:00:00Z",
        tags=tags,
        cost=cost,
    )


def ids(memory: MemoryStore, *words: str, limit: int = 10) -> list[str]:
    return [found.entry_id for found in memory.search(words, limit)]


def test_what_was_written_is_found_by_whoever_opens_it_next(memory: FileMemory, path: Path) -> None:
    written = entry("e1", 'Größe "x" \ud800\n{}', tags=("net", "größe"), cost=0.25)
    memory.write(written)
    assert FileMemory(path).search(("größe",)) == (written,)


def test_nothing_is_there_before_the_first_entry_and_nothing_is_made_by_looking(memory: FileMemory, path: Path) -> None:
    assert memory.search(("words",)) == ()
    assert not path.parent.exists()


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (("proxy", "timeout"), ["both", "newer", "older"]),
        (("PROXY timeout",), ["both", "newer", "older"]),
        (("network",), ["tagged"]),
        (("prox",), []),
        (("nothing", "shared"), []),
        ((), ["tagged", "newer", "both", "older"]),
    ],
)
def test_more_shared_words_come_first_and_the_newest_among_equals(
    memory: FileMemory, words: tuple[str, ...], found: list[str]
) -> None:
    memory.write(entry("older", "the proxy refused"))
    memory.write(entry("both", "a timeout at the proxy"))
    memory.write(entry("newer", "the Proxy accepted"))
    memory.write(entry("tagged", "unrelated", tags=("network",)))
    assert ids(memory, *words) == found
    assert ids(memory, *words, limit=2) == found[:2]


def test_an_id_is_there_once_as_it_was_written_last(memory: FileMemory) -> None:
    for one in (entry("a", "first"), entry("b", "second"), entry("a", "third")):
        memory.write(one)
    assert [(found.entry_id, found.content) for found in memory.search(())] == [("a", "third"), ("b", "second")]


def test_what_is_forgotten_is_gone_from_the_file(memory: FileMemory, path: Path) -> None:
    for one in (entry("a", "secret"), entry("b"), entry("a", "secret again")):
        memory.write(one)
    memory.revise(lambda _: MemoryRevision(superseded=("a",)))
    assert ids(memory) == ["b"]
    assert b"secret" not in path.read_bytes()
    assert sorted(file.name for file in path.parent.iterdir()) == ["entries.jsonl", "lock"]


def test_half_a_line_that_a_crash_left_counts_as_nothing(memory: FileMemory, path: Path) -> None:
    memory.write(entry("a"))
    whole = path.read_bytes()
    path.write_bytes(whole + whole[: len(whole) // 2])
    assert ids(memory) == ["a"]
    memory.write(entry("b"))
    assert ids(memory) == ["b", "a"]
    assert path.read_bytes().startswith(whole)


@pytest.mark.parametrize("line", [b"{", b"\xff\xfe", b"[]", b'{"entry_id": "x"}', b""])
def test_a_line_that_is_no_entry_is_named(memory: FileMemory, path: Path, line: bytes) -> None:
    memory.write(entry("a"))
    path.write_bytes(path.read_bytes() + line + b"\n")
    with pytest.raises(InputError, match=r"entries\.jsonl, line 2: not a memory entry"):
        memory.search(())


def test_when_it_has_grown_too_large_the_oldest_go(path: Path) -> None:
    memory = FileMemory(path, max_bytes=4000)
    for number in range(100):
        memory.write(entry(f"e{number:03}", "x" * 50))
        assert path.stat().st_size <= 4000
    kept = ids(memory, limit=100)
    assert kept == [f"e{number:03}" for number in range(99, 99 - len(kept), -1)]
    assert len(kept) >= 5


def test_an_entry_that_is_too_large_is_refused_and_nothing_is_lost(memory: FileMemory) -> None:
    memory.write(entry("a"))
    with pytest.raises(InputError, match="entry big has"):
        memory.write(entry("big", "x" * 70_000))
    assert ids(memory) == ["a"]


def test_it_is_for_its_owner_only(memory: FileMemory, path: Path) -> None:
    memory.write(entry("a"))
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_a_place_that_cannot_be_written_to_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(MachineError, match="cannot be written to"):
        FileMemory(tmp_path / "file" / "entries.jsonl").write(entry("a"))


def test_several_writers_lose_nothing(path: Path) -> None:
    def work(name: str) -> None:
        for number in range(20):
            FileMemory(path).write(entry(f"{name}-{number}"))

    threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(ids(FileMemory(path), limit=100)) == 80

"""The memory is revised as one: under the lock, all or nothing, whoever else writes and whatever crashes."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from proofstone.agents.memory.models import MemoryEntry, MemoryRevision
from proofstone.agents.memory.rules.consolidation import consolidate
from proofstone.agents.memory.store import FileMemory, memory_path
from proofstone.errors import InputError
from tests.agents.memory.making import SEMANTIC, entry, moment


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return memory_path(tmp_path / "home")


@pytest.fixture
def memory(path: Path) -> FileMemory:
    return FileMemory(path)


def consolidated(memory: FileMemory, now: str = moment(50_000)) -> MemoryRevision:
    return memory.revise(lambda entries: consolidate(entries, now))


def ids(memory: FileMemory) -> list[str]:
    return [one.entry_id for one in memory.entries()]


def test_entries_are_there_in_the_order_in_which_they_were_written(memory: FileMemory) -> None:
    for id in "abca":
        memory.write(entry(id))
    assert ids(memory) == ["b", "c", "a"]


def test_what_is_new_comes_last_and_what_is_superseded_is_gone_from_the_file(memory: FileMemory, path: Path) -> None:
    for one in (entry("a", "secret"), entry("b", "old"), entry("c")):
        memory.write(one)
    wanted = MemoryRevision(new=(entry("b", "changed"), entry("d")), superseded=("a", "unknown"))
    assert memory.revise(lambda _: wanted) == wanted
    assert [(one.entry_id, one.content) for one in memory.entries()][:2] == [
        ("c", entry("c").content),
        ("b", "changed"),
    ]
    assert ids(memory) == ["c", "b", "d"]
    assert b"secret" not in path.read_bytes() and b"old" not in path.read_bytes()


def test_a_rule_sees_everything_and_if_it_fails_nothing_has_changed(memory: FileMemory, path: Path) -> None:
    memory.write(entry("a"))
    before = path.read_bytes()

    def refuse(entries: tuple[MemoryEntry, ...]) -> MemoryRevision:
        raise InputError(f"no: {[one.entry_id for one in entries]}")

    with pytest.raises(InputError, match=r"no: \['a'\]"):
        memory.revise(refuse)
    with pytest.raises(InputError, match="entry big has"):
        memory.revise(lambda _: MemoryRevision(new=(entry("big", "x" * 70_000),), superseded=("a",)))
    assert path.read_bytes() == before
    memory.write(entry("b"))  # the lock is free again
    assert ids(memory) == ["a", "b"]


def test_a_revision_of_nothing_touches_nothing(memory: FileMemory, path: Path) -> None:
    assert consolidated(memory) == MemoryRevision()
    assert not path.exists()
    memory.write(entry("a"))
    before = path.stat()
    assert consolidated(memory) == MemoryRevision()
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_a_revised_memory_is_bounded_too_and_the_newest_stay(path: Path) -> None:
    memory = FileMemory(path, max_bytes=4000)
    memory.write(entry("old"))
    memory.revise(lambda _: MemoryRevision(new=tuple(entry(f"e{n:02}", "x" * 50) for n in range(30))))
    assert path.stat().st_size <= 4000
    assert ids(memory)[-1] == "e29" and "old" not in ids(memory) and len(ids(memory)) >= 5


def test_consolidating_is_kept_and_doing_it_again_changes_not_a_byte(memory: FileMemory, path: Path) -> None:
    for number in range(4):
        memory.write(entry(f"e{number}", at=number, run=f"r{number}"))
    assert consolidated(memory).superseded == ("e0", "e1", "e2", "e3")
    [lesson] = memory.entries()
    assert (lesson.type, lesson.sources) == (SEMANTIC, ("e0", "e1", "e2", "e3"))
    before = path.read_bytes()
    assert consolidated(memory) == MemoryRevision()
    assert path.read_bytes() == before
    assert FileMemory(path).search(("rows",)) == (lesson,)


def test_files_from_before_there_were_lessons_are_read(memory: FileMemory, path: Path) -> None:
    path.parent.mkdir(parents=True)
    path.write_text(
        '{"content":"words","cost":0.0,"criteria_met":true,"entry_id":"a","tags":["x"],"task_id":"t",'
        '"timestamp":"2026-01-01T00:00:00Z","type":"procedural"}\n'
    )
    [old] = memory.entries()
    assert (old.run_id, old.role, old.sources, old.weight) == ("", "", (), 1.0)
    memory.write(entry("b"))
    assert ids(memory) == ["a", "b"]


@pytest.mark.parametrize("field", ['"weight":1.5', '"weight":-1', '"weight":NaN', '"cost":NaN', '"type":"dreamt"'])
def test_a_line_with_a_value_that_cannot_be_is_named(memory: FileMemory, path: Path, field: str) -> None:
    memory.write(entry("a"))
    line = path.read_text().rstrip("}\n")
    path.write_text(f"{line},{field}}}\n")
    with pytest.raises(InputError, match=r"entries\.jsonl, line 1: not a memory entry"):
        memory.entries()


def test_what_a_crash_left_of_a_revision_is_removed_by_the_next(memory: FileMemory, path: Path) -> None:
    memory.write(entry("a"))
    (path.parent / "tmp-0123").write_text("a secret that was forgotten")
    memory.revise(lambda _: MemoryRevision(superseded=("a",)))
    assert sorted(file.name for file in path.parent.iterdir()) == ["entries.jsonl", "lock"]


def test_writers_and_whoever_consolidates_lose_nothing_of_each_other(path: Path) -> None:
    def write(name: str) -> None:
        for number in range(15):
            FileMemory(path).write(entry(f"{name}-{number}", f"{name} rows", at=number))

    def dream() -> None:
        for _ in range(15):
            consolidated(FileMemory(path))

    threads = [threading.Thread(target=write, args=(name,)) for name in ("alpha", "beta", "gamma")]
    threads += [threading.Thread(target=dream) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    consolidated(FileMemory(path))
    lessons = FileMemory(path).entries()
    assert sorted(one.content for one in lessons) == ["alpha rows", "beta rows", "gamma rows"]
    assert sorted(len(one.sources) for one in lessons) == [15, 15, 15]


WRITER = """
import sys
from pathlib import Path
from proofstone.agents.memory.store import FileMemory
from proofstone.agents.memory.rules.consolidation import consolidate
from tests.agents.memory.making import entry, moment

memory = FileMemory(Path(sys.argv[1]))
for number in range(100_000):
    memory.write(entry(f"{sys.argv[2]}-{number}", f"rows {number % 5}", at=number))
    print(f"{sys.argv[2]}-{number}", flush=True)
    memory.revise(lambda entries: consolidate(entries, moment(number)))
"""


def test_whenever_it_is_killed_everything_that_was_acknowledged_is_there(path: Path) -> None:
    acknowledged = []
    for kill in range(4):
        command = [sys.executable, "-c", WRITER, str(path), f"k{kill}"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[3]) as writer:
            assert writer.stdout is not None
            acknowledged += [writer.stdout.readline().strip() for _ in range(7 + 3 * kill)]
            writer.kill()
            acknowledged += [line.strip() for line in writer.stdout]
        entries = FileMemory(path).entries()
        there = {id for one in entries for id in (one.entry_id, *one.sources)}
        assert set(acknowledged) <= there
        assert len(acknowledged) >= 7

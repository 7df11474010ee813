"""What the memory says to a planner: the newest of what is about the task, as MUST NOT and SHOULD PREFER."""

from __future__ import annotations

import random

import pytest

from proofstone.agents.memory.models import MemoryType
from proofstone.agents.memory.rules.calibration import MAX_USED_ENTRIES, Calibration, calibrate
from proofstone.agents.memory.rules.consolidation import (
    HALF_LIFE,
    MIN_USED_WEIGHT,
    EntryAges,
)
from proofstone.agents.memory.rules.words import STOP_WORDS, extract_subject
from tests.agents.memory.making import EPISODIC, PROCEDURAL, SEMANTIC, entry, failure, lesson
from tests.rows import each_row

TASK = ("Count the rows of the table", "how many rows are there in my table?")

ADVICE: dict[tuple[MemoryType, bool], str] = {
    (EPISODIC, True): "prefer",
    (EPISODIC, False): "",
    (PROCEDURAL, True): "",
    (PROCEDURAL, False): "must not",
    (SEMANTIC, True): "prefer",
    (SEMANTIC, False): "must not",
}


@each_row(("type", "met"), ADVICE)
@pytest.mark.seed("control-loop", "memory-calibration")
def test_type_and_success_decide_what_an_entry_counts_as(type: MemoryType, met: bool) -> None:
    found = calibrate([entry("e", type=type, met=met)], TASK)
    says = ADVICE[type, met]
    assert (bool(found.must_not), bool(found.should_prefer)) == (says == "must not", says == "prefer")
    assert found.used == (("e",) if says else ())


@each_row(
    ("content", "words", "counts"),
    [
        ("rows and tables", ("count the rows of the tables",), True),
        ("ROWS, Tables!", ("rows tables",), True),
        ("rows alone", ("count the rows of the tables",), False),
        ("the and of with it", ("the and of with it is",), False),
        ("rows alone", ("rows",), True),
        ("rows alone", ("the rows",), True),
        ("anything", (), False),
        ("anything", ("",), False),
        ("failed (logical): accepted after 2 replans", ("it failed after replans, a logical result",), False),
    ],
)
def test_it_must_share_two_words_that_mean_something(content: str, words: tuple[str, ...], counts: bool) -> None:
    assert calibrate([entry("e", content)], words).used == (("e",) if counts else ())


def test_tags_are_about_something_too_but_not_what_kind_of_tag_they_are() -> None:
    tagged = entry("e", "other", tags=("target:data/rows.csv", "tool:table", "class:logical"))
    assert calibrate([tagged], ("rows table",)).used == ("e",)
    assert calibrate([tagged], ("target tool class",)).used == ()


@pytest.mark.seed("control-loop", "memory-calibration")
def test_the_newest_come_first_and_there_are_at_most_ten() -> None:
    entries = [entry(f"e{n:02}", f"rows table {n}", at=n, task="one") for n in range(MAX_USED_ENTRIES + 5)]
    random.Random(1).shuffle(entries)
    assert calibrate(entries, TASK).used == tuple(f"e{n:02}" for n in range(MAX_USED_ENTRIES + 4, 4, -1))


def test_what_says_nothing_to_the_task_takes_no_place() -> None:
    useful = [entry(f"e{n}", f"rows table {n}", at=n, task="one") for n in range(MAX_USED_ENTRIES)]
    others = [entry("x", "rows table", at=90, met=False), entry("y", "unrelated", at=91)]
    assert len(calibrate([*useful, *others], TASK).used) == MAX_USED_ENTRIES


def test_what_says_the_same_as_a_newer_one_takes_no_place() -> None:
    entries = [entry("old", at=1), entry("new", at=2), failure("other", at=1, tags=())]
    assert calibrate(entries, TASK).used == ("new", "other")


def test_it_does_not_matter_in_which_order_the_entries_come() -> None:
    entries = [failure(f"f{n}", f"rows table {n}", at=n % 4, tags=(f"tool:t{n % 3}",)) for n in range(20)]
    entries += [entry(f"e{n}", f"rows table {n}", at=n % 4, tags=(f"tool:t{n % 3}",)) for n in range(5)]
    first = calibrate(entries, TASK)
    for seed in range(5):
        random.Random(seed).shuffle(entries)
        assert calibrate(entries, TASK) == first


def test_a_must_not_names_its_tools_and_targets_and_those_of_two_runs_are_blocked() -> None:
    tags = ("tool:shell", "target:data/big.csv", "class:logical", "tool:grep", "tool:")
    found = calibrate([failure(id, "rows of the\ntable", tags=tags) for id in ("f", "g")], TASK)
    assert found.must_not == ("tool shell, tool grep, target data/big.csv: rows of the table",)
    assert found.blocked_tools == ("grep", "shell")
    assert found.blocked_targets == ("data/big.csv",)


def test_what_is_blocked_is_in_order() -> None:
    tools = [f"t{n}" for n in range(9)]
    entries = [lesson(f"f{n}", f"rows table {n}", tags=(f"tool:{tool}",)) for n, tool in enumerate(tools)]
    assert calibrate(entries, TASK).blocked_tools == tuple(tools)


def test_what_is_preferred_blocks_nothing() -> None:
    found = calibrate([entry("e", tags=("tool:shell", "target:a"))], TASK)
    assert found == Calibration(
        should_prefer=("tool shell, target a: count the rows of the table",),
        used=("e",),
    )


@pytest.mark.parametrize(("worked_at", "blocked"), [(1, ("shell",)), (2, ()), (3, ())])
def test_a_tool_that_has_worked_since_is_not_blocked(worked_at: int, blocked: tuple[str, ...]) -> None:
    entries = [lesson("f", at=2, tags=("tool:shell",)), entry("e", at=worked_at, tags=("tool:shell", "tool:read"))]
    found = calibrate(entries, TASK)
    assert found.blocked_tools == blocked
    assert len(found.must_not) == 1, "it is still told"


def test_of_several_successes_the_newest_counts() -> None:
    entries = [
        entry("e1", "rows table one", at=1, tags=("tool:shell",)),
        lesson("f", at=2, tags=("tool:shell",)),
        entry("e3", "rows table three", at=3, tags=("tool:shell",)),
    ]
    assert calibrate(entries, TASK).blocked_tools == ()


ONE_RUN, TWO_RUNS = ("r1",), ("r1", "r2")


@pytest.mark.parametrize("of", ["environmental", "logical"])
@pytest.mark.parametrize(("runs", "blocks"), [(ONE_RUN, False), (TWO_RUNS, True)])
def test_what_failed_blocks_nothing_until_a_second_run_has_failed_with_it(
    of: str, runs: tuple[str, ...], blocks: bool
) -> None:
    found = calibrate([lesson("f", tags=("target:data.csv", "tool:shell", f"class:{of}"), runs=runs)], TASK)
    assert (found.blocked_targets, found.blocked_tools) == ((("data.csv",), ("shell",)) if blocks else ((), ()))
    assert len(found.must_not) == 1, "it is told, whether it blocks or not"


@pytest.mark.parametrize(("runs", "blocked"), [(ONE_RUN * 2, ()), (TWO_RUNS, ("shell",))])
@pytest.mark.parametrize("content", ["rows table", "table rows, in other words"])
def test_entries_that_are_no_lesson_count_by_their_runs(
    content: str, runs: tuple[str, ...], blocked: tuple[str, ...]
) -> None:
    one, other = failure("f", "rows table", tags=("tool:shell",)), failure("g", content, tags=("tool:shell",))
    entries = [each.model_copy(update={"run_id": run}) for each, run in zip((one, other), runs, strict=True)]
    assert calibrate(entries, TASK).blocked_tools == blocked


def test_runs_that_failed_before_it_worked_do_not_count() -> None:
    entries = [
        failure("f1", at=1, tags=("tool:shell",)),
        entry("e", at=2, tags=("tool:shell",)),
        failure("f3", at=3, tags=("tool:shell",)),
    ]
    assert calibrate(entries, TASK).blocked_tools == ()
    assert calibrate([*entries, failure("f4", at=4, tags=("tool:shell",))], TASK).blocked_tools == ("shell",)


def test_a_line_is_one_line_and_not_a_page() -> None:
    found = calibrate([entry("e", "rows table\n" * 500)], TASK)
    [line] = found.should_prefer
    assert len(line) == 300 and line.endswith("…") and "\n" not in line


def test_what_no_task_has_confirmed_for_long_binds_nobody() -> None:
    old = failure("old", at=0, tags=("tool:shell",))
    two_half_lives = [entry(f"e{n}", "unrelated", at=n + 1) for n in range(2 * HALF_LIFE)]
    assert EntryAges([old, *two_half_lives]).weight(old) == pytest.approx(MIN_USED_WEIGHT)
    assert calibrate([old, *two_half_lives], TASK).used == ("old",)
    assert calibrate([old, *two_half_lives, entry("one more", "unrelated", at=99)], TASK).used == ()


def test_age_is_counted_in_tasks_and_not_in_entries() -> None:
    old = failure("old", tags=())
    assert EntryAges([old]).weight(old) == 1
    same_task = [old.model_copy(update={"entry_id": f"s{n}", "timestamp": f"2027-{n}"}) for n in range(9)]
    assert EntryAges([old, *same_task]).weight(old) == 1
    one_task = [entry(f"e{n}", at=n + 1, task="one") for n in range(9)]
    assert EntryAges([old, *one_task]).weight(old) == pytest.approx(0.5 ** (1 / HALF_LIFE))
    assert EntryAges([old, *one_task]).weight(one_task[-1]) == 1, "nothing came after it"


def test_stop_words_are_left_out_and_case_does_not_matter() -> None:
    assert extract_subject(("The ROWS of a Straße",)) == {"row", "strass"}
    assert all(word == word.casefold() for word in STOP_WORDS)

from __future__ import annotations

import pytest

from proofstone.plans.order import TaskOrdering, compute_task_waves, find_concurrent_tasks, resolve_dependencies
from tests.plans.reading import element, fixture, read, rules
from tests.rows import each_row


def test_without_a_word_each_waits_for_the_one_before() -> None:
    plan = read(element(name="A") + element(name="B") + element(name="C"))
    assert [(task.depends_on, task.wave) for task in plan.tasks] == [((), 1), (("task-01",), 2), (("task-02",), 3)]


def test_wave_headings_wait_for_the_nearest_lower_wave_that_has_tasks() -> None:
    plan = read(fixture("waves"))
    assert rules(fixture("waves")) == []
    assert [(task.name, task.depends_on, task.wave) for task in plan.tasks] == [
        ("A", (), 1),
        ("B", (), 1),
        ("Task 3: C", ("task-01", "task-02"), 2),
        ("D", ("task-03",), 3),
    ]


def test_wave_headings_of_an_overview_are_not_those_of_the_tasks() -> None:
    text = "## Strategy\n### Wave 1\n### Wave 2\n## Tasks\n" + element(name="A") + element(name="B")
    assert [task.depends_on for task in read(text).tasks] == [(), ("task-01",)]


def test_references_by_number_label_id_and_name() -> None:
    plan = read(fixture("graph"))
    assert rules(fixture("graph")) == []
    assert [(task.depends_on, task.wave) for task in plan.tasks] == [
        ((), 1),
        ((), 1),
        (("task-01", "task-02"), 2),
        (("task-02",), 2),
        (("task-01", "task-04"), 3),  # `task-3` is the one that calls itself Task 3, not the third
    ]
    assert plan.tasks[4].flaky_allowed


@each_row("reference", ["1", "#1", "01", "task-1", "Task 1", "task-01", "TASK_1", "Make the id", "[1]", "'1'"])
def test_every_way_to_name_a_task(reference: str) -> None:
    text = element(name="Task 1: Make the id") + element(name="B", attributes=f'depends_on="{reference}"')
    assert read(text).tasks[1].depends_on == ("task-01",)


@pytest.mark.parametrize("reference", ["", "none", "[]"])
def test_naming_nobody_makes_a_graph_all_the_same(reference: str) -> None:
    text = element(name="A") + element(name="B", files="b.py", attributes=f'depends_on="{reference}"')
    assert [task.depends_on for task in read(text).tasks] == [(), ()]


@pytest.mark.parametrize(
    ("first", "second", "rule"),
    [
        ("", "3", "unknown-dependency"),
        ("", "01-02", "unknown-dependency"),
        ("", "2", "self-dependency"),
        ("2", "1", "cycle"),
    ],
)
def test_impossible_dependencies_are_errors(first: str, second: str, rule: str) -> None:
    text = element(name="A", attributes=f'depends_on="{first}"') + element(
        name="B", files="b.py", attributes=f'depends_on="{second}"'
    )
    assert [(severity, found) for severity, found, _ in rules(text)] == [("error", rule)]


def test_each_circle_is_told_once_and_what_waits_behind_it_is_not_one() -> None:
    tasks = [
        TaskOrdering("a", "a", 1, depends_on=("b",)),
        TaskOrdering("b", "b", 2, depends_on=("c",)),
        TaskOrdering("c", "c", 3, depends_on=("b",)),
        TaskOrdering("d", "d", 4, depends_on=("e",)),
        TaskOrdering("e", "e", 5, depends_on=("d",)),
        TaskOrdering("f", "f", 6),
    ]
    edges, found = resolve_dependencies(tasks)
    assert [(problem.rule, problem.line) for problem in found] == [("cycle", 2), ("cycle", 4)]
    assert compute_task_waves(edges)["f"] == 1


def test_who_may_run_beside_whom() -> None:
    together = find_concurrent_tasks({"a": (), "b": ("a",), "c": ("b",), "d": ("a",)})
    assert together == {"a": frozenset(), "b": {"d"}, "c": {"d"}, "d": {"b", "c"}}

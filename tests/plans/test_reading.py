from __future__ import annotations

import pytest

from proofstone.plans.models import KeyLink, RequiredArtifact, TaskType
from proofstone.plans.parser import read_plan
from tests.plans.reading import element, fixture, only_task, problems, read, rules
from tests.rows import each_row


def test_a_plain_plan_is_read_whole() -> None:
    text = fixture("plain")
    plan = read(text)
    assert problems(text) == ()
    assert (plan.title, plan.phase, plan.plan, plan.wave, plan.type) == ("Identifiers", "01", "010", "08", "execute")
    assert plan.depends_on == ("01-01", "1.10")
    assert plan.files_modified == ("src/ids.py", "src/store.py")
    assert plan.autonomous
    assert plan.objective == "Give every record an id of its own.\n\nPurpose: two stores can be merged."
    assert plan.context == "@docs/ids.md"
    assert plan.must_haves.truths == ("An id cannot be empty",)
    assert plan.must_haves.artifacts == (
        RequiredArtifact(
            path="src/ids.py", provides="Identifiers", contains="class Id", exports=("Id",), min_lines=12, line=14
        ),
    )
    assert plan.must_haves.key_links == (
        KeyLink(source="src/store.py", target="src/ids.py", via="import", pattern="from ids import", line=20),
    )
    first, second = plan.tasks
    assert (first.id, first.name, first.line, first.wave, first.depends_on) == (
        "task-01", "Task 1: Make the id", 40, 1, (),
    )  # fmt: skip
    assert first.files == ("src/ids.py", "tests/test_ids.py")
    assert "&& compares by value: `a < b`, Map<String, List<Id>>" in first.action
    assert first.verify == ("python -m compileall -q src && pytest -q tests/test_ids.py",)
    assert first.done == ('`Id("")` raises ValueError', "all 4 tests of test_ids.py pass")
    assert (second.depends_on, second.wave) == (("task-01",), 2)
    assert second.heldout == ("pytest -q heldout/test_merge.py",)


def test_a_sloppy_plan_is_read_whole() -> None:
    text = fixture("sloppy")
    assert [problem.rule for problem in problems(text)] == ["prose-in-verify"]
    plan = read(text)
    assert plan.title == "Übersicht der Käufe"
    first, second = plan.tasks
    assert first.name == "Task 1: Liste zeichnen"
    assert first.files == ("web/src/liste.tsx", "web/src/app/[locale]/(shop)/page.tsx", "web/tests/liste.test.tsx")
    assert first.action.endswith("Achte auf den Fall `</action>` im Text.")
    assert "<Task id={w} />" in first.action
    assert first.verify == ("cd web && pnpm vitest run tests/liste.test.tsx",)
    assert first.done[1] == "Eine leere Liste zeigt „keine Käufe; nichts zu tun“"
    assert second.name == "購入を数える"
    assert second.files == ("src/数え.py", "src/summe.py", "src/anzahl.py")
    assert second.verify == ("python -m pytest -q tests/test_anzahl.py && test -f src/anzahl.py",)
    assert second.done == ('`grep -c "def zaehle" src/anzahl.py` ist 1', "Doppelte zählen einmal")
    assert second.action.startswith("Read first:\ndocs/kauf.md\n\nBehaviour:\n- zählt jeden Kauf\n\nZähle.")


def test_checkpoints_ask_what_was_written() -> None:
    text = fixture("checkpoints")
    assert [problem.rule for problem in problems(text)] == ["key-link"]
    plan = read(text)
    assert [task.type for task in plan.tasks] == [
        TaskType.DECISION, TaskType.AUTO, TaskType.HUMAN_VERIFY, TaskType.HUMAN_ACTION,
    ]  # fmt: skip
    decision, _, look, act = plan.tasks
    assert decision.name == "Which mail service?"
    assert decision.prompt == (
        "Decision:\nWhich mail service?\n\nContext:\nBoth are paid for.\n\nOptions:\n- one: Post\n  for: cheap\n"
        "  against: slow\n- two: Dove\n  for: fast\n  against: dear\n\nHow to go on:\nSelect: one or two"
    )
    assert look.prompt.startswith("What was built:\nThe page\n\nHow to verify:\n1. Open https://example.org\n2. Log in")
    assert act.name == "Send the invitations"
    assert act.prompt.startswith("Send them to everybody on the list.")
    assert plan.must_haves.artifacts[0].path == "docs/launch.md"
    assert not plan.autonomous


def test_a_plan_pasted_in_a_fence_is_read() -> None:
    plan = read(fixture("pasted"))
    assert [(task.name, task.verify) for task in plan.tasks] == [("One", ("test -s a.py",)), ("Two", ("test -s b.py",))]
    assert plan.phase == "3"


def test_two_fenced_plans_are_read_and_an_example_beside_a_plan_is_not() -> None:
    fenced = f"```xml\n{element(name='A')}```\n\ntext\n\n```xml\n{element(name='B')}```\n"
    assert [task.name for task in read(fenced).tasks] == ["A", "B"]
    assert [task.name for task in read(fenced + element(name="C")).tasks] == ["C"]


@each_row(
    "text",
    [
        "\ufeff" + fixture("plain"),
        fixture("plain").replace("\n", "\r\n"),
        fixture("plain").replace("  <", "\t<"),
        fixture("plain").replace("<task", "<TASK").replace("</verify>", "</Verify >"),
        "\n\n" + fixture("plain"),
    ],
)
def test_byte_order_marks_line_ends_tabs_and_case_change_nothing(text: str) -> None:
    before, after = read(fixture("plain")), read(text)
    assert after.phase == "01"
    for one, other in zip(before.tasks, after.tasks, strict=True):
        assert one.model_copy(update={"line": 0}) == other.model_copy(update={"line": 0})


@each_row(
    ("missing", "rule"),
    [
        ({"name": ""}, "missing-name"),
        ({"files": ""}, "missing-files"),
        ({"action": ""}, "missing-action"),
        ({"verify": ""}, "missing-verify"),
        ({"done": ""}, "missing-done"),
        ({"files": "  "}, "missing-files"),
        ({"verify": "  "}, "missing-verify"),
    ],
)
def test_what_a_task_lacks_is_an_error_at_its_line(missing: dict[str, str], rule: str) -> None:
    [(severity, found, line)] = rules("\n\n" + element(**missing))
    assert (severity, found) == ("error", rule)
    assert 3 <= line <= 7


def test_a_task_that_changes_no_file_says_so() -> None:
    assert only_task(element(files="none")).files == ()
    assert rules(element(files="N/A")) == []


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (element(name="", attributes='type="auto" name="By attribute"'), "By attribute"),
        ("### Task 1: By heading\n" + element(name=""), "Task 1: By heading"),
        (element(name="").replace("<files>", "<title>By title</title>\n<files>"), "By title"),
    ],
)
def test_a_name_may_stand_elsewhere(text: str, name: str) -> None:
    assert only_task(text).name == name
    assert rules(text) == []


def test_all_errors_are_told_at_once() -> None:
    found = {(rule, line) for severity, rule, line in rules(fixture("wrong")) if severity == "error"}
    assert found == {
        ("frontmatter", 5), ("frontmatter", 7), ("missing-name", 10), ("unknown-dependency", 10), ("bad-path", 11),
        ("vacuous-verify", 13), ("cycle", 17), ("missing-done", 17), ("prose-verify", 21), ("unclosed-tag", 28),
        ("vacuous-verify", 28), ("unclosed-tag", 32), ("missing-verify", 32), ("two-names", 39),
    }  # fmt: skip


def test_a_missing_end_costs_nothing_but_that_element() -> None:
    text = element(name="A").replace("</verify>", "") + element(name="B").replace("</task>\n", "") + element(name="C")
    assert [(task.name, task.verify, task.done) for task in read(text).tasks] == [
        (name, ("pytest -q tests/test_a.py",), ("`a` refuses an empty text",)) for name in "ABC"
    ]
    assert rules(text) == [("error", "unclosed-tag", 5), ("error", "unclosed-tag", 8)] + [
        rule for rule in rules(text) if rule[1] != "unclosed-tag"
    ]


def test_a_misspelt_task_is_not_lost_in_silence() -> None:
    text = element(name="A") + element(name="B").replace("<task", "<taks") + element(name="C")
    assert [task.name for task in read(text).tasks] == ["A", "C"]
    assert ("error", "stray-tag", 9) in rules(text)
    assert rules("Run <verify>, then\n<done> is told.\n" + element()) == []
    broken = element(name="A") + element(name="B").replace('type="auto"', 'type="auto')
    assert ("error", "broken-tag", 8) in rules(broken)


@each_row("text", ["", "# Just a page", "text <tasks> text", "A `<task>` is an element.", "---\na: 1\n---\n"])
def test_without_a_task_there_is_no_plan(text: str) -> None:
    plan, found = read_plan(text, "x")
    assert plan is None
    assert [problem.rule for problem in found] == ["no-task"]


@each_row(
    ("said", "kind", "told"),
    [
        ("auto", TaskType.AUTO, False),
        ("", TaskType.AUTO, False),
        ("tdd", TaskType.AUTO, False),
        ("Checkpoint:Human_Verify", TaskType.HUMAN_VERIFY, False),
        ("checkpoint", TaskType.HUMAN_VERIFY, False),
        ("decision", TaskType.DECISION, False),
        ("checkpoint:other", TaskType.HUMAN_VERIFY, True),
        ("wild", TaskType.AUTO, True),
    ],
)
def test_types_as_people_spell_them(said: str, kind: TaskType, told: bool) -> None:
    text = element(attributes=f'type="{said}"')
    assert only_task(text).type is kind
    assert ("task-type" in [rule for _, rule, _ in rules(text)]) is told


def test_attributes_of_a_task() -> None:
    task = only_task(element(attributes='flaky=\'allowed\' gate="blocking" test-changes="the rule  changed"'))
    assert task.flaky_allowed
    assert task.test_changes == "the rule changed"
    assert rules(element(attributes='flaky="perhaps"')) == [("warning", "flaky", 1)]
    assert not only_task(element(attributes='flaky="perhaps"')).flaky_allowed


def test_prose_may_speak_of_tags() -> None:
    action = (
        "Parse each <task> and its `<verify>`; a\n<task> may be empty. Call Map<String, List<T>>, then a->b && c < d."
    )
    task = only_task(element(action=action))
    assert task.action == action


def test_a_forgotten_fence_hides_no_task() -> None:
    text = (
        element(name="A", action="```ts\nconst a = 1")
        + element(name="B", action="Do:\n```\nx\n```")
        + element(name="C")
    )
    assert [task.name for task in read(text).tasks] == ["A", "B", "C"]
    assert rules(text) == [rule for rule in rules(text) if rule[0] == "warning"]


def test_a_plan_too_large_to_be_one_is_refused() -> None:
    assert [problem.rule for problem in problems("<task>" * 20_001)] == ["too-large"]
    assert "too-large" in [problem.rule for problem in problems(element() * 1001)]
    assert "too-large" in [
        problem.rule for problem in problems(element(files="\n".join(f"a{n}.py" for n in range(501))))
    ]


def test_tests_that_must_pass_are_named_one_a_line() -> None:
    named = "<must-pass>\n- `tests/test_a.py::test_b[1, 2]`\n\n  tests/test_c.py::test_d\n</must-pass>"
    text = (
        '<task type="auto">\n<name>One</name>\n<files>a.py</files>\n<action>Do it.</action>\n'
        f"<verify>pytest -q tests/test_a.py</verify>\n{named}\n<done>4 tests pass</done>\n</task>\n"
    )
    plan, problems = read_plan(text, "PLAN.md")
    assert plan is not None and problems == ()
    assert plan.tasks[0].must_pass == ("tests/test_a.py::test_b[1, 2]", "tests/test_c.py::test_d")
    assert "must-pass" not in plan.tasks[0].action

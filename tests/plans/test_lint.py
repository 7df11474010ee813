from __future__ import annotations

from proofstone.plans.lint import find_lint_problems, select_errors
from tests.plans.reading import element, problems, read, rules
from tests.rows import each_row


def of(text: str) -> list[tuple[str, str]]:
    return [(severity, rule) for severity, rule, _ in rules(text)]


@each_row(
    ("command", "told"),
    [
        ("echo done", [("error", "vacuous-verify")]),
        ("true", [("error", "vacuous-verify")]),
        ("cat src/a.py", [("error", "vacuous-verify")]),
        ("pytest -q tests/test_a.py || true", [("error", "vacuous-verify")]),
        ("npm run build 2>&1 | tail -5", [("error", "lost-exit-code")]),
        ("npm test", [("warning", "broad-verify")]),
        ("pytest", [("warning", "broad-verify")]),
        ("python -m pytest -q", [("warning", "broad-verify")]),
        ("make test", [("warning", "broad-verify")]),
        ("go test ./...", [("warning", "broad-verify")]),
        ("pytest tests/test_a.py", []),
        ("npm test -- A", []),
        ("make lint", []),
        ("cd /home/user/project && pytest -q tests/test_a.py", [("warning", "absolute-cd")]),
        ("cd web && pytest -q tests/test_a.py", []),
        ("pytest || true\nruff check src", [("warning", "idle-command")]),
    ],
)
def test_commands_that_prove_too_little(command: str, told: list[tuple[str, str]]) -> None:
    assert of(element(verify=command)) == told


def test_held_out_commands_are_held_to_the_same() -> None:
    text = element().replace(
        "</verify>", "</verify>\n<heldout>echo x</heldout>\n<heldout>pytest -q tests/test_a.py</heldout>"
    )
    assert of(text) == [("warning", "heldout-shown"), ("warning", "idle-command")]
    assert of(element().replace("</verify>", "</verify><heldout>true</heldout>")) == [("error", "vacuous-heldout")]


@each_row(
    "criterion",
    [
        *("It works", "Task complete", "done", "Everything works as expected.", "works", "OK"),
        *("The page is fast.", "user-friendly", "The new design should be good", "Login works", "It looks nice"),
        *("The code is clean and readable", "users are happy", "performance is improved", "no bugs", "No regressions."),
    ],
)
def test_criteria_that_nobody_can_check(criterion: str) -> None:
    assert of(element(done=criterion)) == [("warning", "vague-done")]


@each_row(
    "criterion",
    [
        *("All 5 tests pass", "`works()` returns 3", "Login works with an empty password", "4 files"),
        *("The page is fast: 200 ms", "The lint is clean", "`parse` is robust", "The queue is empty"),
    ],
)
def test_criteria_that_somebody_can_check(criterion: str) -> None:
    assert of(element(done=criterion)) == []


@each_row(
    ("path", "told"),
    [
        ("/etc/passwd", [("error", "bad-path")]),
        ("~/x.py", [("error", "bad-path")]),
        ("C:\\x.py", [("error", "bad-path")]),
        ("src\\x.py", [("error", "bad-path")]),
        ("../x.py", [("error", "bad-path")]),
        ("src/../../x.py", [("error", "bad-path")]),
        (".git/hooks/pre-commit", [("error", "bad-path")]),
        ("whatever else is needed", [("warning", "odd-path")]),
        ("src/..x.py", []),
        (".github/workflows/ci.yml", []),
        ("a.py, b.py, c.py, d.py", [("warning", "many-files")]),
        ("a.py, b.py, c.py, tests/test_d.py, docs/e.md", []),
    ],
)
def test_paths_that_cannot_be_meant(path: str, told: list[tuple[str, str]]) -> None:
    assert of(element(files=path)) == told


def test_where_the_repository_lies_is_no_way_out() -> None:
    text = element(files="/home/user/project/src/a.py", verify="cd /home/user/project && pytest -q tests/test_a.py")
    found = find_lint_problems(read(text), text, "/home/user/project/")
    assert [(problem.rule, problem.hint) for problem in found] == [("bad-path", "write src/a.py")]


def test_tasks_that_may_run_together_should_not_share_files() -> None:
    beside = 'depends_on=""'
    text = element(name="A", files="src/", attributes=beside) + element(name="B", files="src/a.py", attributes=beside)
    assert of(text) == [("warning", "overlapping-files")]
    after = element(name="A", files="src/") + element(name="B", files="src/a.py")
    assert of(after) == []


def test_names_should_differ() -> None:
    assert of(element(name="A") + element(name="a", files="b.py")) == [("warning", "duplicate-name")]


def test_a_plan_that_stops_is_not_autonomous() -> None:
    stop = '<task type="checkpoint:human-verify"><what-built>It</what-built></task>'
    assert of(f"---\nautonomous: true\n---\n{stop}") == [("warning", "autonomous")]
    assert of(stop) == []
    assert of('<task type="checkpoint:human-action"><name>Do</name></task>') == [("error", "empty-checkpoint")]


def test_must_haves_that_cannot_be_looked_at() -> None:
    head = (
        "---\nmust_haves:\n  artifacts:\n    - path: /abs\n  key_links:\n"
        "    - {from: a.py, to: b.py, pattern: '('}\n    - {from: Thing, to: b.py}\n---\n"
    )
    assert rules(head + element()) == [
        ("error", "bad-path", 4),
        ("error", "bad-pattern", 6),
        ("warning", "key-link", 7),
    ]


def test_each_problem_names_its_line_and_its_task() -> None:
    [problem] = problems("\n" + element(verify="\n    echo done\n  "))
    assert (problem.line, problem.task) == (7, "task-01")
    assert select_errors([problem]) == (problem,)

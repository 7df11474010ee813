"""What CI, hooks and scripts demand no longer, and honest changes of them that raise nothing."""

from __future__ import annotations

from proofstone.check.rules.check_commands import find_check_commands
from proofstone.check.rules.loosened_checks import find_loosened_checks
from tests.rows import each_row

CI = """on: [push, pull_request]
jobs:
  test:
    steps:
      - uses: actions/checkout@v4
      - run: pip install -e . pytest
      - name: tests
        run: python -m pytest tests
      - run: ruff check .
"""
ACTION = f"{CI}      - uses: golangci/golangci-lint-action@v8\n"
HOOKS = "repos:\n- repo: x\n  hooks:\n  - id: ruff\n  - id: mypy\n    exclude: ^docs/\n"
PACKAGE = '{"scripts": {"test": "jest --ci", "lint": "eslint .", "build": "rollup"}}'
TOX = "[testenv]\ncommands =\n    lint: flake8 src\n    pytest {posargs}\n"
MAKE = "test:\n\tpytest --cov-fail-under=90\ninstall:\n\tpip install .\n"
NOX = "import nox\n\n@nox.session\ndef tests(session):\n    session.run('pytest', 'tests')\n"
CLAUDE = (
    '{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "proofstone hook run agent-stop"}]}]}, '
    '"permissions": {"deny": ["Edit(./ci)"]}}'
)
AGENTS = "# Before you are done\n\nRun `proofstone check`.\n"
WORKFLOW = ".github/workflows/ci.yml"
JEST = "module.exports = { coverageThreshold: { global: { branches: 80, lines: 90 } } }\n"

LOOSENED: dict[str, tuple[str, str, str | None, str]] = {
    "a step is gone": (WORKFLOW, CI, CI.replace("      - run: ruff check .\n", ""), "ruff does not run any more"),
    "a ready-made step is gone": (WORKFLOW, ACTION, CI, "golangci-lint does not run any more"),
    "a ready-made step may fail": (
        WORKFLOW,
        ACTION,
        f"{ACTION}        continue-on-error: true\n",
        "golangci-lint still runs, but nothing fails",
    ),
    "the workflow is gone": (WORKFLOW, CI, None, "pytest does not run any more"),
    "its failure is swallowed": (WORKFLOW, CI, CI.replace("pytest tests", "pytest tests || true"), "nothing fails"),
    "in another way": (WORKFLOW, CI, CI.replace("ruff check .", "ruff check . --exit-zero"), "nothing fails"),
    "the step may fail": (WORKFLOW, CI, CI.replace("- name: tests", "- continue-on-error: true"), "nothing fails"),
    "the job never runs": (WORKFLOW, CI, CI.replace("    steps:", "    if: ${{ false }}\n    steps:"), "nothing fails"),
    "only by hand": (WORKFLOW, CI, CI.replace("[push, pull_request]", "workflow_dispatch"), "nothing fails"),
    "printed instead of run": (WORKFLOW, CI, CI.replace("python -m pytest", "echo python -m pytest"), "does not run"),
    "a hook is gone": (".pre-commit-config.yaml", HOOKS, HOOKS.replace("  - id: ruff\n", ""), "ruff does not run"),
    "a hook by hand": (
        ".pre-commit-config.yaml",
        HOOKS,
        HOOKS.replace("- id: ruff", "- id: ruff\n    stages: [manual]"),
        "ruff still runs, but nothing fails",
    ),
    "a script tests nothing": ("package.json", PACKAGE, PACKAGE.replace("jest --ci", "echo ok"), "jest does not run"),
    "a script cannot fail": ("package.json", PACKAGE, PACKAGE.replace("--ci", "--ci; exit 0"), "nothing fails"),
    "tox ignores it": ("tox.ini", TOX, TOX.replace("    pytest", "    - pytest"), "nothing fails"),
    "a factor of tox is gone": ("tox.ini", TOX, TOX.replace("    lint: flake8 src\n", ""), "flake8 does not run"),
    "make ignores it": ("Makefile", MAKE, MAKE.replace("\tpytest", "\t-pytest"), "nothing fails"),
    "the threshold is lower": ("Makefile", MAKE, MAKE.replace("=90", "=10"), "was 90 and is 10 now"),
    "the threshold is gone": ("Makefile", MAKE, MAKE.replace(" --cov-fail-under=90", ""), "was 90 and is gone"),
    "that of jest": ("jest.config.js", JEST, JEST.replace("80", "8"), "the threshold branches was 80 and is 8 now"),
    "nox accepts any code": ("noxfile.py", NOX, NOX.replace("'tests')", "success_codes=range(9))"), "nothing fails"),
    "an agent's hook is gone": (".claude/settings.json", CLAUDE, "{}", "the denied permission Edit(./ci) is gone"),
    "hooks are off": (
        ".claude/settings.json",
        CLAUDE,
        CLAUDE.replace('{"hooks"', '{"disableAllHooks": true, "hooks"', 1),
        "the hook for Stop: proofstone hook run agent-stop is gone",
    ),
    "an instruction is gone": ("AGENTS.md", AGENTS, "# Notes\n", "the instruction `proofstone check` is gone"),
}
NARROWED: dict[str, tuple[str, str, str, str]] = {
    "fewer paths": (WORKFLOW, CI, CI.replace("pytest tests", "pytest tests/unit"), "limited to tests/unit"),
    "some tests left out": (WORKFLOW, CI, CI.replace("pytest tests", "pytest -k 'not slow'"), "leaves something out"),
    "an excluded folder": (
        ".pre-commit-config.yaml",
        HOOKS,
        HOOKS.replace("- id: ruff", "- id: ruff\n    exclude: ^src/"),
        "ruff leaves something out",
    ),
    "an event is gone": (WORKFLOW, CI, CI.replace("[push, pull_request]", "push"), "the event pull_request"),
    "another linter": (WORKFLOW, CI, CI.replace("ruff check .", "flake8"), "flake8 runs instead of ruff"),
    "another task": (WORKFLOW, CI, CI.replace("python -m pytest tests", "make everything"), "make everything runs"),
    "not readable": (WORKFLOW, CI, CI + "\t- }{", "cannot be read any more"),
}  # fmt: skip
HONEST: dict[str, tuple[str, str | None, str]] = {
    "a new workflow": (WORKFLOW, None, CI.replace("- name: tests", "- continue-on-error: true")),
    "a new job that may fail": (
        WORKFLOW,
        CI,
        CI + "  next:\n    continue-on-error: true\n    steps:\n      - run: pytest tests\n",
    ),
    "an option": (WORKFLOW, CI, CI.replace("pytest tests", "pytest -n auto --strict-markers tests")),
    "another wrapper": (WORKFLOW, CI, CI.replace("python -m pytest", "uv run --group dev pytest")),
    "more is examined": (WORKFLOW, CI, CI.replace("pytest tests", "pytest")),
    "what is installed": (WORKFLOW, CI, CI.replace("pip install -e . pytest", "pip install -e .[dev]")),
    "another action": (WORKFLOW, CI, CI.replace("checkout@v4", "checkout@v5")),
    "a hook more": (".pre-commit-config.yaml", HOOKS, HOOKS + "  - id: codespell\n"),
    "a higher threshold": ("Makefile", MAKE, MAKE.replace("=90", "=95")),
    "a task that checks nothing is gone": ("Makefile", MAKE, MAKE.replace("install:\n\tpip install .\n", "")),
    "another build": ("package.json", PACKAGE, PACKAGE.replace("rollup", "vite build")),
    "a permission more": (".claude/settings.json", CLAUDE, CLAUDE.replace('["Edit', '["Bash(rm)", "Edit')),
    "a factor of tox": ("tox.ini", TOX, TOX.replace("lint: flake8", "lint,ci: flake8")),
}


@each_row(("path", "old", "new", "detail"), LOOSENED.values())
def test_what_is_demanded_no_longer_needs_a_persons_word(path: str, old: str, new: str | None, detail: str) -> None:
    found = find_loosened_checks([(path, old.encode(), (new and new.encode()) or None)], {})
    assert any(detail in loosening.detail and loosening.needs_decision for loosening in found), found


@each_row(("path", "old", "new", "detail"), NARROWED.values())
def test_what_examines_less_is_named(path: str, old: str, new: str, detail: str) -> None:
    (found,) = find_loosened_checks([(path, old.encode(), new.encode())], {})
    assert detail in found.detail
    assert not found.needs_decision


@each_row(("path", "old", "new"), HONEST.values())
def test_what_adds_or_only_differs_raises_nothing(path: str, old: str | None, new: str) -> None:
    assert find_loosened_checks([(path, (old and old.encode()) or None, new.encode())], {}) == []


def test_what_has_moved_to_another_file_is_not_lost() -> None:
    moved = [(".travis.yml", b"script: pytest tests\n", None), (WORKFLOW, None, CI.encode())]
    assert find_loosened_checks(moved, {}) == []
    assert find_loosened_checks(moved[:1], {WORKFLOW: CI.encode()}) == []
    assert find_loosened_checks([("tox.ini", TOX.encode(), None)], {WORKFLOW: b"on: push\njobs: {}\n"})
    kept = {WORKFLOW: CI.replace("ruff check .", "flake8 src").replace("pytest tests", "pytest").encode()}
    assert find_loosened_checks([("tox.ini", TOX.encode(), None)], kept) == [], "CI runs it all the same"
    hooks = {".pre-commit-config.yaml": HOOKS.encode()}
    lost = find_loosened_checks(
        [(WORKFLOW, CI.encode(), CI.replace("      - run: ruff check .\n", "").encode())], hooks
    )
    assert [loosening.needs_decision for loosening in lost] == [True], "a hook on a person's machine is not CI"


COMMANDS = {
    "python -m pytest": ["pytest"],
    "pip install pytest": [],
    "uv sync": [],
    "npm ci && npm test": ["npm test"],
    "coverage run -m pytest\ncoverage report": ["pytest", "coverage"],
    "echo pytest": [],
    "make requirements check": ["make check"],
    "node --test": ["node-test"],
    "FOO=1 xvfb-run tox -e py": ["tox"],
    "docker compose run app pytest": ["pytest"],
    "# pytest": [],
    "hatch run --verbose site:build": ["hatch site:build"],
    "poetry run -q docs": ["poetry docs"],
    "hatch run": [],
    "ruff check . # not mypy": ["ruff"],
    "echo ready # then pytest": [],
    "cargo build && cargo test": ["cargo-test"],
}


@each_row(("script", "programs"), COMMANDS.items())
def test_the_programs_that_a_script_runs(script: str, programs: list[str]) -> None:
    assert [command.program for command in find_check_commands(script)] == programs


def test_what_stands_in_a_comment_is_no_path_of_a_check() -> None:
    (command,) = find_check_commands("pytest tests # and docs/examples, some day")
    assert command.paths == {"tests"}

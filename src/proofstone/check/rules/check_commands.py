"""The commands in a text that check something: tests, linters, type checkers, and the tasks that are named after them.

A command counts with its program, the paths that it is limited to, and whether its failure has any effect. Wrappers
(`uv run`, `npx`, `python -m`) are looked through. What installs or prints a program's name does not run it.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

_FAMILIES: Final[Mapping[str, tuple[str, ...]]] = {
    "tests": (
        "pytest", "py.test", "unittest", "nosetests", "nose2", "stestr", "tox", "nox", "hatch-test", "doctest", "trial",
        "jest", "vitest", "mocha", "ava", "tap", "tape", "jasmine", "karma", "cypress", "playwright", "node-test",
        "cargo-test", "cargo-nextest", "go-test", "gotestsum", "ctest", "rspec", "phpunit", "gradle", "gradlew", "mvn",
        "mvnw", "dotnet-test", "bazel-test", "mix-test", "swift-test", "deno-test", "bun-test", "behave", "proofstone",
        "c8", "nyc", "coverage",
    ),
    "types": ("mypy", "pyright", "basedpyright", "ty", "pyrefly", "pytype", "pyre", "tsc", "vue-tsc", "flow", "tsd"),
    "lint": (
        "ruff", "flake8", "pylint", "black", "isort", "bandit", "pydocstyle", "pycodestyle", "codespell", "yapf",
        "lint-imports", "vulture", "pre-commit", "prek", "eslint", "biome", "oxlint", "prettier", "standard", "xo",
        "stylelint", "tslint", "jshint", "cargo-clippy", "cargo-fmt", "go-vet", "gofmt", "golangci-lint", "staticcheck",
        "shellcheck", "hadolint", "yamllint", "markdownlint", "rubocop", "phpstan", "semgrep", "codeql", "super-linter",
        "pip-audit", "safety", "zizmor", "actionlint", "publint", "attw",
    ),
}  # fmt: skip
FAMILY_OF: Final = {program: family for family, programs in _FAMILIES.items() for program in programs}
_WITH_SUBCOMMAND: Final = (
    "cargo", "go", "hatch", "dotnet", "bazel", "mix", "swift", "deno", "bun", "node",
)  # fmt: skip
_TASKS: Final = ("make", "gmake", "just", "task", "npm", "yarn", "pnpm", "rake", "invoke", "inv", "poe", "turbo", "nx")
_TASK_WORDS: Final = re.compile(
    r"test|spec|check|lint|type|mypy|tsc|cov|verif|\bci\b|\bqa\b|audit|e2e|unit|integration|format|style|pytest", re.I
)
_WRAPPERS: Final = (
    "uv", "uvx", "poetry", "pdm", "pipenv", "rye", "pixi", "hatch", "npx", "pnpx", "bunx", "pnpm", "yarn", "npm",
    "pipx", "conda", "mamba", "micromamba", "xvfb-run", "bundle", "docker", "docker-compose", "nix", "nix-shell",
)  # fmt: skip
_PREFIXES: Final = (
    "sudo",
    "time",
    "env",
    "exec",
    "command",
    "cross-env",
    "then",
    "do",
    "if",
    "!",
    "nice",
    "timeout",
    "&",
)
_INSTALLS: Final = frozenset(
    ("install", "add", "sync", "ci", "i", "update", "upgrade", "remove", "lock", "build", "pull")
)
_ACTIONS: Final = (
    (re.compile(r"pre-commit/action|prek-action"), "pre-commit"),
    (re.compile(r"ruff-action"), "ruff"),
    (re.compile(r"psf/black"), "black"),
    (re.compile(r"codeql-action/analyze"), "codeql"),
    (re.compile(r"golangci-lint-action"), "golangci-lint"),
    (re.compile(r"super-linter"), "super-linter"),
    (re.compile(r"hynek/build-and-inspect|codespell-project"), "codespell"),
    (re.compile(r"zizmor-action"), "zizmor"),
)
_NO_EFFECT: Final = re.compile(r"\|\|\s*(?::|true\b|exit\s+0\b|echo\b|/bin/true\b)|;\s*(?:true|exit\s+0|:)\s*$")
_NO_EFFECT_OPTIONS: Final = frozenset(
    (
        "--exit-zero",
        "--collect-only",
        "--co",
        "--version",
        "--help",
        "-h",
        "--dry-run",
        "--passWithNoTests=only",
        "--exit-0",
    )
)
_PARTIAL: Final = re.compile(
    r"^(?:-k|-m|--ignore(?:-glob)?|--deselect|--exclude|--testPathIgnorePatterns|--skip|-t)(?:=|$)"
)


@dataclass(frozen=True)
class CheckCommand:
    """A command that checks something."""

    program: str
    """The name of the program, with its task: `pytest`, `make test`."""
    paths: frozenset[str] = frozenset()
    """The files and folders that it is limited to; empty if it examines everything."""
    is_partial: bool = False
    """Whether an option leaves something out."""
    has_effect: bool = True
    """Whether something fails if it fails."""
    is_check: bool = True
    """Whether it is known to check something. A task with any other name may."""

    @property
    def family(self) -> str:
        if self.program in FAMILY_OF:
            return FAMILY_OF[self.program]
        return "tests" if re.search(r"test|spec|check|ci\b|verif|cov|qa", self.program, re.I) else "lint"


def find_action_commands(name: str) -> Iterator[CheckCommand]:
    """Yield what a ready-made step of a CI service checks."""
    for pattern, program in _ACTIONS:
        if pattern.search(name):
            yield CheckCommand(program)


def find_check_commands(script: str, *, has_effect: bool = True) -> Iterator[CheckCommand]:
    """Yield the commands of a shell script that check something."""
    text = script.replace("\\\n", " ")
    has_effect = has_effect and not re.search(r"(?:^|\n)\s*set\s+\+e\b", text)
    fails_in_pipe = "pipefail" in text
    for line in text.splitlines():
        if line.lstrip().startswith("#"):
            continue
        swallowed = bool(_NO_EFFECT.search(line))
        for part in re.split(r"&&|;|\|\|", line):
            command, *piped = re.split(r"(?<!\|)\|(?!\|)", part)
            found = _read_command(command)
            if found is not None:
                counts = has_effect and not swallowed and not (piped and not fails_in_pipe)
                yield replace(found, has_effect=found.has_effect and counts)


def _read_command(command: str) -> CheckCommand | None:
    words = _split_words(command)
    start = _find_program(words)
    if start is None:
        return _read_script(words)
    name, arguments = _name_program(words, start)
    if name is None:
        return None
    is_task = words[start].rpartition("/")[2] in _TASKS
    return CheckCommand(
        name,
        frozenset(word.removeprefix("./").rstrip("/") for word in arguments if _is_path(word)),
        is_partial=any(_PARTIAL.match(word) for word in arguments),
        has_effect=not _NO_EFFECT_OPTIONS.intersection(arguments),
        is_check=not is_task or bool(_TASK_WORDS.search(name.partition(" ")[2])),
    )


def _read_script(words: Sequence[str]) -> CheckCommand | None:
    """Return a script that a project's own tool runs: `hatch run tests:all`. What it does stands elsewhere."""
    if words[:1] and words[0] in _WRAPPERS and words[1:2] == ["run"]:
        script = next((word for word in words[2:] if not word.startswith("-")), "")
        return CheckCommand(f"{words[0]} {script}", is_check=False) if script else None
    return None


def _split_words(command: str) -> list[str]:
    try:
        return shlex.split(command.strip().lstrip("@-"), comments=True)
    except ValueError:  # an open quotation mark, for instance of a template
        return command.split()


def _find_program(words: Sequence[str]) -> int | None:
    """Return where the name of a program that checks stands; None if the command runs another one."""
    is_wrapped = False
    for index, word in enumerate(words):
        base = word.rpartition("/")[2]
        following = words[index + 1 : index + 2]
        if base in FAMILY_OF or (base in _WITH_SUBCOMMAND and following and f"{base}-{following[0]}" in FAMILY_OF):
            return index
        if base in _TASKS and not _INSTALLS.intersection(words[index + 1 : index + 3]) and _find_task(words, index):
            return index
        if base == "node" and "--test" in words:
            return index
        if is_wrapped and word in _INSTALLS:
            return None
        if base in _WRAPPERS or base in _PREFIXES or re.match(r"(?:python|pypy)[\d.]*$|\$\{?\w*PY\w*\}?", base, re.I):
            is_wrapped = True
        elif not is_wrapped and not re.match(r"\w+=", word) and not word.startswith("-"):
            return None
    return None


def _find_task(words: Sequence[str], index: int) -> str:
    tasks = [word for word in words[index + 1 :] if not word.startswith("-") and word not in ("run", "exec", "--")]
    return next((task for task in tasks if _TASK_WORDS.search(task)), tasks[0] if tasks else "")


def _name_program(words: Sequence[str], start: int) -> tuple[str | None, Sequence[str]]:
    base, rest = words[start].rpartition("/")[2], words[start + 1 :]
    if base in _TASKS:
        return f"{'make' if base == 'gmake' else base} {_find_task(words, start)}", ()
    if base == "node":
        return "node-test", rest
    if rest and f"{base}-{rest[0]}" in FAMILY_OF:
        return f"{base}-{rest[0]}", rest[1:]
    if base == "coverage":  # `coverage run -m pytest tests` runs pytest; `coverage report` checks a threshold
        inner = _find_program(rest[1:]) if rest[:1] == ["run"] else None
        inner_words = rest[1:]
        if inner is not None:
            return _name_program(inner_words, inner)
        return ("coverage", rest) if rest[:1] in (["run"], ["report"]) else (None, ())
    return base, rest


def _is_path(word: str) -> bool:
    if word.startswith("-") or "=" in word or "{" in word or "$" in word:
        return False
    return "/" in word or word in ("test", "tests", "src", ".") or word.endswith((".py", ".js", ".ts", ".cfg"))

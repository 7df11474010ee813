"""Find the commands that a criterion names, so that the engine can run them as checks. Pure.

A command is named by `$ command` at the end of a line or in a code span, or by a code span that begins with a program.
A code span also names functions, files and options, so the rest of the criterion decides:

    | the criterion                                                | its commands                            |
    |--------------------------------------------------------------|-----------------------------------------|
    | `$ pytest -q`                                                | run; each must exit with 0              |
    | is a code span and nothing else                              | run; each must exit with 0              |
    | says that it passes, runs, prints …                          | run; each must exit with 0              |
    | says that it fails or is refused                             | not run: what must fail is not known    |
    | says anything else ("is documented", "is no longer needed")  | not run                                 |

A command that cannot prove anything, such as `echo done`, is not run.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from proofstone.common.commands import proves_nothing

_PROMPT: Final = re.compile(r"(?:^|\s|`)\$\s+(?P<command>[^`\n]+?)`?\s*$", re.MULTILINE)
_CODE_SPAN: Final = re.compile(r"(?<!`)`(?!`)(?P<code>[^`\n]+)`(?!`)")
_ASSERTS_SUCCESS: Final = re.compile(
    r"\b(?:pass(?:es|ed|ing)?|succeeds?|exits?(?: with)?(?: code)? 0|exit code 0|(?:is|are|stays?|remains?) "
    r"(?:green|clean|ok)|works?|runs?|prints?|outputs?|shows?|reports?|lists?|returns?|completes?|finishes|builds?|"
    r"compiles?|finds? nothing|verified by|seen by|shown by|checked by)\b",
    re.IGNORECASE,
)
_ONLY_SUCCESS: Final = re.compile(
    r"\b(?:the|both|all|and|still|now|command|commands|pass(?:es)?|succeeds?|exits?(?: with)?(?: code)? 0|"
    r"(?:is|are|stays?|remains?) (?:green|clean|ok)|works?|runs?)\b",
    re.IGNORECASE,
)
_ASSERTS_FAILURE: Final = re.compile(
    r"\b(?:fails?|failing|refuse[sd]?|reject(?:s|ed)?|rais(?:es|ed)|crash(?:es)?|errors?|non-?zero|denied|"
    r"exits?(?: with)?(?: code)? [1-9]\d*|exit code [1-9]\d*)\b|\bnot (?:pass|run|work|succeed|build|compile)",
    re.IGNORECASE,
)
_PROGRAMS: Final = frozenset(
    (
        *("python", "python3", "pytest", "py.test", "tox", "nox", "uv", "uvx", "poetry", "pdm", "hatch", "pip"),
        *("ruff", "mypy", "pyright", "flake8", "pylint", "black", "isort", "coverage", "bandit", "pre-commit"),
        *("node", "npm", "npx", "yarn", "pnpm", "bun", "bunx", "deno", "tsc", "eslint", "jest", "vitest", "mocha"),
        *("go", "cargo", "rustc", "make", "cmake", "ctest", "ninja", "bazel", "mvn", "gradle", "./gradlew", "dotnet"),
        *("ruby", "rake", "rspec", "bundle", "php", "composer", "phpunit", "perl", "java", "swift", "mix", "sbt"),
        *("sh", "bash", "test", "[", "grep", "rg", "diff", "cmp", "jq", "curl", "git", "find", "awk", "sed", "timeout"),
    )
)
_ALONE: Final = frozenset(
    ("pytest", "py.test", "tox", "nox", "make", "mypy", "pyright", "flake8", "tsc", "jest", "vitest", "mocha", "ctest",
     "rspec", "phpunit", "rake")
)  # fmt: skip
"""Programs that are a whole command by themselves."""
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_]\w*=\S*$")


def find_criterion_commands(criterion: str) -> tuple[str, ...]:
    """Return the commands that the criterion names and that must exit with 0, without those that prove nothing."""
    prompts = [match["command"].strip() for match in _PROMPT.finditer(criterion)]
    if prompts:
        return _select_provable(prompts)
    spans = [match["code"].strip() for match in _CODE_SPAN.finditer(criterion)]
    commands = [span.removeprefix("$ ").strip() for span in spans if span.startswith("$ ") or _is_command(span)]
    rest = _CODE_SPAN.sub(" ", criterion).strip(" .:;-")
    if not commands or _ASSERTS_FAILURE.search(rest):
        return ()
    return _select_provable(commands) if not rest or _ASSERTS_SUCCESS.search(rest) else ()


def is_shown_by_commands(criterion: str) -> bool:
    """Return whether the criterion says nothing more than that its commands succeed."""
    rest = _CODE_SPAN.sub(" ", _PROMPT.sub(" ", criterion))
    return bool(find_criterion_commands(criterion)) and not _ONLY_SUCCESS.sub(" ", rest).strip(" .,:;-()")


def find_commands_of_criteria(criteria: Iterable[str], verify: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the commands of all criteria, each once, without those that are run as verify commands anyway."""
    known = {command.strip() for command in verify}
    commands = dict.fromkeys(command for criterion in criteria for command in find_criterion_commands(criterion))
    return tuple(command for command in commands if command not in known)


def _select_provable(commands: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(command for command in commands if not proves_nothing(command)))


def _is_command(code: str) -> bool:
    words = code.split()
    while words and _ASSIGNMENT.match(words[0]):
        words = words[1:]
    if not words:
        return False
    is_program = words[0] in _PROGRAMS or (words[0].startswith("./") and len(words[0]) > 2)
    return is_program and (len(words) > 1 or words[0] in _ALONE or words[0].startswith("./"))

"""Read the diagnostics of linters, type checkers and compilers from their output, and what failed in a command."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from posixpath import normpath
from typing import Final

from proofstone.check.models import CheckResult
from proofstone.check.rules.failure_text import find_failed_tests, find_run_error
from proofstone.common.models import Diagnostic

_PATH_AND_LINE = r"^(?P<path>[^\s:(][^:\n(]*?):(?P<line>\d+):(?:\d+:)?\s*"
_ANY_PATH = r"^(?P<path>\S.*?):(?P<line>\d+):(?:\d+:)?\s*"
"""For tools whose lines are recognised by what follows the path: their paths may contain anything."""
_GENERIC = re.compile(
    _PATH_AND_LINE + r"(?:(?:fatal )?(?:error|warning)\s*(?:\[(?P<code>[\w:.-]+)\])?:\s*)?(?P<message>\S.*)$"
)

_PATTERNS: Final[dict[str, re.Pattern[str]]] = {
    "ruff": re.compile(_ANY_PATH + r"(?P<code>[A-Za-z][\w-]*):? (?:\[\*\] )?(?P<message>.+)$"),
    "flake8": re.compile(_ANY_PATH + r"(?P<code>[A-Z]+\d+) (?P<message>.+)$"),
    "mypy": re.compile(_ANY_PATH + r"error: (?P<message>.+?)(?:  \[(?P<code>[\w-]+)\])?$"),
    "pyright": re.compile(
        r"^\s*(?P<path>\S.*?):(?P<line>\d+):\d+ - error: (?P<message>.+?)(?: \((?P<code>report\w+)\))?$"
    ),
    "tsc": re.compile(
        r"^(?P<path>\S.*?)(?:\((?P<line>\d+),\d+\):|:(?P<line2>\d+):\d+ -) error (?P<code>TS\d+): (?P<message>.+)$"
    ),
    "cargo": re.compile(_PATH_AND_LINE + r"(?:error|warning)(?:\[(?P<code>\w+)\])?: (?P<message>.+)$"),
    "rubocop": re.compile(_PATH_AND_LINE + r"[CWEFR]: (?:\[\w+\] )?(?P<code>[\w/]+): (?P<message>.+)$"),
}
_SAME_PATTERN: Final = {"vue-tsc": "tsc", "cargo-clippy": "cargo", "clippy": "cargo", "bundle": "rubocop"}
_MAX_DIGITS: Final = 9
_SUMMARY = re.compile(r"note:|In file included from|^\s+at ")
_COLOUR = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


def parse_diagnostics(tool: str, output: str, root: str = "") -> tuple[Diagnostic, ...]:
    """Return the diagnostics in a tool's output. `tool` is as in a CheckSpec (`python:mypy`, `node:tsc`, `go`).
    Absolute paths below `root` become relative to it. The output of an unknown tool is read as `file:line: message`."""
    name = tool.rpartition(":")[2]
    name = _SAME_PATTERN.get(name, name)
    clean = _COLOUR.sub("", output)
    read: Callable[[str], Iterator[Diagnostic]] = _read_eslint if name == "eslint" else _line_reader(name)
    return tuple(
        diagnostic.model_copy(update={"path": _make_relative(diagnostic.path, root)})
        for diagnostic in read(clean)
        if diagnostic.path
    )


def _line_reader(name: str) -> Callable[[str], Iterator[Diagnostic]]:
    pattern = _PATTERNS.get(name, _GENERIC)

    def read(output: str) -> Iterator[Diagnostic]:
        for text in output.splitlines():
            text = text.removeprefix("vet: ")
            match = pattern.match(text)
            if match is None or _SUMMARY.search(text):
                continue
            groups = match.groupdict()
            line = _line_number(groups["line"] or groups.get("line2") or "0")
            message = groups["message"].strip()
            yield Diagnostic(path=groups["path"], line=line, code=groups.get("code") or "", message=message)

    return read


def _line_number(digits: str) -> int | None:
    """Return the line number; None if it has more digits than any file has lines."""
    return int(digits) if len(digits) <= _MAX_DIGITS else None


def _read_eslint(output: str) -> Iterator[Diagnostic]:
    """Return errors only: warnings do not make ESLint fail."""
    for file in (file for report in _read_json_lists(output) for file in report if isinstance(file, dict)):
        messages = file.get("messages")
        for message in messages if isinstance(messages, list) else ():
            if isinstance(message, dict) and (message.get("severity") == 2 or message.get("fatal")):
                yield Diagnostic(
                    path=str(file.get("filePath", "")),
                    line=line if isinstance(line := message.get("line"), int) else None,
                    code=str(message.get("ruleId") or "parse"),
                    message=str(message.get("message") or "").partition("\n")[0],
                )


def _read_json_lists(output: str) -> Iterator[list[object]]:
    """Return the JSON lists that fill a line. The tool may print warnings before and after."""
    for text in output.splitlines():
        if not text.startswith("["):
            continue
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            continue  # a line that only looks like the report
        if isinstance(value, list):
            yield value


def _make_relative(path: str, root: str) -> str:
    inside = root.rstrip("/") + "/"
    return normpath(path[len(inside) :] if root and path.startswith(inside) else path)


_MAX_FAILURES: Final = 20


def list_failures(result: CheckResult) -> tuple[str, ...]:
    """Return what could be read about a command that did not pass: its failing tests with their causes, else those that
    its output names, else the diagnostics in its output, and the error with which it ended.
    """
    results = result.report.results if result.report else ()
    lines = [test.describe_failure(test.id) for test in results if test.status.is_failure]
    if not lines:
        diagnostics = (_format_diagnostic(diagnostic) for diagnostic in parse_diagnostics("", result.output))
        named = find_failed_tests(result.output) or tuple(diagnostics)
        lines = list(dict.fromkeys((*named, *find_run_error(result.output)[:1])))
    more = len(lines) - _MAX_FAILURES
    return (*lines[:_MAX_FAILURES], *((f"and {more} more",) if more > 0 else ()))


def _format_diagnostic(diagnostic: Diagnostic) -> str:
    line = f":{diagnostic.line}" if diagnostic.line else ""
    code = f" [{diagnostic.code}]" if diagnostic.code else ""
    return f"{diagnostic.path}{line}: {diagnostic.message}{code}"

"""What linters, type checkers and compilers said, as data."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from posixpath import normpath
from typing import Final

from proofstone.common.models import Diagnostic

_AT = r"^(?P<path>[^\s:(][^:\n(]*?):(?P<line>\d+):(?:\d+:)?\s*"
_NAMED = r"^(?P<path>\S.*?):(?P<line>\d+):(?:\d+:)?\s*"
"""For tools whose lines are told by what follows: their paths may hold anything."""
_GENERIC = re.compile(_AT + r"(?:(?:fatal )?(?:error|warning)\s*(?:\[(?P<code>[\w:.-]+)\])?:\s*)?(?P<message>\S.*)$")

_PATTERNS: Final[dict[str, re.Pattern[str]]] = {
    "ruff": re.compile(_NAMED + r"(?P<code>[A-Za-z][\w-]*):? (?:\[\*\] )?(?P<message>.+)$"),
    "flake8": re.compile(_NAMED + r"(?P<code>[A-Z]+\d+) (?P<message>.+)$"),
    "mypy": re.compile(_NAMED + r"error: (?P<message>.+?)(?:  \[(?P<code>[\w-]+)\])?$"),
    "pyright": re.compile(
        r"^\s*(?P<path>\S.*?):(?P<line>\d+):\d+ - error: (?P<message>.+?)(?: \((?P<code>report\w+)\))?$"
    ),
    "tsc": re.compile(
        r"^(?P<path>\S.*?)(?:\((?P<line>\d+),\d+\):|:(?P<line2>\d+):\d+ -) error (?P<code>TS\d+): (?P<message>.+)$"
    ),
    "cargo": re.compile(_AT + r"(?:error|warning)(?:\[(?P<code>\w+)\])?: (?P<message>.+)$"),
    "rubocop": re.compile(_AT + r"[CWEFR]: (?:\[\w+\] )?(?P<code>[\w/]+): (?P<message>.+)$"),
}
_SAME_PATTERN: Final = {"vue-tsc": "tsc", "cargo-clippy": "cargo", "clippy": "cargo", "bundle": "rubocop"}
_MOST_DIGITS: Final = 9
_SUMMARY = re.compile(r"note:|In file included from|^\s+at ")
_COLOUR = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


def parse_diagnostics(tool: str, output: str, root: str = "") -> tuple[Diagnostic, ...]:
    """The complaints in a tool's output. `tool` is as in a CheckSpec (`python:mypy`, `node:tsc`, `go`); absolute
    paths below `root` are made relative to it. Output of an unknown tool is read for `file:line: message`."""
    name = tool.rpartition(":")[2]
    name = _SAME_PATTERN.get(name, name)
    clean = _COLOUR.sub("", output)
    read: Callable[[str], Iterator[Diagnostic]] = _eslint if name == "eslint" else _lines(name)
    return tuple(item.model_copy(update={"path": _relative(item.path, root)}) for item in read(clean) if item.path)


def _lines(name: str) -> Callable[[str], Iterator[Diagnostic]]:
    pattern = _PATTERNS.get(name, _GENERIC)

    def read(output: str) -> Iterator[Diagnostic]:
        for text in output.splitlines():
            text = text.removeprefix("vet: ")
            match = pattern.match(text)
            if match is None or _SUMMARY.search(text):
                continue
            found = match.groupdict()
            line = _line_number(found["line"] or found.get("line2") or "0")
            message = found["message"].strip()
            yield Diagnostic(path=found["path"], line=line, code=found.get("code") or "", message=message)

    return read


def _line_number(digits: str) -> int | None:
    """Return the number of a line; None for one with more digits than any file has lines."""
    return int(digits) if len(digits) <= _MOST_DIGITS else None


def _eslint(output: str) -> Iterator[Diagnostic]:
    """Errors only: warnings do not make ESLint fail."""
    for file in (file for report in _json_lists(output) for file in report if isinstance(file, dict)):
        messages = file.get("messages")
        for item in messages if isinstance(messages, list) else ():
            if isinstance(item, dict) and (item.get("severity") == 2 or item.get("fatal")):
                yield Diagnostic(
                    path=str(file.get("filePath", "")),
                    line=line if isinstance(line := item.get("line"), int) else None,
                    code=str(item.get("ruleId") or "parse"),
                    message=str(item.get("message") or "").partition("\n")[0],
                )


def _json_lists(output: str) -> Iterator[list[object]]:
    """Documents on lines of their own: a tool's own warnings may stand before and after."""
    for text in output.splitlines():
        if not text.startswith("["):
            continue
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            continue  # a line that only looks like the report
        if isinstance(value, list):
            yield value


def _relative(path: str, root: str) -> str:
    inside = root.rstrip("/") + "/"
    return normpath(path[len(inside) :] if root and path.startswith(inside) else path)

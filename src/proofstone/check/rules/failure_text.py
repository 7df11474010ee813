"""Find the cause of a failure in what a runner wrote: the assertion's own message, or the error of a run that broke.

`summarize_failure` reads the text of one failed test; `find_run_error` reads the output of a run that could not be
finished. Neither ever returns a frame of the runner. The first form that matches decides:

| form                   | recognised by                         | the cause                                |
|------------------------|---------------------------------------|------------------------------------------|
| pytest                 | lines that begin with `E`             | the first line of the last block of them |
| Rust                   | `thread '…' panicked at`              | the lines up to the backtrace            |
| Go                     | `=== RUN`, `--- FAIL`, `panic:`       | what `t.Error` printed, or the panic     |
| Python                 | `Traceback (most recent call last):`  | the exception after the last traceback   |
| TAP                    | `error:`, `expected:`, `actual:` keys | these keys                               |
| JavaScript, Java, .NET | frames that begin with `at`           | the lines before the first frame         |
| anything else          |                                       | its first lines                          |
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Final

MAX_CAUSE: Final = 300
_MAX_PARTS: Final = 8
_MAX_LINES: Final = 4

_COLOUR: Final = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_PREFIX: Final = re.compile(r"^(?:INTERNALERROR> ?|# ?(?=\s|\w+Error|Error))")
_PYTEST: Final = re.compile(r"^E(?:\s{2,}|$)")
_EXCEPTION: Final = re.compile(
    r"^(?:[A-Za-z_][\w.]*\.)?[A-Za-z_]\w*(?:Error|Exception|Exit|Warning|Interrupt|Failed)\b"
)
_PANIC: Final = re.compile(r"^thread '.*'(?: \(\d+\))? panicked at (?P<rest>.*)$")
_OLD_PANIC: Final = re.compile(r"^'(?P<message>.*)', \S+:\d+:\d+$")
_GO_LINE: Final = re.compile(r"^\s+\S+\.go:\d+: (?P<message>.*)$")
_GO_COMPILER: Final = re.compile(r"^\S+\.go:\d+(?::\d+)?: .+$")
_GO_MARK: Final = re.compile(r"^\s*(?:=== |--- (?:FAIL|PASS|SKIP)|FAIL\b|PASS$)")
_FRAME: Final = re.compile(r"^\s+at\s|^\s*❯ |^\s*@.*:\d+:\d+$")
_CODE_FRAME: Final = re.compile(r"^\s*(?:>\s*)?\d+\s*\||^\s*\|")
_TAP_KEY: Final = re.compile(r"^(?P<key>error|message|expected|actual|found|wanted|got|operator):\s*(?P<value>.*)$")
_HEADINGS: Final = ("● Test suite failed to run", "Failure/Error:")
_TELLING: Final = re.compile(r"assert|error|fail|expect|panic|exception", re.IGNORECASE)

BARE_CAUSES: Final = frozenset(("", "AssertionError", "assert False", "Failed", "Error", "failed", "test failed"))
"""Causes that say nothing: two tests that have them need not fail for the same reason."""


def summarize_failure(text: str) -> str:
    """Return the cause of a failure in one line; empty if there is no text."""
    lines = _COLOUR.sub("", text).splitlines()
    for read in _FORMS:
        if cause := read(lines):
            return _clip(cause)
    return ""


def find_run_error(output: str) -> tuple[str, ...]:
    """Return the lines in which the output of a broken run names its error, the error itself first; none if the output
    is empty."""
    lines = [_PREFIX.sub("", line) for line in _COLOUR.sub("", output).splitlines()]
    for read in _RUN_FORMS:
        if error := read(lines):
            return tuple(_clip(line) for line in error[:_MAX_LINES])
    last = next((line.strip() for line in reversed(lines) if line.strip()), "")
    return (_clip(last),) if last else ()


_FAILED_TESTS: Final = (
    re.compile(r"^(?:FAIL|ERROR): (?P<test>\S+ \(.+\))$"),  # unittest
    re.compile(r"^(?:FAILED|ERROR) (?P<test>\S+::.+)$"),  # pytest
    re.compile(r"^\s*not ok \d+ -? ?(?P<test>(?!.*# (?:TODO|SKIP)\b).+)$"),  # TAP, node
    re.compile(r"^\s*--- FAIL: (?P<test>\S+)"),  # Go
    re.compile(r"^test (?P<test>\S+) \.\.\. FAILED$"),  # cargo
    re.compile(r"^\s*● (?P<test>.+ › .+)$"),  # jest
    re.compile(r"^\s*(?:✗|✖|×) (?P<test>\S.*)$"),  # vitest, mocha
)


def find_failed_tests(output: str) -> tuple[str, ...]:
    """Return the tests that the output of a runner names as failed, for runs without a report."""
    lines = _COLOUR.sub("", output).splitlines()
    matches = (pattern.match(line) for line in lines for pattern in _FAILED_TESTS)
    return tuple(dict.fromkeys(_clip(match["test"]) for match in matches if match))


_NOT_FOUND: Final = re.compile(
    r"(?:^|[:\s])['‘]?(?P<program>[^\s:'‘’]+)['’]?: (?:command not found|not found|No such file or directory"
    r"|Permission denied)$"
)
_NOT_STARTED: Final = (126, 127)
"""The exit codes of a shell for a program that it cannot start, or does not find."""


def find_missing_program(exit_code: int | None, output: str) -> str:
    """Return the program that a shell could not start, if that is how a command ended; else ""."""
    if exit_code not in _NOT_STARTED:
        return ""
    matches = (_NOT_FOUND.search(line.rstrip()) for line in reversed(_COLOUR.sub("", output).splitlines()))
    return next((match["program"] for match in matches if match), "")


def _clip(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= MAX_CAUSE else f"{line[: MAX_CAUSE - 1]}…"


def _join(lines: Iterable[str]) -> str:
    """Join lines to one. A line that ends with a colon is followed by its value."""
    parts = [line.strip() for line in lines if line.strip()][:_MAX_PARTS]
    text = ""
    for part in parts:
        text += (" " if text.endswith(":") else "; " if text else "") + part
    return text


# One failed test.


def _read_pytest(lines: Sequence[str]) -> str:
    block = _find_last_block(lines, _PYTEST)
    if not block:
        return ""
    return _read_python_error([line[1:] for line in block])


def _find_last_block(lines: Sequence[str], pattern: re.Pattern[str]) -> list[str]:
    """Return the last lines in a row that match. Chained exceptions have several blocks, and the last is the result."""
    block: list[str] = []
    is_open = False
    for line in lines:
        if pattern.match(line):
            block = [*block, line] if is_open else [line]
            is_open = True
        else:
            is_open = False
    return block


def _read_python_error(lines: Sequence[str]) -> str:
    stripped = [line.strip() for line in lines if line.strip()]
    if not stripped:
        return ""
    first = stripped[0]
    if first.startswith('File "'):  # a syntax error names its place first
        error = next((line for line in reversed(stripped) if _EXCEPTION.match(line)), stripped[-1])
        return f"{error} ({first})"
    if len(stripped) > 1 and stripped[1].startswith("assert ") and not first.startswith("assert "):
        return f"{first}; {stripped[1]}"
    return first.removeprefix("AssertionError: ") if first.startswith("AssertionError: assert ") else first


def _read_rust(lines: Sequence[str]) -> str:
    for index, line in enumerate(lines):
        if match := _PANIC.match(line):
            if old := _OLD_PANIC.match(match["rest"]):
                return old["message"]
            if match["rest"].startswith("'"):
                rest = [match["rest"].removeprefix("'")]
                following = lines[index + 1 :]
            else:
                rest, following = [], lines[index + 1 :]
            for after in following:
                if not after.strip() or after.startswith(("stack backtrace:", "note: ")):
                    break
                rest.append(after)
            return _join(rest)
    return ""


def _read_go(lines: Sequence[str]) -> str:
    if not any(_GO_MARK.match(line) or line.startswith("panic: ") for line in lines):
        compiled = [line for line in lines if _GO_COMPILER.match(line)]
        return _join(compiled)
    for line in lines:
        if line.startswith(("panic: ", "fatal error: ")):
            return line.removesuffix(" [recovered]")
    messages: list[str] = []
    is_open = False
    for line in lines:
        if match := _GO_LINE.match(line):
            messages.append(match["message"])
            is_open = True
        elif is_open and line.startswith("        ") and line.strip():
            messages.append(line)
        else:
            is_open = False
    return _join(messages)


def _read_traceback(lines: Sequence[str]) -> str:
    starts = [index for index, line in enumerate(lines) if line.startswith("Traceback (most recent call last):")]
    if not starts:
        return ""
    following = lines[starts[-1] + 1 :]
    for index, line in enumerate(following):
        if line.strip() and not line[0].isspace():
            place = next((before.strip() for before in reversed(following[:index]) if 'File "' in before), "")
            is_syntax = line.startswith(("SyntaxError", "IndentationError", "TabError"))
            return f"{line} ({place})" if is_syntax and place else line
    return ""


def _read_tap(lines: Sequence[str]) -> str:
    keys: dict[str, list[str]] = {}
    key = ""
    for line in lines:
        stripped = line.strip()
        if match := _TAP_KEY.match(stripped):
            key = match["key"]
            value = match["value"].strip().strip("'\"")
            keys[key] = [] if value in ("|-", "|", ">-") else [value]
        elif re.match(r"^\w+:", stripped):
            key = ""
        elif key and stripped:
            keys[key].append(stripped)
    has_frames = any(_FRAME.match(line) for line in lines)
    if has_frames or not (keys.keys() & {"error", "message"} or len(keys) > 1):
        return ""
    message = _join((*keys.get("error", ()), *keys.get("message", ())))
    compared = [
        f"{name}: {' '.join(keys[name])}" for name in ("expected", "wanted", "actual", "found", "got") if name in keys
    ]
    return _join((message, *compared)) if message or compared else ""


def _read_before_frames(lines: Sequence[str]) -> str:
    frame = next((index for index, line in enumerate(lines) if _FRAME.match(line)), None)
    if frame is None:
        return ""
    return _read_first_lines(lines[:frame])


def _read_first_lines(lines: Sequence[str]) -> str:
    kept = [
        line.strip()
        for line in lines
        if line.strip()
        and not _CODE_FRAME.match(line)
        and not _GO_MARK.match(line)
        and not line.strip().startswith(_HEADINGS)
    ]
    if len(kept) > _MAX_PARTS:
        differing = [line for line in kept[1:] if line[:1] in "+-" or _TELLING.search(line)]
        kept = [kept[0], *differing]
    kept = [line for number, line in enumerate(kept) if not any(before in line for before in kept[:number])]
    if kept and kept[0].startswith("Error: expect("):
        kept[0] = kept[0].removeprefix("Error: ")
    if kept:
        kept[0] = kept[0].removeprefix("AssertionError [ERR_ASSERTION]: ")
    return _join(kept)


_FORMS: Final[tuple[Callable[[Sequence[str]], str], ...]] = (
    _read_pytest,
    _read_rust,
    _read_go,
    _read_traceback,
    _read_tap,
    _read_before_frames,
    _read_first_lines,
)


# The output of a run that broke.

_CONFTEST: Final = re.compile(r"^ImportError while loading conftest '(?P<path>.+)'\.$")
_PYTEST_FRAME: Final = re.compile(r"^(?P<place>\S+:\d+): in (?!import_module|_)")
_PYTHON_FRAME: Final = re.compile(r'^\s+File "(?P<place>[^"]+)", line (?P<line>\d+)')
_FOREIGN: Final = re.compile(r"site-packages/|/lib/python\d|<frozen |/probes/proofstone_|node_modules/|^node:")
_RUST_ERROR: Final = re.compile(r"^error(?:\[E\d+\])?: (?!could not compile|test failed|aborting)(?P<message>.+)$")
_RUST_PLACE: Final = re.compile(r"^\s*--> (?P<place>\S+)")
_NODE_ERROR: Final = re.compile(r"^(?:Uncaught )?(?:\w*Error)(?: \[\w+\])?: .+$")
_NODE_PLACE: Final = re.compile(r"^(?:file://)?(?P<place>/\S+:\d+)$")
_USAGE: Final = re.compile(r"^(?:\S.*: )?(?:error|ERROR|fatal): (?!usage: )(?P<message>.+)$")
_SHELL: Final = re.compile(
    r"(?:: not found$|: command not found$|No such file or directory$|No rule to make target|^npm (?:ERR!|error) )"
)


def _read_pytest_output(lines: Sequence[str]) -> list[str]:
    """Read what pytest prints if a conftest or a test file cannot be imported."""
    cause = _read_pytest(lines)
    if not cause:
        return []
    conftest = next((line for line in lines if _CONFTEST.match(line)), "")
    places = [match["place"] for line in lines if (match := _PYTEST_FRAME.match(line)) and not _FOREIGN.search(line)]
    return [cause, *([conftest] if conftest else []), *([f"at {places[-1]}"] if places else [])]


def _read_python_output(lines: Sequence[str]) -> list[str]:
    cause = _read_traceback(lines)
    if not cause or not _EXCEPTION.match(cause):
        return []
    frames = [match for line in lines if (match := _PYTHON_FRAME.match(line)) and not _FOREIGN.search(match["place"])]
    return [cause, *([f"at {frames[-1]['place']}:{frames[-1]['line']}"] if frames else [])]


def _read_rust_output(lines: Sequence[str]) -> list[str]:
    for index, line in enumerate(lines):
        if _RUST_ERROR.match(line):
            place = next((match["place"] for after in lines[index:] if (match := _RUST_PLACE.match(after))), "")
            return [line, *([f"at {place}"] if place else [])]
    return []


def _read_go_output(lines: Sequence[str]) -> list[str]:
    return [line for line in lines if _GO_COMPILER.match(line)]


def _read_node_output(lines: Sequence[str]) -> list[str]:
    for index, line in enumerate(lines):
        if _NODE_ERROR.match(line):
            places = [match["place"] for before in lines[:index] if (match := _NODE_PLACE.match(before.strip()))]
            own = [place for place in places if not _FOREIGN.search(place)]
            return [line, *([f"at {own[-1]}"] if own else [])]
    return []


def _read_usage_output(lines: Sequence[str]) -> list[str]:
    return [line for line in lines if _USAGE.match(line)][:2]


def _read_shell_output(lines: Sequence[str]) -> list[str]:
    return [line for line in lines if _SHELL.search(line)][:2]


_RUN_FORMS: Final[tuple[Callable[[Sequence[str]], list[str]], ...]] = (
    _read_pytest_output,
    _read_python_output,
    _read_rust_output,
    _read_go_output,
    _read_node_output,
    _read_usage_output,
    _read_shell_output,
)

"""`go test -json`: one JSON event a line, between compiler messages that are plain text."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from proofstone.adapters.checks.reports.source import Json, Source, UnreadableError, decode_json, mapping, number, text
from proofstone.adapters.checks.reports.tally import MESSAGE_LIMIT, Tally
from proofstone.contracts.tests import TestReport, TestStatus

_ENDS: Final = {"pass": TestStatus.PASSED, "fail": TestStatus.FAILED, "skip": TestStatus.SKIPPED}
_COMPILER = re.compile(r"# (\S+)(?: \[.+\])?$")
_CRASHES: Final = ("panic: ", "fatal error: ")
"""How Go's own runtime begins when it ends a test binary."""
_BUILD_FAILED = re.compile(r"FAIL\t(\S+) \[(?:build|setup) failed\]")


@dataclass
class _Package:
    ended: str | None = None
    tests: dict[str, bool] = field(default_factory=dict)
    """Name of a test, and whether it ended."""
    failed: bool = False
    """Whether one of its tests did."""
    output: dict[str, str] = field(default_factory=dict)
    """Head of what was printed, by test; the empty name is the package itself."""

    def print(self, test: str, words: str) -> None:
        so_far = self.output.get(test, "")
        if len(so_far) < MESSAGE_LIMIT:
            self.output[test] = so_far + words


def read_go(source: Source) -> TestReport:
    tally = Tally("go")
    packages: dict[str, _Package] = {}
    complaints: dict[str, str] = {}
    complaint = ""  # the package that the compiler is complaining about
    try:
        for line in source.output_lines():
            if line.startswith(("{", "FAIL\t", "ok  \t", "?   \t")):
                complaint = ""
                _line(line, packages, tally)
            elif header := _COMPILER.match(line):
                complaint = header[1]
            elif complaint:
                complaints[complaint] = complaints.get(complaint, "")[:MESSAGE_LIMIT] + f"{line}\n"
    except UnreadableError as error:
        tally.broken(str(error))
    for name, package in packages.items():
        _package_end(name, package, complaints.get(name, ""), tally)
    if not packages:
        tally.never_began("no events of `go test -json` in the output")
    return tally.report(complete=source.exit_code is not None)


def _line(line: str, packages: dict[str, _Package], tally: Tally) -> None:
    if refused := _BUILD_FAILED.match(line):
        packages.setdefault(refused[1], _Package()).ended = "build"
        return
    if not line.startswith("{"):
        return
    try:
        event = mapping(decode_json(line, "go test -json"))
    except UnreadableError:  # a program may print a brace; only lines that are events count
        return
    name = text(event.get("Package"))
    if not name or not isinstance(event.get("Action"), str):
        return
    _event(event, name, packages.setdefault(name, _Package()), tally)


def _event(event: dict[str, Json], name: str, package: _Package, tally: Tally) -> None:
    action = text(event.get("Action"))
    test = text(event.get("Test"))
    if action == "output":
        words = text(event.get("Output"))
        package.print(test, words)
        if not test and _BUILD_FAILED.match(words):
            package.ended = "build"
    elif action == "run" and test:
        package.tests.setdefault(test, False)
    elif action in _ENDS and test:
        package.tests[test] = True
        status = _ENDS[action]
        package.failed = package.failed or status.bad
        message = package.output.get(test, "") if status is not TestStatus.PASSED else ""
        seconds = number(event.get("Elapsed"))
        tally.add(f"{name}/{test}", status, ms=None if seconds is None else seconds * 1000, message=message)
    elif action in _ENDS:
        package.ended = package.ended or action


def _package_end(name: str, package: _Package, complaint: str, tally: Tally) -> None:
    for test, ended in package.tests.items():
        if not ended:
            message = package.output.get(test, "") or "started and never ended"
            tally.add(f"{name}/{test}", TestStatus.ERROR, message=message)
            package.failed = True
            if not any(crash in words for words in package.output.values() for crash in _CRASHES):
                tally.broken(f"{name}/{test}: its test binary was killed before the test had ended")
    if package.ended is None:
        tally.broken(f"{name}: go test ended before this package had finished")
    elif package.ended == "build":
        tally.add(name, TestStatus.ERROR, message=complaint or package.output.get("", "") or "does not build")
    elif package.ended == "fail" and not package.failed:
        tally.add(name, TestStatus.ERROR, message=package.output.get("", "") or "failed outside of its tests")

"""Read the Test Anything Protocol 12, 13 and 14 from the output or from `*.tap` files of the report directory.

The id is the description below those of the enclosing subtests. TAP allows repeated descriptions, so the second one of
a name gets ` #2`; a point without a description is named by its number. A point that only sums up its subtests is not a
result, unless it failed and none of them did.

tape prints a test as a comment above its assertions, and their number may vary: there the test is the result.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from proofstone.check.models import TestReport, TestStatus
from proofstone.check.reports.source import (
    MESSAGE_LIMIT,
    ReportBuilder,
    ReportSource,
    UnreadableError,
    split_text_lines,
)

_INDENT: Final = 4
_DEPTH_LIMIT: Final = 50
_POINT = re.compile(r"(not )?ok\b(?: +(\d{1,9}))?(?: +(.*))?$")
_PLAN = re.compile(r"1\.\.(\d{1,9})(?: *#.*)?$")
_VERSION = re.compile(r"TAP version \d+$")
_TITLE = re.compile(r"# (?:(SKIP|TODO) )?(.+)$")
_DIRECTIVE = re.compile(r"(?:^| )# *(skip|todo)\b\S*(?: +(.*))?$", re.IGNORECASE)
_MILLISECONDS = re.compile(r" *duration_ms: *([0-9.]{1,20})$")


@dataclass
class _Point:
    """A test point."""

    name: str
    status: TestStatus
    message: str = ""
    ms: float | None = None
    title: str = ""
    """The comment above the point, if the point may be an assertion of tape."""
    children: list[_Point] = field(default_factory=list)


@dataclass
class _Level:
    """The points of one document or subtest, until the point that they belong to is read."""

    points: list[_Point] = field(default_factory=list)
    names: Counter[str] = field(default_factory=Counter)
    plan: int | None = None
    plan_is_last: bool = False
    title: str = ""
    skipped: list[str] = field(default_factory=list)
    opened: bool = False
    """Whether the last point ended in `{`: then its subtests follow it instead of preceding it."""


def read_tap(source: ReportSource) -> TestReport:
    tally = ReportBuilder("tap")
    complete = False
    try:
        names = source.list_files(r"[^/]+\.tap")
        for name in names:
            _TapReader(tally, name, source).read(split_text_lines(source.read(name)))
        if not names:
            _TapReader(tally, "output", source).read(source.output_lines())
        complete = source.exit_code is not None
    except UnreadableError as error:
        tally.add_defect(str(error))
    return tally.build_report(complete=complete)


class _TapReader:
    """Reads one TAP document line by line."""

    def __init__(self, tally: ReportBuilder, where: str, source: ReportSource) -> None:
        self._tally = tally
        self._source = source
        self._where = where
        self._levels = [_Level()]
        self._documents = 0
        self._diagnostic: str | None = None
        """Indentation of the YAML block that is open."""
        self._after_point = False
        """A YAML block belongs to a point only when it follows at once; other output has dashes too."""

    def read(self, lines: Iterable[str]) -> None:
        for line in lines:
            self._read_line(line)
        self._end_document()
        if self._documents == 0:
            self._tally.mark_not_begun(f"{self._where}: no TAP in it, which has a plan such as `1..3`")

    def _read_line(self, line: str) -> None:
        body = line.lstrip(" ")
        indent = len(line) - len(body)
        if self._diagnostic is not None:
            self._read_diagnostic(line, body)
        elif body == "---" and self._after_point:
            self._diagnostic = line[:indent]
        elif body.startswith("Bail out!"):
            self._tally.add_defect(f"{self._where}: {body}")
        elif indent == 0 and _VERSION.match(body):
            self._end_document()
        elif indent % _INDENT == 0 and indent // _INDENT < _DEPTH_LIMIT:
            self._read_protocol_line(indent // _INDENT, body)
            return
        self._after_point = False

    def _read_protocol_line(self, depth: int, body: str) -> None:
        self._after_point = False
        if body == "}":
            self._attach_subtests(depth)
        elif plan := _PLAN.match(body):
            self._level(depth).plan, self._level(depth).plan_is_last = int(plan[1]), True
        elif depth == 0 and (title := _TITLE.match(body)):
            self._set_title(self._level(0), title)
        elif point := _POINT.match(body):
            self._add_point(depth, point)
            self._after_point = True

    @staticmethod
    def _set_title(level: _Level, title: re.Match[str]) -> None:
        level.title = title[2]
        if title[1] == "SKIP":
            level.skipped.append(title[2])

    def _level(self, depth: int) -> _Level:
        while len(self._levels) <= depth:
            self._levels.append(_Level())
        return self._levels[depth]

    @property
    def _last_point(self) -> _Point | None:
        level = next((level for level in reversed(self._levels) if level.points), None)
        return level.points[-1] if level else None

    def _add_point(self, depth: int, match: re.Match[str]) -> None:
        level = self._level(depth)
        level.plan_is_last = False
        title = "" if (match[3] or "").startswith("- ") else level.title
        rest = (match[3] or "").removeprefix("- ").strip()
        is_opened = rest.endswith("{")
        rest = rest.removesuffix("{").rstrip()
        status, message = TestStatus.FAILED if match[1] else TestStatus.PASSED, ""
        if directive := _DIRECTIVE.search(rest):
            rest, message = rest[: directive.start()].rstrip(), directive[2] or ""
            status = _apply_directive(directive[1].lower(), status)
        name = rest.replace("\\#", "#") or f"test {match[2] or len(level.points) + 1}"
        if name.startswith("/"):  # if a file cannot be loaded, Node uses its path as the name
            name = self._source.make_relative(name) or name
        level.names[name] += 1
        if level.names[name] > 1:
            name = f"{name} #{level.names[name]}"
        level.points.append(_Point(name, status, message, title=title))
        level.opened = is_opened
        if not is_opened:
            self._attach_subtests(depth)

    def _attach_subtests(self, depth: int) -> None:
        """Attach the open points one level down to the last point of this level."""
        level = self._level(depth)
        if len(self._levels) > depth + 1 and level.points:
            for below in self._levels[depth + 1 :]:
                self._check_plan(below, f"{self._where}: subtests of {level.points[-1].name!r}")
            level.points[-1].children = self._levels[depth + 1].points
            del self._levels[depth + 1 :]
        level.opened = False

    def _read_diagnostic(self, line: str, body: str) -> None:
        last = self._last_point
        if line == f"{self._diagnostic}..." or last is None:
            self._diagnostic = None
        elif duration := _MILLISECONDS.match(body):
            last.ms = float(duration[1]) if duration[1].count(".") <= 1 and duration[1] != "." else None
        elif last.status is not TestStatus.PASSED and len(last.message) < MESSAGE_LIMIT:
            last.message += f"{body}\n"

    def _end_document(self) -> None:
        top, *below = self._levels
        self._levels = [_Level()]
        self._diagnostic = None
        if not top.points and top.plan is None:
            if any(level.points for level in below):
                self._tally.add_defect(f"{self._where}: subtests without the point they belong to")
            return
        self._documents += 1
        if top.opened or any(level.points for level in below):
            self._tally.add_defect(f"{self._where}: ended inside of a subtest")
        self._check_plan(top, self._where)
        self._record(_group_by_title(top) or top.points, "")

    def _check_plan(self, level: _Level, where: str) -> None:
        if level.plan is None:
            self._tally.add_defect(f"{where}: no plan, so it is unknown whether all tests ran")
        elif level.plan != len(level.points):
            self._tally.add_defect(f"{where}: planned {level.plan} tests, saw {len(level.points)}")

    def _record(self, points: list[_Point], above: str) -> bool:
        """Record the points; return whether one of them failed."""
        has_failure = False
        for point in points:
            id = f"{above} > {point.name}" if above else point.name
            subtests_failed = self._record(point.children, id)
            if not point.children or (point.status.is_failure and not subtests_failed):
                self._tally.add(id, point.status, ms=point.ms, message=point.message)
            has_failure = has_failure or subtests_failed or point.status.is_failure
        return has_failure


def _group_by_title(level: _Level) -> list[_Point]:
    """Return the tests of tape's output; none for other producers. Only tape has titles, no dashes, and no plan at the
    beginning."""
    planned_first = level.plan is not None and not level.plan_is_last
    if planned_first or not all(point.title and not point.children for point in level.points):
        return []
    tests = {title: _Point(title, TestStatus.SKIPPED) for title in level.skipped}
    for point in level.points:
        test = tests.setdefault(point.title, _Point(point.title, point.status))
        if point.status.is_failure:
            test.status = point.status
            test.message = f"{test.message}{point.name}\n{point.message}"[:MESSAGE_LIMIT]
        elif test.status is TestStatus.SKIPPED:
            test.status = point.status
    return list(tests.values())


def _apply_directive(directive: str, status: TestStatus) -> TestStatus:
    if directive == "skip":
        return TestStatus.SKIPPED if status is TestStatus.PASSED else status
    return TestStatus.XPASSED if status is TestStatus.PASSED else TestStatus.XFAILED

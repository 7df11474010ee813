"""Read report files and output safely, and collect the results within limits.

The checked project wrote all of this, so it is treated as hostile. Files are opened without following links and without
waiting on pipes, and are refused if they are too large. JSON is decoded so that nothing in it can raise anything but
`UnreadableError`. `Tally` collects one result per id. It cuts and cleans text once for every format.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import posixpath
import re
import stat
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from proofstone.check.models import ReplacedFunction, TestReport, TestResult, TestStatus
from proofstone.check.rules.failure_text import MAX_CAUSE, summarize_failure

FILE_LIMIT: Final = 64 * 1024 * 1024
FILE_COUNT_LIMIT: Final = 10_000
ENTRY_LIMIT: Final = 100_000
DEPTH_LIMIT: Final = 20
TOTAL_LIMIT: Final = 4 * FILE_LIMIT

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]

_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class UnreadableError(Exception):
    """A part of a report cannot be read; the text says which and why. The readers catch this error."""


class MissingReportError(UnreadableError):
    """There is no such file, because no runner wrote one."""


@dataclass(frozen=True)
class ReportSource:
    """What a reader may use: the report directory, the output, and the paths as the check saw them."""

    directory: Path
    output: bytes
    root: str
    """The repository's path as the check saw it."""
    cwd: str
    """The check's directory, relative to the root."""
    exit_code: int | None
    """None if the command was killed."""
    mask: Callable[[bytes], bytes] = bytes
    """Removes secrets from what is read. The output is masked already."""

    def list_files(self, pattern: str) -> list[str]:
        """Return the names of matching report files, relative to the directory and sorted. Links are not followed."""
        matches = re.compile(pattern)
        names = [name for name in _list_files(self.directory) if matches.fullmatch(posixpath.basename(name))]
        if len(names) > FILE_COUNT_LIMIT:
            raise UnreadableError(f"more than {FILE_COUNT_LIMIT:,} report files")
        return sorted(names)

    def read(self, name: str) -> bytes:
        """Return the bytes of one report file."""
        try:
            descriptor = os.open(self.directory / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except FileNotFoundError as error:
            raise MissingReportError(f"{name}: does not exist") from error
        except (OSError, ValueError) as error:
            raise UnreadableError(f"{name}: cannot be opened: {error}") from error
        with os.fdopen(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise UnreadableError(f"{name}: is not a regular file")
            if status.st_size > FILE_LIMIT:
                raise UnreadableError(f"{name}: {status.st_size:,} bytes, larger than the {FILE_LIMIT:,} that are read")
            try:
                return self.mask(file.read(FILE_LIMIT))
            except OSError as error:
                raise UnreadableError(f"{name}: cannot be read: {error}") from error

    def output_lines(self) -> Iterator[str]:
        """Return the output as text, line by line, without colours."""
        if len(self.output) > FILE_LIMIT:
            raise UnreadableError(f"output: {len(self.output):,} bytes, larger than the {FILE_LIMIT:,} that are read")
        return split_text_lines(self.output)

    def make_relative(self, path: str, base: str | None = None) -> str | None:
        """Return `path` relative to the repository; None if it lies outside. Relative paths start at `base`, or at the
        check's directory. The file system is not used, because these are paths in the sandbox."""
        start = base if base is not None else posixpath.join(self.root, self.cwd)
        full_path = posixpath.normpath(posixpath.join(start, path.removeprefix("file://")))
        root = posixpath.normpath(self.root)
        if full_path == root:
            return "."
        prefix = root if root.endswith("/") else f"{root}/"
        return full_path[len(prefix) :] if full_path.startswith(prefix) else None


def _list_files(directory: Path) -> Iterator[str]:
    """Return everything that is not a directory. `os.walk` is not used because it recurses and the folders may be deep
    on purpose."""
    count = 0
    folders = [("", 0)]
    while folders:
        folder, depth = folders.pop()
        try:
            entries = list(os.scandir(directory / folder))
        except OSError:  # a missing or unreadable directory holds nothing to read
            continue
        count += len(entries)
        if count > ENTRY_LIMIT or depth > DEPTH_LIMIT:
            raise UnreadableError(f"report directory: more than {ENTRY_LIMIT:,} entries, or deeper than {DEPTH_LIMIT}")
        for entry in entries:
            name = f"{folder}{entry.name}"
            if entry.is_dir(follow_symlinks=False):
                folders.append((f"{name}/", depth + 1))
            else:
                yield name


def split_text_lines(data: bytes) -> Iterator[str]:
    for line in data.split(b"\n"):
        yield _ANSI.sub("", line.decode("utf-8", "replace")).rstrip("\r")


def decode_json(data: bytes | str, where: str) -> Json:
    try:
        value: Json = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise UnreadableError(f"{where}: not JSON: {error}") from error
    return value


def as_text(value: Json) -> str:
    return value if isinstance(value, str) else ""


def as_number(value: Json) -> float | None:
    """Return a number as a float; None for anything else, also for one too large to be a float."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value)
    except OverflowError:
        return None


def as_mapping(value: Json) -> dict[str, Json]:
    return value if isinstance(value, dict) else {}


def as_sequence(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []


RESULT_LIMIT: Final = 200_000
MESSAGE_LIMIT: Final = 2_000
ID_LIMIT: Final = 1_000
PROBLEM_LIMIT: Final = 50
IMPORT_LIMIT: Final = 1_000

WORST_FIRST: Final = (
    TestStatus.ERROR,
    TestStatus.FAILED,
    TestStatus.SKIPPED,
    TestStatus.XFAILED,
    TestStatus.XPASSED,
    TestStatus.PASSED,
)
"""If two results have the same id, the worse one counts: a pass never hides a failure or a skip."""


def clean_text(text: str, limit: int) -> str:
    """Return text that every database and terminal accepts: no NUL, no half characters, at most `limit` long."""
    return text[:limit].encode("utf-8", "replace").decode("utf-8").replace("\0", "\ufffd")


def clean_id(text: str) -> str:
    """Return an id within the limit. A longer one is cut and gets a digest, so that two ids never become equal."""
    text = clean_text(" ".join(text.splitlines()), len(text))
    if len(text) <= ID_LIMIT:
        return text
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    return f"{text[: ID_LIMIT - len(digest) - 1]}…{digest}"


class ReportBuilder:
    """Results and problems of one run, while its report is being read."""

    def __init__(self, runner: str) -> None:
        self._runner = runner
        self._results: dict[str, TestResult] = {}
        self._problems: list[str] = []
        self._broken = False
        self._refused = False
        self.has_failures = False
        """Whether one of the results is a failure or an error."""

    def __contains__(self, id: str) -> bool:
        return clean_id(id) in self._results

    def add(
        self,
        id: str,
        status: TestStatus,
        *,
        ms: float | None = None,
        message: str = "",
        path: str | None = None,
        cause: str = "",
    ) -> None:
        """Add a result. `cause` is why it failed, if the runner states it apart from the message."""
        id = clean_id(id)
        if not id:
            self.add_defect("a result without an id was left out")
            return
        self.has_failures = self.has_failures or status.is_failure
        before = self._results.get(id)
        if before is not None and WORST_FIRST.index(before.status) <= WORST_FIRST.index(status):
            return
        if before is None and len(self._results) >= RESULT_LIMIT:
            self.add_defect(f"more than {RESULT_LIMIT:,} results; the rest was left out")
            return
        self._results[id] = TestResult(
            id=id,
            status=status,
            duration_ms=_round_milliseconds(ms),
            message=clean_text(message, MESSAGE_LIMIT),
            path=None if path is None else clean_text(path, ID_LIMIT),
            cause=clean_text(cause or summarize_failure(message[:MESSAGE_LIMIT]), MAX_CAUSE)
            if status.is_failure
            else "",
        )

    def add_problem(self, text: str) -> None:
        """Add a problem for the user. The report may still be complete."""
        text = clean_text(text, MESSAGE_LIMIT)
        if text not in self._problems and len(self._problems) < PROBLEM_LIMIT:
            self._problems.append(text)

    def add_defect(self, text: str) -> None:
        """Add a problem and mark the report as incomplete."""
        self._broken = True
        self.add_problem(text)

    def mark_not_begun(self, text: str) -> None:
        """Note that a runner did not begin, so that it has no complete report."""
        self._refused = True
        self.add_problem(text)

    def build_report(
        self,
        *,
        complete: bool,
        imported_from: tuple[str, ...] = (),
        loaded: Mapping[str, str | None] | None = None,
        replaced: tuple[ReplacedFunction, ...] = (),
    ) -> TestReport:
        return TestReport(
            runner=self._runner,
            results=tuple(self._results.values()),
            complete=complete and not self._broken and not self._refused,
            began=self._broken or not self._refused,
            imported_from=tuple(clean_text(place, ID_LIMIT) for place in imported_from[:IMPORT_LIMIT]),
            loaded=loaded or {},
            replaced=replaced,
            problems=tuple(self._problems),
        )


def _round_milliseconds(value: float | None) -> int | None:
    if value is None or not math.isfinite(value) or not 0 <= value < 1e12:
        return None
    return round(value)

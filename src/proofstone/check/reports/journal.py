"""Read the journals of Proofstone's own probes (pytest, unittest, Node): one JSON-lines file per process, all merged.

`probes/README.md` describes the lines. A journal without its last line belongs to a runner that died.
"""

from __future__ import annotations

from typing import Final

from proofstone.check.models import NEVER_RUN, ReplacedFunction, TestReport, TestStatus
from proofstone.check.reports.source import (
    ID_LIMIT,
    TOTAL_LIMIT,
    Json,
    ReportBuilder,
    ReportSource,
    UnreadableError,
    as_mapping,
    as_number,
    as_sequence,
    as_text,
    clean_text,
    decode_json,
)
from proofstone.check.rules.failure_text import summarize_failure

_SEPARATORS: Final = {"pytest": "::", "node": " > ", "unittest": "."}
_MAX_MODULES: Final = 5000
_STATUSES: Final = {status.value: status for status in TestStatus}

_INTERRUPTED, _INTERNAL_ERROR, _USAGE_ERROR = 2, 3, 4


def read_journals(runner: str, source: ReportSource) -> TestReport:
    tally = ReportBuilder(runner)
    names = source.list_files(rf"{runner}-[0-9-]+\.jsonl")
    if not names:
        tally.mark_not_begun(f"no {runner} report: {runner} did not run, or ran without Proofstone's probe")
    imported: set[str] = set()
    loaded: dict[str, str | None] = {}
    replaced: dict[ReplacedFunction, None] = {}
    budget = TOTAL_LIMIT
    for name in names:
        try:
            data = source.read(name)
            budget -= len(data)
            if budget < 0:
                raise UnreadableError(f"{name}: the reports together are larger than {TOTAL_LIMIT:,} bytes")
            journal = _Journal(runner, name, source, tally)
            imported.update(journal.read(data))
            loaded |= journal.read_loaded()
            replaced |= dict.fromkeys(journal.read_replaced())
        except UnreadableError as error:
            tally.add_defect(str(error))
    return tally.build_report(
        complete=source.exit_code is not None,
        imported_from=tuple(sorted(imported)),
        loaded=loaded,
        replaced=tuple(replaced),
    )


class _Journal:
    """Reads one file."""

    def __init__(self, runner: str, name: str, source: ReportSource, tally: ReportBuilder) -> None:
        self._runner = runner
        self._name = name
        self._source = source
        self._tally = tally
        self._base: str | None = None
        self._collected: dict[str, str | None] = {}
        self._finish: dict[str, Json] | None = None
        self._refused = False

    def read(self, data: bytes) -> list[str]:
        """Read all lines; return where the project was imported from."""
        for count, line in enumerate(data.splitlines(), start=1):
            where = f"{self._name}, line {count}"
            try:
                self._read_line(as_mapping(decode_json(line, where)), where)
            except UnreadableError as error:
                self._tally.add_defect(str(error))
        for id, path in self._collected.items():
            if id not in self._tally:
                self._tally.add(id, TestStatus.SKIPPED, message=NEVER_RUN, path=path)
        return self._finish_reading()

    def _read_line(self, line: dict[str, Json], where: str) -> None:
        match line.get("event"):
            case "start":
                self._base = as_text(line.get("base")) or None
            case "collected":
                for test in as_sequence(line.get("tests")):
                    file, name = (*as_sequence(test), None, None)[:2]
                    id, path = self._identify(file, name)
                    self._collected[id] = path
            case "test":
                self._read_test(line, where)
            case "died":
                self._tally.add_defect(f"{self._name}: died before its tests had ended: {as_text(line.get('what'))}")
            case "refused":
                self._refused = True
                self._tally.mark_not_begun(f"{self._runner} could not begin: {as_text(line.get('why'))}")
            case "finish":
                self._finish = line
            case other:
                raise UnreadableError(f"{where}: unknown event {other!r}")

    def _read_test(self, line: dict[str, Json], where: str) -> None:
        status = _STATUSES.get(as_text(line.get("status")))
        if status is None:
            raise UnreadableError(f"{where}: unknown status {line.get('status')!r}")
        id, path = self._identify(line.get("file"), line.get("name"))
        if path is None and isinstance(line.get("path"), str):
            path = self._source.make_relative(as_text(line.get("path")), self._base)
        cause = summarize_failure(as_text(line.get("cause"))) if status.is_failure else ""
        message = as_text(line.get("message"))
        self._tally.add(id, status, ms=as_number(line.get("ms")), message=message, path=path, cause=cause)

    def _identify(self, file: Json, name: Json) -> tuple[str, str | None]:
        return identify_test(self._runner, self._source, self._base, file, name)

    def _finish_reading(self) -> list[str]:
        if self._refused:
            return []
        if self._finish is None:
            self._tally.add_defect(f"{self._name}: {self._runner} ended before it had finished")
            return []
        if self._base is None:
            self._tally.add_defect(f"{self._name}: no start line")
        if self._runner == "pytest":
            self._check_pytest_status(self._finish.get("exit"))
        return [as_text(place) for place in as_sequence(self._finish.get("imported_from")) if as_text(place)]

    def read_loaded(self) -> dict[str, str | None]:
        """Return the modules that were loaded before the tests ran, with their files."""
        loaded = (self._finish or {}).get("loaded")
        if not isinstance(loaded, dict):
            return {}
        entries = list(loaded.items())[:_MAX_MODULES]
        return {
            clean_text(name, ID_LIMIT): self._source.make_relative(clean_text(file, ID_LIMIT), self._base)
            if isinstance(file, str)
            else None
            for name, file in entries
        }

    def read_replaced(self) -> list[ReplacedFunction]:
        """Return the functions that code of another file stands in for."""
        found = []
        for entry in as_sequence((self._finish or {}).get("replaced"))[:_MAX_MODULES]:
            module, name, file = (*as_sequence(entry), None, None, None)[:3]
            path = self._source.make_relative(as_text(file), self._base) if as_text(file) else None
            if path is not None:
                module, name, path = (clean_text(as_text(part), ID_LIMIT) for part in (module, name, path))
                found.append(ReplacedFunction(module=module, name=name, path=path))
        return found

    def _check_pytest_status(self, status: Json) -> None:
        if status == _INTERRUPTED and not self._tally.has_failures:
            self._tally.add_defect(f"{self._name}: pytest was interrupted")
        elif status == _INTERNAL_ERROR:
            self._tally.add_defect(f"{self._name}: pytest had an internal error")
        elif status == _USAGE_ERROR:
            self._tally.mark_not_begun(
                "pytest could not begin: a test file or an option that it was given does not exist"
            )


def identify_test(
    runner: str, source: ReportSource, base: str | None, file: Json, name: Json
) -> tuple[str, str | None]:
    """Return id and path of a test, both relative to the repository. A file outside it keeps the runner's name."""
    if not isinstance(file, str):
        return as_text(name), None
    path = source.make_relative(file, base)
    file_name = path if path is not None else file
    return (f"{file_name}{_SEPARATORS[runner]}{name}" if as_text(name) else file_name), path

"""Ask the probes to observe a run, and read what they observed: JSON-lines files like the journals.

`probes/README.md` describes the lines. A file without its last line belongs to a process that died, and what it
observed is incomplete.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Final, TypeVar

from proofstone.check.observation import (
    ComparingAnswer,
    FileUse,
    FileUseKind,
    LoadedModule,
    ObservationRequest,
    Observations,
    ObservedCall,
    RepeatedAnswer,
    StatementCoverage,
)
from proofstone.check.reports.journal import identify_test
from proofstone.check.reports.source import (
    ID_LIMIT,
    MESSAGE_LIMIT,
    TOTAL_LIMIT,
    Json,
    ReportSource,
    UnreadableError,
    as_mapping,
    as_sequence,
    as_text,
    clean_id,
    clean_text,
    decode_json,
)

REQUEST_FILE: Final = "observe.json"
_RUNNERS: Final = ("pytest", "unittest", "node")
_REPEATERS: Final = ("replay", "control")
_MAX_CALLS: Final = 2_000
_MAX_VALUE_CHARS: Final = 100_000
_MAX_PATH: Final = 1_000
_MAX_USES: Final = 50_000
_MAX_STACK: Final = 8
_MAX_TESTS: Final = 200_000
_MAX_STATEMENTS: Final = 20_000
_MAX_NUMBERS: Final = 200_000
_MAX_PROBLEMS: Final = 50
_KINDS: Final = {kind.value: kind for kind in FileUseKind}


def write_observation_request(request: ObservationRequest, report_dir: Path, root: str) -> None:
    """Tell the probes what to observe. `root` is the repository as the check sees it."""
    text = json.dumps({"root": root, **request.model_dump(mode="json")})
    (report_dir / REQUEST_FILE).write_text(text, "utf-8")


def read_observations(source: ReportSource, request: ObservationRequest) -> Observations | None:
    """Return what the probes observed; None if no probe wrote anything."""
    reader = _ObservationReader(source, request)
    budget = TOTAL_LIMIT
    try:
        names = source.list_files(rf"observed-({'|'.join((*_RUNNERS, *_REPEATERS))})-[0-9-]+\.jsonl")
    except UnreadableError as error:
        reader.add_problem(str(error))
        return reader.build()
    if not names:
        return None
    for name in names:
        try:
            data = source.read(name)
            budget -= len(data)
            if budget < 0:
                raise UnreadableError(f"{name}: the observations are larger than {TOTAL_LIMIT:,} bytes")
            reader.read(name, data)
        except UnreadableError as error:
            reader.add_problem(str(error))
    return reader.build()


class _ObservationReader:
    """Reads the files of all processes of a run."""

    def __init__(self, source: ReportSource, request: ObservationRequest) -> None:
        self._source = source
        self._request = request
        self._files: dict[FileUse, None] = {}
        self._modules: dict[LoadedModule, None] = {}
        self._tests: dict[str, int] = {}
        self._instrumented: set[str] = set()
        self._coverage: dict[tuple[str, tuple[int, ...]], set[int]] = {}
        self._calls: list[ObservedCall] = []
        self._comparing: dict[ComparingAnswer, None] = {}
        self._path: dict[str, None] = {}
        self._answers: list[RepeatedAnswer] = []
        self._problems: dict[str, None] = {}

    def read(self, name: str, data: bytes) -> None:
        process = _ProcessState()
        for count, line in enumerate(data.splitlines(), start=1):
            where = f"{name}, line {count}"
            try:
                self._read_line(as_mapping(decode_json(line, where)), process, where)
            except UnreadableError as error:
                self.add_problem(str(error))
        if not process.is_finished:
            self.add_problem(f"{name}: the process died before it had written everything")

    def _read_line(self, line: dict[str, Json], process: _ProcessState, where: str) -> None:
        match line.get("event"):
            case "start":
                runner = as_text(line.get("runner"))
                process.runner = runner if runner in _RUNNERS else _RUNNERS[0]
                process.base = as_text(line.get("base")) or None
            case "file":
                self._read_file(line, where)
            case "module":
                module = LoadedModule(name=_as_id(line.get("name")), path=_as_id(line.get("path")))
                _add(self._modules, module, _MAX_USES, where)
            case "test":
                id, _ = identify_test(process.runner, self._source, process.base, line.get("file"), line.get("name"))
                process.tests[_as_count(line.get("number"))] = self._number(clean_id(id), where)
            case "instrumented":
                path = _as_id(line.get("path"))
                self._instrumented |= {path} & set(self._request.coverage)
            case "coverage":
                self._read_coverage(line, process, where)
            case "path":
                for entry in as_sequence(line.get("entries"))[:_MAX_PATH]:
                    _add(self._path, _as_id(entry), _MAX_PATH, where)
            case "call":
                self._read_call(line, where)
            case "comparing":
                name, kind, base = (_as_id(line.get(key)) for key in ("name", "kind", "base"))
                _add(self._comparing, ComparingAnswer(name=name, kind=kind, base=base), _MAX_CALLS, where)
            case "answer":
                answer = RepeatedAnswer(
                    number=_as_count(line.get("number")), answer=_as_json(line.get("answer"), where)
                )
                _append(self._answers, answer, where)
            case "unavailable":
                self.add_problem(f"{as_text(line.get('what'))}: {as_text(line.get('why'))}")
            case "finish":
                process.is_finished = True
            case other:
                raise UnreadableError(f"{where}: unknown event {other!r}")

    def _number(self, id: str, where: str) -> int:
        if id not in self._tests and len(self._tests) >= _MAX_TESTS:
            raise UnreadableError(f"{where}: more than {_MAX_TESTS:,} tests")
        return self._tests.setdefault(id, len(self._tests))

    def _read_file(self, line: dict[str, Json], where: str) -> None:
        kind = _KINDS.get(as_text(line.get("kind")))
        if kind is None:
            raise UnreadableError(f"{where}: unknown kind {line.get('kind')!r}")
        stack = tuple(_as_id(file) for file in as_sequence(line.get("stack"))[:_MAX_STACK])
        _add(self._files, FileUse(path=_as_id(line.get("path")), kind=kind, stack=stack), _MAX_USES, where)

    def _read_coverage(self, line: dict[str, Json], process: _ProcessState, where: str) -> None:
        path = _as_id(line.get("path"))
        lines = tuple(sorted(set(_as_counts(line.get("lines")))))
        if path not in self._request.coverage or not lines:
            raise UnreadableError(f"{where}: coverage that nobody asked for")
        if (path, lines) not in self._coverage and len(self._coverage) >= _MAX_STATEMENTS:
            raise UnreadableError(f"{where}: more than {_MAX_STATEMENTS:,} statements")
        numbers = _as_counts(line.get("tests"))
        tests = {process.tests[number] for number in numbers if number in process.tests}
        outside = {_OUTSIDE} if any(number not in process.tests for number in numbers) else set()
        self._coverage.setdefault((path, lines), set()).update(tests, outside)

    def _read_call(self, line: dict[str, Json], where: str) -> None:
        path, name = _as_id(line.get("path")), _as_id(line.get("name"))
        if name not in self._request.calls.get(path, ()):
            raise UnreadableError(f"{where}: a call that nobody asked for")
        parameters = tuple(
            tuple(_as_id(entry) for entry in as_sequence(names)[:_MAX_PATH])
            for names in as_sequence(line.get("parameters"))[:4]
        )
        arguments = as_sequence(line.get("arguments"))
        if len(parameters) != 4 or sum(map(len, parameters)) != len(arguments):
            raise UnreadableError(f"{where}: {len(arguments)} arguments do not fit the parameters")
        attribute = [_as_id(part) for part in as_sequence(line.get("attribute"))[:2]]
        is_attribute = len(attribute) == 2
        call = ObservedCall(
            path=path,
            module=attribute[0] if is_attribute else _as_id(line.get("module")),
            name=attribute[1] if is_attribute else name,
            is_attribute=is_attribute,
            parameters=parameters,
            arguments=_as_json(arguments, where),
            answer=_as_json(line.get("answer"), where),
        )
        _append(self._calls, call, where)

    def add_problem(self, text: str) -> None:
        if len(self._problems) < _MAX_PROBLEMS:
            self._problems[clean_text(text, MESSAGE_LIMIT)] = None

    def build(self) -> Observations:
        coverage = tuple(
            StatementCoverage(
                path=path, lines=lines, tests=tuple(sorted(tests - {_OUTSIDE})), outside_tests=_OUTSIDE in tests
            )
            for (path, lines), tests in sorted(self._coverage.items())
        )
        return Observations(
            request=self._request,
            files=tuple(self._files),
            modules=tuple(self._modules),
            tests=tuple(self._tests),
            instrumented=tuple(sorted(self._instrumented)),
            coverage=coverage,
            calls=tuple(self._calls),
            comparing=tuple(self._comparing),
            path=tuple(self._path),
            answers=tuple(self._answers),
            unavailable=tuple(self._problems),
        )


_OUTSIDE: Final = -1
"""Stands for what is executed outside of any single test."""
_Entry = TypeVar("_Entry")


class _ProcessState:
    """What is known of the process that wrote a file."""

    def __init__(self) -> None:
        self.runner = _RUNNERS[0]
        self.base: str | None = None
        self.tests: dict[int, int] = {}
        """The process's own number of a test → its number in the run."""
        self.is_finished = False


def _add(entries: dict[_Entry, None], entry: _Entry, limit: int, where: str) -> None:
    if entry not in entries and len(entries) >= limit:
        raise UnreadableError(f"{where}: more than {limit:,} entries")
    entries[entry] = None


def _append(entries: list[_Entry], entry: _Entry, where: str) -> None:
    if len(entries) >= _MAX_CALLS:
        raise UnreadableError(f"{where}: more than {_MAX_CALLS:,} calls")
    entries.append(entry)


def _as_json(value: Json, where: str) -> str:
    """Return a value as text that two processes can compare."""
    try:
        text = json.dumps(value, sort_keys=True)
    except RecursionError as error:
        raise UnreadableError(f"{where}: nested too deeply") from error
    if len(text) > _MAX_VALUE_CHARS:
        raise UnreadableError(f"{where}: a value of {len(text):,} characters")
    return text


def _as_id(value: Json) -> str:
    return clean_text(as_text(value), ID_LIMIT)


def _as_count(value: Json) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 31 else 0


def _as_counts(value: Json) -> Sequence[int]:
    return [_as_count(number) for number in as_sequence(value)[:_MAX_NUMBERS]]

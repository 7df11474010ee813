"""What may be observed while tests run: a request, and the observations that answer it.

A run is observed if it is given an `ObservationRequest`:

    result = runner.run(spec, tree, observe=ObservationRequest(files=True))
    result = derived_runs.run(spec, tree, "observed", observe=ObservationRequest(coverage={"shop.py": ((10, 14),)}))
    result.observations.tests_reaching("shop.py", [12])

- `files`: the files of the project that were opened and the modules that were loaded, each with the project's files on
  the stack at that moment. `FileUse.stack` is empty if only the runner did it.
- `calls`: the calls of the named functions, each with its arguments and its answer as JSON, if both can be copied.
- `plain`: besides the calls, which of their answers compare themselves; whoever calls gets plain copies of those.
- `repeat`: no tests at all, but recorded calls that are made again; `proofstone_replay.py` is run for it.
- `coverage`: which tests execute the lines of interest. A line belongs to its whole statement, the signature of a
  function to the call of the function. What runs at import, or in a fixture of a wider scope, belongs to no single
  test. Files with a function that a decorator compiles, and files that are loaded by anything but the import system,
  are not observed: see `instrumented`.

pytest (also with xdist) and unittest are observed; see `probes/proofstone_observe.py`. Observing changes no result and
no command, costs nothing where nothing is of interest, and is possible beside coverage tools and debuggers. Processes
that tests start are not observed: a line that no test was seen to execute may still be executed in one of those.

The project under test writes the bytes that this is read from, so it is no proof. `unavailable` says what could not be
observed and why; whoever relies on an absence looks there first. `None` in place of `Observations` means that the run
was not asked, or that no runner that can be observed has run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum

from proofstone.common.models import FrozenModel

LineRanges = tuple[tuple[int, int], ...]
"""First and last line of each range, counted from 1."""


class ObservedCall(FrozenModel):
    """One call of a function of the project. Values are JSON as `probes/proofstone_values.py` writes it."""

    path: str
    """The file of the function, relative to the repository."""
    module: str
    name: str
    """The function's name, with its classes."""
    parameters: tuple[tuple[str, ...], ...]
    """The names of the parameters: positional, `*`, keyword-only, `**`."""
    arguments: str
    """A list, in the order of `parameters`."""
    answer: str
    """`["value", VALUE]` or `["error", CLASS]`."""
    is_attribute: bool = False
    """Whether `module` and `name` are those of an attribute that holds a nested function of the file, such as the
    wrapper of a decorator."""


class RepeatRequest(FrozenModel):
    """Calls to make again, outside of any test."""

    calls: tuple[ObservedCall, ...]
    path: tuple[str, ...]
    """`sys.path` of the process in which they were recorded."""
    backwards: bool = False
    """Make the calls in the opposite order, in another folder, without the variables that name a runner or CI, and with
    those of a person's session."""
    times: int = 1
    call_seconds: float = 0
    """Processor time after which a call is given up and has no answer; 0 for no limit."""


class RepeatedAnswer(FrozenModel):
    """The answer of one call that was made again."""

    number: int
    """The position of the call in the request."""
    answer: str


class ObservationRequest(FrozenModel):
    """What a run is to observe."""

    files: bool = False
    coverage: Mapping[str, LineRanges] = {}
    """Lines of interest by file, relative to the repository."""
    calls: Mapping[str, tuple[str, ...]] = {}
    """Functions of interest by file, with their classes: `Cart.total`."""
    plain: bool = False
    """Whether answers of the named functions that compare themselves are replaced by plain copies."""
    repeat: RepeatRequest | None = None

    @property
    def is_empty(self) -> bool:
        return not (self.files or self.coverage or self.calls or self.repeat)

    def merge(self, other: ObservationRequest) -> ObservationRequest:
        """Return a request for what either asks for."""
        paths = sorted({*self.coverage, *other.coverage})
        coverage = {
            path: tuple(sorted({*self.coverage.get(path, ()), *other.coverage.get(path, ())})) for path in paths
        }
        calls = {
            path: tuple(sorted({*self.calls.get(path, ()), *other.calls.get(path, ())}))
            for path in sorted({*self.calls, *other.calls})
        }
        repeat = self.repeat or other.repeat
        plain = self.plain or other.plain
        return ObservationRequest(
            files=self.files or other.files, coverage=coverage, calls=calls, plain=plain, repeat=repeat
        )

    def covers(self, other: ObservationRequest) -> bool:
        """Return whether the answer to this request answers the other one too."""
        return (
            (self.files or not other.files)
            and self.plain is other.plain
            and all(set(ranges) <= set(self.coverage.get(path, ())) for path, ranges in other.coverage.items())
            and all(set(names) <= set(self.calls.get(path, ())) for path, names in other.calls.items())
        )


class ComparingAnswer(FrozenModel):
    """A class of the project, on a plain type, that decides by itself what it is equal to, less than, or what it holds.
    A function of interest answers with such an object."""

    name: str
    """The function, with its classes."""
    kind: str
    base: str
    """The plain type: `list`."""


class FileUseKind(StrEnum):
    READ = "read"
    WRITTEN = "written"
    """The file was opened for writing."""
    LOADED = "loaded"
    """The file was executed as a module, or loaded as an extension module."""


class FileUse(FrozenModel):
    """One way in which a file of the project was opened or loaded."""

    path: str
    """Relative to the repository. The file may not exist, or may have been created by the run."""
    kind: FileUseKind
    stack: tuple[str, ...] = ()
    """The files of the project with a frame on the stack, the nearest first, at most eight."""


class LoadedModule(FrozenModel):
    """A module of the project that was loaded when the tests had ended."""

    name: str
    path: str
    """Its file, relative to the repository."""


class StatementCoverage(FrozenModel):
    """The tests that executed one statement."""

    path: str
    lines: tuple[int, ...]
    """The lines of interest of the statement."""
    tests: tuple[int, ...]
    """Positions in `Observations.tests`."""
    outside_tests: bool = False
    """Whether it was also executed outside of any single test: at import, or in a fixture of a wider scope."""


class Observations(FrozenModel):
    """What was observed in one run."""

    request: ObservationRequest
    files: tuple[FileUse, ...] = ()
    modules: tuple[LoadedModule, ...] = ()
    tests: tuple[str, ...] = ()
    """The ids of the tests that `coverage` names, as in the report."""
    instrumented: tuple[str, ...] = ()
    """The files of `request.coverage` that were loaded and whose statements are observed."""
    coverage: tuple[StatementCoverage, ...] = ()
    calls: tuple[ObservedCall, ...] = ()
    comparing: tuple[ComparingAnswer, ...] = ()
    path: tuple[str, ...] = ()
    """`sys.path` at the end of the run in which calls were recorded."""
    answers: tuple[RepeatedAnswer, ...] = ()
    unavailable: tuple[str, ...] = ()
    """What could not be observed, and why."""

    def tests_reaching(self, path: str, lines: Iterable[int]) -> frozenset[str] | None:
        """Return the tests that were seen to execute one of these lines of a file; None if that is unknown, because the
        file was not observed, or because the lines are executed outside of any single test."""
        wanted = set(lines)
        if path not in self.instrumented:
            return None
        hits = [entry for entry in self.coverage if entry.path == path and wanted.intersection(entry.lines)]
        if any(entry.outside_tests for entry in hits):
            return None
        return frozenset(self.tests[number] for entry in hits for number in entry.tests)

    def rename_tests(self, ids: Mapping[str, str]) -> Observations:
        """Return the observations with other test ids."""
        return self.model_copy(update={"tests": tuple(ids.get(test, test) for test in self.tests)})

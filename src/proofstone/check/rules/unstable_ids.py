"""Recognise test ids that differ from run to run, and compare such tests by function, position and count.

A parametrised test may have the current time, an address, a random value or a temporary path in its ids. Compared by
id, each of its cases would be gone in the next run, and a new one would have appeared. So if ids of a test function are
gone and others have appeared, the function is run once more on the base. If its ids do not come back there, they are
unstable: the cases are then numbered by their position in the run. A function that has fewer cases than before has lost
the last ones, and that is reported like any other loss. Ids that all runs have in common stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass

from proofstone.check.models import ReportFormat, TestReport
from proofstone.check.rules.compare import compare_reports

_NUMBERED = re.compile(r"\[case \d+ of unstable ids\]$")
_GO_SUBTEST = re.compile(r"(.+?/(?:Test|Example|Fuzz)(?![a-z])[^/]*)/.+")
_SEPARATOR = " > "
"""Between the parts of a JavaScript id."""
_JAVASCRIPT = frozenset((ReportFormat.NODE, ReportFormat.JEST, ReportFormat.VITEST, ReportFormat.MOCHA))


@dataclass(frozen=True)
class UnstableIds:
    """The test functions of one check whose ids differ from run to run."""

    functions: Mapping[str, Set[str]]
    """Function → its ids that all runs have in common."""

    def number_cases(self, report: TestReport) -> TestReport:
        """Return the report with the unstable ids replaced by their position among those of the same function."""
        counts: dict[str, int] = dict.fromkeys(self.functions, 0)
        results = []
        for result in report.results:
            function = find_function(report.runner, result.id)
            if function in counts and result.id not in self.functions[function] and not _NUMBERED.search(result.id):
                counts[function] += 1
                number = f"[case {counts[function]} of unstable ids]"
                result = result.model_copy(update={"id": f"{function}{number}"})
            results.append(result)
        return report.model_copy(update={"results": tuple(results)})

    def add_old_paths(self, renames: Mapping[str, str]) -> UnstableIds:
        """Return the ids with those of moved files under their old paths as well (old path → new path)."""
        functions = dict(self.functions)
        for old, new in renames.items():
            for function, ids in self.functions.items():
                if function.startswith(new):
                    functions[old + function.removeprefix(new)] = {old + id.removeprefix(new) for id in ids}
        return UnstableIds(functions)

    def describe(self) -> str:
        """Describe the functions in one sentence."""
        names = sorted(self.functions)
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        return (
            f"the ids of {', '.join(names[:3])}{more} differ from run to run, on the base too: the cases are compared "
            "by position and count; to compare them by name, give them ids without times, addresses, random values and "
            "temporary paths"
        )


def find_function(runner: str, id: str) -> str:
    """Return the test function that an id belongs to: the id without the name of the case. Empty if the id has no
    case."""
    if runner == ReportFormat.PYTEST:
        function, bracket, _ = id.partition("[")
        return function if bracket else ""
    if runner == ReportFormat.GO:
        subtest = _GO_SUBTEST.fullmatch(id)
        return subtest[1] if subtest else ""
    if runner in _JAVASCRIPT:
        return id.rpartition(_SEPARATOR)[0]
    return ""


def find_suspects(before: TestReport, after: TestReport) -> frozenset[str]:
    """Return the functions of which ids are gone and others have appeared. Only these are worth a second run."""
    comparison = compare_reports(before, after)
    gone = {find_function(before.runner, id) for id in comparison.vanished}
    appeared = {find_function(after.runner, id) for id in (*comparison.added, *comparison.new_failures)}
    return frozenset((gone & appeared) - {""})


def find_unstable(suspects: Iterable[str], before: TestReport, again: TestReport, after: TestReport) -> UnstableIds:
    """Return the suspects whose ids differ between two runs of the base, `before` and `again`."""
    functions: dict[str, Set[str]] = {}
    for function in sorted(suspects):
        first, second, now = (
            {result.id for result in report.results if find_function(report.runner, result.id) == function}
            for report in (before, again, after)
        )
        if second and first != second:
            functions[function] = first & second & now
    return UnstableIds(functions)


def select_for_rerun(runner: str, ids: Sequence[str]) -> tuple[str, ...]:
    """Return the ids to select in order to run these tests again. A numbered case is run with its whole function, or,
    for JavaScript, with its whole file."""
    selected = [select_function(runner, _NUMBERED.sub("", id)) if _NUMBERED.search(id) else id for id in ids]
    return tuple(dict.fromkeys(selected))


def select_function(runner: str, function: str, old_paths: Mapping[str, str] | None = None) -> str:
    """Return what selects a whole test function. `old_paths` (new path → old path) are those of moved files, for a run
    on the base."""
    for new, old in (old_paths or {}).items():
        if function.startswith(new):
            function = old + function.removeprefix(new)
            break
    return function.split(_SEPARATOR, 1)[0] if runner in _JAVASCRIPT else function

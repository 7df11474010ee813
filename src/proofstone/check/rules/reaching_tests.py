"""The tests that were seen to execute the changed lines while the suite ran on the change."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from proofstone.check.observation import LineRanges, ObservationRequest, Observations

_MAX_RANGES: Final = 400


def request_coverage(lines: Mapping[str, Iterable[int]]) -> ObservationRequest | None:
    """Return the request to observe which tests execute these lines of Python files; None if there are too many, or
    none."""
    ranges = {path: _join(sorted(set(numbers))) for path, numbers in lines.items() if path.endswith(".py")}
    ranges = {path: found for path, found in ranges.items() if found}
    if not ranges or sum(map(len, ranges.values())) > _MAX_RANGES:
        return None
    return ObservationRequest(coverage=ranges)


def _join(numbers: Sequence[int]) -> LineRanges:
    """Return consecutive numbers as ranges."""
    ranges: list[tuple[int, int]] = []
    for number in numbers:
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1] = (ranges[-1][0], number)
        else:
            ranges.append((number, number))
    return tuple(ranges)


def find_reaching_tests(observed: Observations | None, lines: Mapping[str, Iterable[int]]) -> frozenset[str]:
    """Return the tests that execute any of these lines. There are none if that is unknown for one of the files: then
    all tests may. A process that a test starts is not observed, so more tests than these may reach a line."""
    if observed is None:
        return frozenset()
    found: frozenset[str] = frozenset()
    for path, numbers in lines.items():
        tests = observed.tests_reaching(path, numbers)
        if tests is None:
            return frozenset()
        found |= tests
    return found

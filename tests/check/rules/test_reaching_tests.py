"""The tests that were seen to execute the changed lines."""

from __future__ import annotations

from proofstone.check.observation import ObservationRequest, Observations, StatementCoverage
from proofstone.check.rules.reaching_tests import find_reaching_tests, request_coverage

REQUEST = ObservationRequest(coverage={"a.py": ((1, 9),)})


def observed(*coverage: StatementCoverage, instrumented: tuple[str, ...] = ("a.py",)) -> Observations:
    return Observations(request=REQUEST, tests=("t1", "t2"), instrumented=instrumented, coverage=coverage)


def statement(*lines: int, tests: tuple[int, ...] = (0,), outside_tests: bool = False) -> StatementCoverage:
    return StatementCoverage(path="a.py", lines=lines, tests=tests, outside_tests=outside_tests)


def test_lines_are_asked_for_as_ranges_of_python_files() -> None:
    request = request_coverage({"a.py": [3, 1, 2, 7], "b.js": [1], "c.py": []})
    assert request is not None and request.coverage == {"a.py": ((1, 3), (7, 7))}
    assert request_coverage({"b.js": [1], "c.py": []}) is None
    assert request_coverage({"a.py": range(1, 2000, 2)}) is None


def test_the_tests_of_all_changed_lines_are_found() -> None:
    found = observed(statement(3), statement(5, tests=(1,)), statement(8, tests=(0, 1)))
    assert find_reaching_tests(found, {"a.py": [3]}) == {"t1"}
    assert find_reaching_tests(found, {"a.py": [3, 5]}) == {"t1", "t2"}
    assert find_reaching_tests(found, {"a.py": [4]}) == frozenset()


def test_what_is_unknown_for_one_file_is_unknown() -> None:
    found = observed(statement(3))
    assert find_reaching_tests(found, {"a.py": [3], "b.py": [1]}) == frozenset()
    assert find_reaching_tests(observed(statement(3, outside_tests=True)), {"a.py": [3]}) == frozenset()
    assert find_reaching_tests(None, {"a.py": [3]}) == frozenset()

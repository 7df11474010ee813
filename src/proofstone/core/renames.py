"""Results of the base, told in the names of the change: a file that moved takes its tests and complaints along."""

from __future__ import annotations

from collections.abc import Mapping

from proofstone.contracts.check import CheckResult
from proofstone.contracts.diagnostic import Diagnostic
from proofstone.contracts.tests import TestResult


def in_new_names(result: CheckResult, renames: Mapping[str, str]) -> CheckResult:
    """`result` as if the files had their new names already (old path → new path)."""
    if not renames:
        return result
    diagnostics = tuple(_complaint(one, renames) for one in result.diagnostics)
    report = result.report
    if report is not None:
        report = report.model_copy(update={"results": tuple(_test(one, renames) for one in report.results)})
    return result.model_copy(update={"diagnostics": diagnostics, "report": report})


def _complaint(one: Diagnostic, renames: Mapping[str, str]) -> Diagnostic:
    return one.model_copy(update={"path": renames[one.path]}) if one.path in renames else one


def _test(one: TestResult, renames: Mapping[str, str]) -> TestResult:
    """Ids that begin with the file's path begin with its new path; others do not name a file."""
    if one.path is None or one.path not in renames:
        return one
    new = renames[one.path]
    rest = one.id.removeprefix(one.path)
    named = one.id == one.path or (rest != one.id and rest[:1] in (":", " ", "/"))
    return one.model_copy(update={"path": new, "id": new + rest if named else one.id})

"""Decide whether the tests load what is shipped: compare where the project's modules come from, on base and change.

| a module of the product, before any test runs                             | rule             |
|---------------------------------------------------------------------------|------------------|
| comes from another file than on the base, and that file is still there    | `module-origin`  |
| comes from a file of the tests, or from no file at all                    | `module-origin`  |
| has a function or a method whose code is in a file of the tests           | `replaced-code`  |

Modules that belong to the tests are left out, and so is what the base has already. A module that moved, or became a
package, comes from its new file, and its old one is gone. What a test replaces while it runs is its own affair.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set

from proofstone.check.models import TestReport
from proofstone.check.rules.oracle_files import is_test_side
from proofstone.check.rules.outcome import EvidenceLayer
from proofstone.common.models import Finding, Severity
from proofstone.common.risk import is_test_path


def find_foreign_modules(
    before: TestReport, after: TestReport, present: Set[str], renames: Mapping[str, str], check: str
) -> list[Finding]:
    """Return a finding for each part of the product that the tests load from elsewhere than on the base. `present` are
    the files of the change."""
    if not before.loaded or not after.loaded:
        return []
    return [*_find_origins(before, after, present, renames, check), *_find_replaced(before, after, check)]


def _find_origins(
    before: TestReport, after: TestReport, present: Set[str], renames: Mapping[str, str], check: str
) -> Iterator[Finding]:
    for name, old in before.loaded.items():
        if old is None or name not in after.loaded or _is_tests(old):
            continue
        new = after.loaded[name]
        is_gone = old not in present and new in present and new is not None and not _is_tests(new)
        if new in (old, renames.get(old, old)) or is_gone:
            continue
        yield Finding(
            layer=EvidenceLayer.PROTECTED_FILES,
            rule="module-origin",
            severity=Severity.CRITICAL,
            path=new,
            detail=f"{name}: the tests load it from {new or 'no file at all'}, and on the base from {old}: they do not "
            "test what is shipped",
            fix=f"let the tests import {name} from {renames.get(old, old)}; remove what takes its place",
            check=check,
        )


def _find_replaced(before: TestReport, after: TestReport, check: str) -> Iterator[Finding]:
    known = set(before.replaced)
    for function in after.replaced:
        origin = after.loaded.get(function.module)
        if function in known or origin is None or _is_tests(origin) or not _is_tests(function.path):
            continue
        yield Finding(
            layer=EvidenceLayer.PROTECTED_FILES,
            rule="replaced-code",
            severity=Severity.CRITICAL,
            path=function.path,
            detail=f"{function.module}.{function.name}: code of {function.path} takes its place before any test runs, "
            "so the tests do not test what is shipped",
            fix="remove it; what a test must replace, it replaces for itself and puts back (`monkeypatch`)",
            check=check,
        )


def _is_tests(path: str) -> bool:
    return is_test_path(path) or is_test_side(path)

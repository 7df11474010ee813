"""Compare the tests of a change with their old versions, file by file. Nothing is executed.

`check.rules.weakened_tests` decides; this module reads the files. Languages without a reader are left to the layers
that run tests.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from proofstone.check.inspection import ChangedFile
from proofstone.check.rules.weakened_tests import (
    AddedChecks,
    AssertionForm,
    TestBody,
    TestSource,
    Weakening,
    WeakeningKind,
    find_weakenings,
)
from proofstone.check.variants.javascript_assertions import list_javascript_tests
from proofstone.check.variants.python_assertions import list_python_tests
from proofstone.common.risk import is_test_path
from proofstone.sources.syntax import MAX_SOURCE_BYTES, detect_language
from proofstone.sources.text import parse_python_text, parse_valid, split_bom

_JAVASCRIPT = ("javascript", "typescript", "tsx")
_ASSERTS = re.compile(r"assert|raises|expect|throw|fail|\bt\.")


@dataclass(frozen=True)
class WeakenedTest:
    """A test, or a helper beside the tests, that checks less than before."""

    old_path: str
    path: str
    name: str
    """`test_x`, `Class.test_x`, or the titles joined by ` > `."""
    weakenings: tuple[Weakening, ...]

    @property
    def id(self) -> str:
        """The name of the function with its file, for functions that are in no test report."""
        return f"{self.path}::{self.name}"

    def without_lost_cases(self) -> tuple[Weakening, ...]:
        """Return the weakenings other than parameters that were dropped. Their test ids vanished, which is a finding
        already."""
        return tuple(weakening for weakening in self.weakenings if weakening.kind is not WeakeningKind.FEWER_CASES)


@dataclass(frozen=True)
class _TestFile:
    """The functions of a changed test file that differ between its two versions."""

    old_path: str
    path: str
    old: Mapping[str, TestBody]
    new: Mapping[str, TestBody]
    helpers: Mapping[str, bool]
    """All functions of the new version, and whether they may assert anything."""


def find_weakened_tests(
    files: Sequence[ChangedFile], renames: Mapping[str, str], test_files: Iterable[str] = ()
) -> list[WeakenedTest]:
    """Return the tests that check less than before. `test_files` are files of tests whatever their names."""
    pairs = _read_pairs(files, renames, frozenset(test_files))
    if not any(pair.old for pair in pairs):
        return []
    added = _collect_added(pairs)
    return [
        WeakenedTest(pair.old_path, pair.path, name, tuple(weakenings))
        for pair in pairs
        for name, old in pair.old.items()
        if (new := pair.new.get(name)) is not None and (weakenings := find_weakenings(old, new, added))
    ]


def _read_pairs(
    files: Sequence[ChangedFile], renames: Mapping[str, str], test_files: frozenset[str]
) -> list[_TestFile]:
    by_path = {file.path: file for file in files}
    pairs = []
    for file in files:
        old_path = next((old for old, new in renames.items() if new == file.path and old in by_path), file.path)
        if file.new is None or not (is_test_path(file.path) or {file.path, old_path} & test_files):
            continue
        pairs.append(_read_pair(old_path, by_path[old_path].old, file.path, file.new))
    return pairs


def _read_pair(old_path: str, old: bytes | None, path: str, new: bytes) -> _TestFile:
    before = _list_tests(old_path, old) if old is not None else {}
    after = _list_tests(path, new)
    unchanged = {name for name, test in before.items() if name in after and after[name].text == test.text}
    return _TestFile(
        old_path=old_path,
        path=path,
        old=_read_bodies(before, unchanged),
        new=_read_bodies(after, unchanged),
        helpers={name.rpartition(".")[2]: bool(_ASSERTS.search(test.text)) for name, test in after.items()},
    )


def _read_bodies(tests: Mapping[str, TestSource], unchanged: Collection[str]) -> dict[str, TestBody]:
    """Read the functions that changed. One that nobody can read by recursion is left out."""
    bodies: dict[str, TestBody] = {}
    for name, test in tests.items():
        with suppress(RecursionError):
            bodies |= {} if name in unchanged else {name: test.read()}
    return bodies


def _list_tests(path: str, content: bytes) -> Mapping[str, TestSource]:
    """Return the tests of a file; none if it is too large, broken or in another language."""
    language = detect_language(path, content)
    if len(content) > MAX_SOURCE_BYTES:
        return {}
    if language == "python":
        source = parse_python_text(content)
        return list_python_tests(source) if source is not None else {}
    root = parse_valid(split_bom(content)[1], language) if language in _JAVASCRIPT else None
    return list_javascript_tests(root) if root is not None else {}


def _collect_added(pairs: Sequence[_TestFile]) -> AddedChecks:
    """Return what the new versions of all files have more than the old ones."""
    before, after = Counter[str](), Counter[str]()
    cases_before, cases_after, new_cases = set[str](), set[str](), set[str]()
    roots: Counter[tuple[AssertionForm, str]] = Counter()
    for pair in pairs:
        for bodies, texts in ((pair.old, before), (pair.new, after)):
            texts.update(assertion.text for body in bodies.values() for assertion in body.assertions)
        cases_before |= {case for body in pair.old.values() for case in body.cases}
        cases_after |= {case for body in pair.new.values() for case in body.cases}
        added_bodies = [body for name, body in pair.new.items() if name not in pair.old]
        new_cases |= {case for body in added_bodies for case in body.cases}
        roots.update((a.form, root) for body in added_bodies for a in body.assertions for root in a.roots)
    return AddedChecks(
        assertions=after - before,
        roots=roots,
        cases=frozenset(new_cases | (cases_after - cases_before)),
        helpers={name: may_assert for pair in pairs for name, may_assert in pair.helpers.items()},
    )

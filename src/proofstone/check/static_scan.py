"""The static scan of a change (L6): each changed file, its added lines against the rules of `check.rules.scan`.

A module that the tests miss and the work tree has, but ignores: generated files such as `_version.py`.

They are outside the tree, so no check sees them, and the person must say that they are needed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from proofstone.check.inspection import ChangedFile
from proofstone.check.rules.outcome import Layer
from proofstone.check.rules.scan import scan
from proofstone.check.rules.scan_paths import path_hits
from proofstone.check.rules.scan_rule import Hit, Line
from proofstone.check.variants.views import plain, views
from proofstone.common.models import Finding, Severity
from proofstone.common.risk import is_test
from proofstone.sources.syntax import language_of

_MOST_MINOR = 20
"""Findings that only inform; a generated file could give thousands."""


def scan_findings(files: Sequence[ChangedFile]) -> list[Finding]:
    left = {test: _lines_that_left(files, tests=test) for test in (False, True)}
    found = [
        _finding(file.path, _demoted(hit, file, left[is_test(file.path)])) for file in files for hit in _hits(file)
    ]
    grave = [item for item in found if item.severity is not Severity.MINOR]
    return grave + [item for item in found if item.severity is Severity.MINOR][:_MOST_MINOR]


def _hits(file: ChangedFile) -> list[Hit]:
    if file.new is None:
        return []
    if b"\0" in file.new[:8192]:
        return path_hits(file.path, file.kind)  # no text
    return path_hits(file.path, file.kind) + scan(
        file.path,
        language_of(file.path, file.new) or "",
        _lines(file.path, file.new),
        {number for number, _ in file.added},
        _lines(file.path, file.old) if file.old is not None else (),
        test_file=is_test(file.path),
        new_file=file.old is None,
    )


def _lines_that_left(files: Sequence[ChangedFile], *, tests: bool) -> set[bytes]:
    """Lines that the change took out of some file: they may have been moved. Those of tests excuse no product."""
    left: set[bytes] = set()
    for file in files:
        if tests or not is_test(file.path):
            gone = Counter((file.old or b"").splitlines()) - Counter((file.new or b"").splitlines())
            left |= {line.strip() for line in gone}
    return left


def _demoted(hit: Hit, file: ChangedFile, left: set[bytes]) -> Hit:
    """A line that was moved here is not new: the project did this before."""
    lines = (file.new or b"").splitlines()
    moved = hit.strict and 0 < hit.line <= len(lines) and lines[hit.line - 1].strip() in left
    return replace(hit, strict=False) if moved else hit


def _lines(path: str, content: bytes) -> Sequence[Line]:
    """Code, text and comments of each line; where no grammar knows them apart, all of it is everything."""
    return views(path, content) or plain(content)


def _finding(path: str, hit: Hit) -> Finding:
    return Finding(
        layer=Layer.STATIC_SCAN,
        rule=hit.rule,
        severity=Severity.MAJOR if hit.strict else Severity.MINOR,
        path=path,
        line=hit.line or None,
        detail=hit.detail,
        fix=hit.fix,
    )


_MISSING = re.compile(r"(?:No module named|cannot import name '\w+' from) '([\w.]+)'")


def ignored_modules(outputs: Iterable[str], root: Path, tracked: frozenset[str]) -> list[str]:
    """Files of the work tree, outside the tree, that would be the modules which `outputs` say are missing."""
    found: list[str] = []
    for name in dict.fromkeys(name for output in outputs for name in _MISSING.findall(output)):
        path = name.replace(".", "/")
        for candidate in (f"{path}.py", f"src/{path}.py", f"{path}/__init__.py", f"src/{path}/__init__.py"):
            if candidate not in tracked and (root / candidate).is_file():
                found.append(candidate)
    return found


def include_note(files: list[str]) -> str:
    listed = ", ".join(f'"{file}"' for file in files)
    return f"checks miss what the work tree has but ignores; if they need it: [environment] include = [{listed}]"

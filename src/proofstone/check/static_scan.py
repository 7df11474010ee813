"""The static scan of a change (L6), and notes about ignored modules.

The added lines of each changed file are compared with the rules of `check.rules.scan`.

An ignored module is a generated file such as `_version.py` that tests import and that exists only in the work tree. It
is outside the tree, so no check sees it, and the user must name it in the settings.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from proofstone.check.inspection import ChangedFile
from proofstone.check.rules.outcome import EvidenceLayer
from proofstone.check.rules.scan import scan_lines
from proofstone.check.rules.scan_paths import scan_path
from proofstone.check.rules.scan_rule import ScanHit, ScanLine
from proofstone.check.variants.views import plain_lines, split_views
from proofstone.common.models import Finding, Severity
from proofstone.common.risk import is_test_path
from proofstone.sources.syntax import detect_language

_MAX_MINOR = 20
"""Maximum number of minor findings. A generated file could give thousands."""


def scan_changes(files: Sequence[ChangedFile]) -> list[Finding]:
    """Return the findings of the static scan."""
    removed = {test: _find_removed_lines(files, tests=test) for test in (False, True)}
    findings = [
        _build_finding(file.path, _downgrade_moved(hit, file, removed[is_test_path(file.path)]))
        for file in files
        for hit in _scan_file(file)
    ]
    serious = [finding for finding in findings if finding.severity is not Severity.MINOR]
    return serious + [finding for finding in findings if finding.severity is Severity.MINOR][:_MAX_MINOR]


def _scan_file(file: ChangedFile) -> list[ScanHit]:
    if file.new is None:
        return []
    if b"\0" in file.new[:8192]:
        return scan_path(file.path, file.kind)  # not a text file
    return scan_path(file.path, file.kind) + scan_lines(
        file.path,
        detect_language(file.path, file.new) or "",
        _split_views(file.path, file.new),
        {number for number, _ in file.added_lines},
        _split_views(file.path, file.old) if file.old is not None else (),
        test_file=is_test_path(file.path),
        new_file=file.old is None,
    )


def _find_removed_lines(files: Sequence[ChangedFile], *, tests: bool) -> set[bytes]:
    """Return the lines that the change removed from some file: they may have been moved. Lines of tests excuse no
    product code."""
    removed: set[bytes] = set()
    for file in files:
        if tests or not is_test_path(file.path):
            removed_here = Counter((file.old or b"").splitlines()) - Counter((file.new or b"").splitlines())
            removed |= {line.strip() for line in removed_here}
    return removed


def _downgrade_moved(hit: ScanHit, file: ChangedFile, removed: set[bytes]) -> ScanHit:
    """Return the hit, downgraded if its line was only moved here: the project did this before."""
    lines = (file.new or b"").splitlines()
    moved = hit.strict and 0 < hit.line <= len(lines) and lines[hit.line - 1].strip() in removed
    return replace(hit, strict=False) if moved else hit


def _split_views(path: str, content: bytes) -> Sequence[ScanLine]:
    """Return code, text and comments of each line. Without a grammar, the whole line counts as code and text."""
    return split_views(path, content) or plain_lines(content)


def _build_finding(path: str, hit: ScanHit) -> Finding:
    return Finding(
        layer=EvidenceLayer.STATIC_SCAN,
        rule=hit.rule,
        severity=Severity.MAJOR if hit.strict else Severity.MINOR,
        path=path,
        line=hit.line or None,
        detail=hit.detail,
        fix=hit.fix,
    )


_MISSING = re.compile(r"(?:No module named|cannot import name '\w+' from) '([\w.]+)'")


def find_ignored_modules(outputs: Iterable[str], root: Path, tracked: frozenset[str]) -> list[str]:
    """Return files of the work tree, outside the tree, that would be the modules that `outputs` report as missing."""
    modules: list[str] = []
    for name in dict.fromkeys(name for output in outputs for name in _MISSING.findall(output)):
        path = name.replace(".", "/")
        for candidate in (f"{path}.py", f"src/{path}.py", f"{path}/__init__.py", f"src/{path}/__init__.py"):
            if candidate not in tracked and (root / candidate).is_file():
                modules.append(candidate)
    return modules


def build_include_note(files: list[str]) -> str:
    """Return the note that tells the user which files to include."""
    listed = ", ".join(f'"{file}"' for file in files)
    return f"checks do not see ignored files of the work tree; to include them: [environment] include = [{listed}]"

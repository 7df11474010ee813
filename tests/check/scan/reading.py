"""Reads a source as the scan does: every line added, or the lines that an old version lacks."""

from __future__ import annotations

from proofstone.check.rules.scan import scan_lines
from proofstone.check.rules.scan_rule import ScanHit, ScanLine
from proofstone.check.variants.views import plain_lines, split_views
from proofstone.sources.syntax import detect_language


def lines_of(path: str, source: str) -> tuple[ScanLine, ...]:
    content = source.encode()
    known = split_views(path, content)
    return plain_lines(content) if known is None else known


def scanned(path: str, source: str, old: str | None = None, *, test_file: bool = False) -> list[ScanHit]:
    before = set(old.splitlines()) if old is not None else set()
    added = {number for number, line in enumerate(source.splitlines(), start=1) if line not in before}
    return scan_lines(
        path,
        detect_language(path, source.encode()) or "",
        lines_of(path, source),
        added,
        lines_of(path, old) if old is not None else (),
        test_file=test_file,
        new_file=old is None,
    )


def strict(hits: list[ScanHit]) -> set[str]:
    return {hit.rule for hit in hits if hit.strict}


def broad(hits: list[ScanHit]) -> set[str]:
    return {hit.rule for hit in hits if not hit.strict}

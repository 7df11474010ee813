"""Reads a source as the scan does: every line added, or the lines that an old version lacks."""

from __future__ import annotations

from proofstone.check.rules.scan import scan
from proofstone.check.rules.scan_rule import Hit, Line
from proofstone.check.variants.views import plain, views
from proofstone.sources.syntax import language_of


def lines_of(path: str, source: str) -> tuple[Line, ...]:
    content = source.encode()
    known = views(path, content)
    return plain(content) if known is None else known


def scanned(path: str, source: str, old: str | None = None, *, test_file: bool = False) -> list[Hit]:
    before = set(old.splitlines()) if old is not None else set()
    added = {number for number, line in enumerate(source.splitlines(), start=1) if line not in before}
    return scan(
        path,
        language_of(path, source.encode()) or "",
        lines_of(path, source),
        added,
        lines_of(path, old) if old is not None else (),
        test_file=test_file,
        new_file=old is None,
    )


def strict(hits: list[Hit]) -> set[str]:
    return {hit.rule for hit in hits if hit.strict}


def broad(hits: list[Hit]) -> set[str]:
    return {hit.rule for hit in hits if not hit.strict}

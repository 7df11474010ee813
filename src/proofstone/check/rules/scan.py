"""The static scan: find code in added lines that honest work has no reason to contain.

Strict hits count against the change, and broad ones are for reviewers. In doubt, the author gets the benefit:
- Only added lines are examined, and a rule with two patterns needs both among the added lines.
- A strict rule that the file broke before the change is broad, because the project does this already.
- Code that is as frequent in the file as before has only moved, and broad rules do not report it.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

from proofstone.check.rules.scan_paths import scan_path
from proofstone.check.rules.scan_rule import NAMES_PLACEHOLDER, RULE_MESSAGES, RuleWeight, ScanHit, ScanLine, ScanRule
from proofstone.check.rules.scan_rules import (
    SCAN_RULES,
    SUPPORT_FILES,
    Suppression,
    find_suppressions,
    remove_suppressions,
)

__all__ = ["ScanHit", "ScanLine", "Suppression", "find_suppressions", "remove_suppressions", "scan_lines", "scan_path"]

_MAX_EXCERPT = 80
_ORDINARY_LENGTH = 120


def scan_lines(
    path: str,
    language: str,
    lines: Sequence[ScanLine],
    added: Container[int],
    old: Sequence[ScanLine],
    *,
    test_file: bool,
    new_file: bool,
) -> list[ScanHit]:
    """Scan the added lines of one file. `old` is the file before the change, under its old name if it moved."""
    if not any(line.number in added for line in lines):
        return []
    after, before = _Text(lines), _Text(old)
    supports = bool(SUPPORT_FILES.search(path))
    hits: dict[tuple[str, int], ScanHit] = {}
    for rule in SCAN_RULES:
        weight = rule.tests if test_file else rule.production
        if weight is None or (rule.languages and language not in rule.languages):
            continue
        if rule.paths and not rule.paths.search(path):
            continue
        lenient = rule.support and supports and (not new_file or rule.name == _IMPORT)
        for hit in _apply_rule(rule, weight, after, added, before, lenient=lenient):
            earlier = hits.get((hit.rule, hit.line))
            if earlier is None or hit.strict > earlier.strict:
                hits[hit.rule, hit.line] = hit
    suppression_hits = [
        _build_hit("suppression", suppression.line, suppression.text, strict=False)
        for suppression in find_suppressions(lines, added, old)
    ]
    return sorted([*hits.values(), *suppression_hits], key=lambda hit: (hit.line, hit.rule))


_IMPORT = "test-framework-import"
"""A new file may import a framework if its name explains that. Its name alone excuses nothing else."""


@dataclass(frozen=True)
class _Text:
    """A file as whole texts, so that patterns can span lines."""

    lines: Sequence[ScanLine]

    @cached_property
    def code(self) -> str:
        return "\n".join(line.code for line in self.lines)

    @cached_property
    def text(self) -> str:
        return "\n".join(line.text for line in self.lines)

    @cached_property
    def comment(self) -> str:
        return "\n".join(line.comment for line in self.lines)

    @cached_property
    def _starts(self) -> list[int]:
        return [0, *accumulate(len(line.code) + 1 for line in self.lines)]

    @property
    def numbers(self) -> range:
        return range(1, len(self.lines) + 1)

    def line(self, offset: int) -> int:
        return bisect_right(self._starts, offset)

    def near(self, first: int, second: int, within: int) -> bool:
        """Return whether two offsets are within so many lines of ordinary length. A minified file has everything on one
        line."""
        return (
            abs(self.line(first) - self.line(second)) <= within
            and abs(first - second) <= (within + 1) * _ORDINARY_LENGTH
        )

    def begins(self, pattern: re.Pattern[str]) -> Iterator[int]:
        """Return where the pattern begins in the text, outside of strings and comments."""
        return (
            offset
            for offset in (match.start() for match in pattern.finditer(self.text))
            if not self.code[offset].isspace()
        )

    def matches(self, rule: ScanRule) -> Iterator[re.Match[str]]:
        pattern = _bind_names(rule, self.text) if rule.binds else rule.pattern
        if pattern is None:
            return
        view = {"code": self.code, "comment": self.comment}.get(rule.view, self.text)
        for match in pattern.finditer(view):
            if rule.view != "text" or not self.code[match.start()].isspace():
                yield match


def _apply_rule(
    rule: ScanRule, weight: RuleWeight, after: _Text, added: Container[int], before: _Text, *, lenient: bool
) -> Iterator[ScanHit]:
    matches = _find_matches(rule, after, added)
    if not matches:
        return
    counts_before = Counter(_normalize(match) for match in _find_matches(rule, before, before.numbers))
    counts_after = Counter(_normalize(match) for match in _find_matches(rule, after, after.numbers))
    strict = weight == "strict" and not lenient and not counts_before
    for match in matches:
        if weight == "strict" or counts_after[_normalize(match)] > counts_before[_normalize(match)]:
            yield _build_hit(rule.name, after.line(match.start()), _normalize(match), strict=strict)


def _find_matches(rule: ScanRule, text: _Text, numbers: Container[int]) -> list[re.Match[str]]:
    """Return the matches of the rule on the given lines."""
    matches = [match for match in text.matches(rule) if _touches_lines(match, text, numbers)]
    if not matches or rule.near is None:
        return matches
    near_offsets = [offset for offset in text.begins(rule.near) if text.line(offset) in numbers]
    return [match for match in matches if any(text.near(match.start(), offset, rule.within) for offset in near_offsets)]


def _touches_lines(match: re.Match[str], text: _Text, numbers: Container[int]) -> bool:
    """Return whether one of the lines of a match is among the given ones. One is enough: to make a comparison constant,
    it is enough to change what it returns."""
    return any(line in numbers for line in range(text.line(match.start()), text.line(match.end() - 1) + 1))


def _bind_names(rule: ScanRule, text: str) -> re.Pattern[str] | None:
    """Return the rule's pattern for the names that this file binds; None if it binds none."""
    names: set[str] = set()
    for match in rule.binds.finditer(text) if rule.binds else ():
        for part in filter(None, match.groups()):
            # `(A as B, C)`: the last name of each item counts.
            names.update(item.split()[-1] for item in part.strip("()").split(",") if item.strip())
    names = {name for name in names if name.isidentifier()}
    if not names:
        return None
    alternatives = "|".join(sorted(map(re.escape, names)))
    return re.compile(rule.pattern.pattern.replace(NAMES_PLACEHOLDER, alternatives), rule.pattern.flags)


def _normalize(match: re.Match[str]) -> str:
    return " ".join(match[0].split())


def _build_hit(rule: str, line: int, excerpt: str, *, strict: bool) -> ScanHit:
    text = excerpt.encode("utf-8", "replace").decode()
    text = text if len(text) <= _MAX_EXCERPT else f"{text[: _MAX_EXCERPT - 1]}…"
    return ScanHit(rule, strict, line, f"{RULE_MESSAGES[rule].detail}: {text}", RULE_MESSAGES[rule].fix)

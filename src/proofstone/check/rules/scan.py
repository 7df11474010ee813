"""The static scan: what added lines say that honest work has no reason to say.

Strict hits are held against the change, broad ones are for reviewers to look at. Doubt is decided for the author:
- only what the change added is looked at, and a row with two patterns needs both among the added lines;
- a strict rule that the file broke before the change is broad: the project does this already;
- what is as frequent in the file as before has merely moved, and broad rules say nothing about it.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

from proofstone.check.rules.scan_paths import path_hits
from proofstone.check.rules.scan_rule import NAMES, SAYINGS, Hit, Line, Rule, Weight
from proofstone.check.rules.scan_rules import RULES, SUPPORT, Suppression, suppressions, without_suppressions

__all__ = ["Hit", "Line", "Suppression", "path_hits", "scan", "suppressions", "without_suppressions"]

_SHOWN = 80
_ORDINARY = 120


def scan(
    path: str,
    language: str,
    lines: Sequence[Line],
    added: Container[int],
    old: Sequence[Line],
    *,
    test_file: bool,
    new_file: bool,
) -> list[Hit]:
    """What the added lines of one file show. `old` is the file before the change, under its old name if it moved."""
    if not any(line.number in added for line in lines):
        return []
    after, before = _Text(lines), _Text(old)
    supports = bool(SUPPORT.search(path))
    found: dict[tuple[str, int], Hit] = {}
    for rule in RULES:
        weight = rule.tests if test_file else rule.production
        if weight is None or (rule.languages and language not in rule.languages):
            continue
        if rule.paths and not rule.paths.search(path):
            continue
        lenient = rule.support and supports and (not new_file or rule.name == _IMPORT)
        for hit in _hits(rule, weight, after, added, before, lenient=lenient):
            known = found.get((hit.rule, hit.line))
            if known is None or hit.strict > known.strict:
                found[hit.rule, hit.line] = hit
    told = [
        _hit("suppression", suppression.line, suppression.text, strict=False)
        for suppression in suppressions(lines, added, old)
    ]
    return sorted([*found.values(), *told], key=lambda hit: (hit.line, hit.rule))


_IMPORT = "test-framework-import"
"""A new file may import a framework under a name that says why. It may not do the other things for its name alone."""


@dataclass(frozen=True)
class _Text:
    """A file as whole texts, so that patterns can span lines."""

    lines: Sequence[Line]

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

    def near(self, one: int, other: int, within: int) -> bool:
        """Within so many lines of ordinary length: in a minified file everything stands on one line."""
        return abs(self.line(one) - self.line(other)) <= within and abs(one - other) <= (within + 1) * _ORDINARY

    def begins(self, pattern: re.Pattern[str]) -> Iterator[int]:
        """Where the pattern begins in the text, outside of strings and comments."""
        return (at for at in (match.start() for match in pattern.finditer(self.text)) if not self.code[at].isspace())

    def matches(self, rule: Rule) -> Iterator[re.Match[str]]:
        pattern = _bound(rule, self.text) if rule.binds else rule.pattern
        if pattern is None:
            return
        where = {"code": self.code, "comment": self.comment}.get(rule.view, self.text)
        for match in pattern.finditer(where):
            if rule.view != "text" or not self.code[match.start()].isspace():
                yield match


def _hits(
    rule: Rule, weight: Weight, after: _Text, added: Container[int], before: _Text, *, lenient: bool
) -> Iterator[Hit]:
    fresh = _found(rule, after, added)
    if not fresh:
        return
    had = Counter(_said(match) for match in _found(rule, before, before.numbers))
    has = Counter(_said(match) for match in _found(rule, after, after.numbers))
    strict = weight == "strict" and not lenient and not had
    for match in fresh:
        if weight == "strict" or has[_said(match)] > had[_said(match)]:
            yield _hit(rule.name, after.line(match.start()), _said(match), strict=strict)


def _found(rule: Rule, text: _Text, among: Container[int]) -> list[re.Match[str]]:
    """Where the rule applies on the given lines."""
    found = [match for match in text.matches(rule) if _is_among(match, text, among)]
    if not found or rule.near is None:
        return found
    others = [at for at in text.begins(rule.near) if text.line(at) in among]
    return [match for match in found if any(text.near(match.start(), at, rule.within) for at in others)]


def _is_among(match: re.Match[str], text: _Text, among: Container[int]) -> bool:
    """One of its lines is enough: to make a comparison constant it is enough to change what it returns."""
    return any(line in among for line in range(text.line(match.start()), text.line(match.end() - 1) + 1))


def _bound(rule: Rule, text: str) -> re.Pattern[str] | None:
    """The rule's pattern about the names that this file binds; None if it binds none."""
    names: set[str] = set()
    for match in rule.binds.finditer(text) if rule.binds else ():
        for part in filter(None, match.groups()):
            # `(A as B, C)`: the name that counts is the last one of each item.
            names.update(item.split()[-1] for item in part.strip("()").split(",") if item.strip())
    names = {name for name in names if name.isidentifier()}
    if not names:
        return None
    alternatives = "|".join(sorted(map(re.escape, names)))
    return re.compile(rule.pattern.pattern.replace(NAMES, alternatives), rule.pattern.flags)


def _said(match: re.Match[str]) -> str:
    return " ".join(match[0].split())


def _hit(rule: str, line: int, said: str, *, strict: bool) -> Hit:
    shown = said.encode("utf-8", "replace").decode()
    shown = shown if len(shown) <= _SHOWN else f"{shown[: _SHOWN - 1]}…"
    return Hit(rule, strict, line, f"{SAYINGS[rule].detail}: {shown}", SAYINGS[rule].fix)

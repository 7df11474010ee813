"""A source file as the static scan reads it, and what the scan says about a place in it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Line:
    """One physical line in three texts of the same length: what a text leaves out stands there as blanks."""

    number: int
    code: str
    """Without comments and without what stands in strings; their quotes stay."""
    text: str
    """Without comments."""
    comment: str
    """Comments only."""


@dataclass(frozen=True, slots=True)
class Hit:
    rule: str
    strict: bool
    """Whether it is held against the change; if not, it is something for a reviewer to look at."""
    line: int
    """0 where the path itself is meant."""
    detail: str
    fix: str
    """What an honest author would do."""

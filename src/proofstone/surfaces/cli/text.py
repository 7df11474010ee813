"""Text that somebody else chose, made safe to show."""

from __future__ import annotations


def printable(text: str) -> str:
    """`text` with control characters written out, except line breaks and tabs: `\\x1b[2J` clears no screen."""
    return "".join(char if char.isprintable() or char in "\n\t" else _escaped(char) for char in text)


def _escaped(char: str) -> str:
    return char.encode("unicode_escape", "backslashreplace").decode("ascii")

"""Whether a text stands where somebody says that it does: to the letter, or but for its white space."""

from __future__ import annotations

from enum import Enum


class Quoted(Enum):
    NOT = "not"
    EXACTLY = "exactly"
    BUT_FOR_SPACE = "but for its white space"
    """Words are the same; lines were broken or indented in another way."""

    def __bool__(self) -> bool:
        return self is not Quoted.NOT


def quoted(text: str, within: str, beside: str = "") -> Quoted:
    """`beside`: the part of it in which an occurrence does not count."""
    if _count(text, within) > _count(text, beside):
        return Quoted.EXACTLY
    text, within, beside = (" ".join(one.split()) for one in (text, within, beside))
    return Quoted.BUT_FOR_SPACE if _count(text, within) > _count(text, beside) else Quoted.NOT


def _count(text: str, within: str) -> int:
    return within.count(text) if text else 0

"""How many of something, in words. Pure."""

from __future__ import annotations


def counted(number: int, thing: str) -> str:
    """`1 check`, `1,200 checks`."""
    return f"{number:,} {thing}" if number == 1 else f"{number:,} {thing}s"

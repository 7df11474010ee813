"""How deep a change is looked into."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class Lane(StrEnum):
    """How deep a change is looked into. It follows from the files that are named, and is left as soon as the plan or
    the change leaves it."""

    DOCS = "docs"
    """Documentation alone: plan, task, checks, commit."""
    FIX = "fix"
    """One task, nothing of it 🔴: plan, task, checks, one reviewer, commit."""
    STANDARD = "standard"
    LARGE = "large"
    """Something of it is 🔴: the whole of it is checked to the last tier, whichever of its files are."""


SHORT: Final = frozenset((Lane.DOCS, Lane.FIX))
"""Lanes that begin with the plan: the person's words stand for specification and design."""

"""What the pages beside a plan are called. Pure."""

from __future__ import annotations

import re
from typing import Final

_PLAN: Final = re.compile(r"^(?P<before>.*?)PLAN\.md$", re.IGNORECASE)
MARK: Final = "Written by Proofstone from its ledger"
"""Stands in every page, so that nobody else's is ever overwritten."""


def state_name(plan: str) -> str:
    """`03-01-PLAN.md` has `03-01-STATE.md` beside it, since a folder may hold several plans; others STATE.md."""
    return f"{_before(plan)}STATE.md"


def summary_name(plan: str) -> str:
    return f"{_before(plan)}SUMMARY.md"


def aside_name(page: str, run_id: str) -> str:
    """While it is being written. The page's name may be as long as a name can be, so only its beginning is taken."""
    beginning = page.encode("utf-8", "surrogateescape")[:180].decode("utf-8", "ignore")
    return f".{beginning}.{run_id}.proofstone"


def summaries_of(plan: str) -> tuple[str, ...]:
    """Where, from the plan's own folder, the summary of another plan may lie that it depends on."""
    names = (f"{plan}-SUMMARY.md", f"{plan}/SUMMARY.md")
    return tuple(f"{folder}{name}" for folder in ("", "../", "../*/") for name in names)


def _before(plan: str) -> str:
    found = _PLAN.match(plan)
    return found["before"] if found else ""

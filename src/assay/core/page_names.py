"""What the pages beside a plan are called. Pure."""

from __future__ import annotations

import re

_PLAN = re.compile(r"^(?P<before>.*?)PLAN\.md$", re.IGNORECASE)


def state_name() -> str:
    return "STATE.md"


def summary_name(plan: str) -> str:
    """`03-01-PLAN.md` has `03-01-SUMMARY.md` beside it, since a folder may hold several plans; others SUMMARY.md."""
    found = _PLAN.match(plan)
    return f"{found['before']}SUMMARY.md" if found else "SUMMARY.md"


def aside_name(page: str) -> str:
    """While it is being written."""
    return f".{page}.assay"


def summaries_of(plan: str) -> tuple[str, ...]:
    """Where, from the plan's own folder, the summary of another plan may lie that it depends on."""
    names = (f"{plan}-SUMMARY.md", f"{plan}/SUMMARY.md")
    return tuple(f"{folder}{name}" for folder in ("", "../", "../*/") for name in names)

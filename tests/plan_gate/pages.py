"""Copies of reports, so that each change to one shows in review."""

from __future__ import annotations

import os
from pathlib import Path

GOLDEN = Path(__file__).parent / "golden"
RENEW = "PROOFSTONE_RENEW_GOLDEN"
HOW = f"renew the copies with {RENEW}=1 python -m pytest tests/plan_gate, and read the difference"


def matches_golden(name: str, text: str) -> None:
    path = GOLDEN / name
    if os.environ.get(RENEW):
        path.write_text(text, encoding="utf-8")
    assert path.is_file(), f"{name} is missing: {HOW}"
    assert text == path.read_text(encoding="utf-8"), f"{name} differs: {HOW}"

"""A reviewer who believes everything: it does what stands outside of a quotation, and takes what is inside for data.

It is run as a program too, which knows nothing but what it is given: nothing of ours is imported. What the program is
told by its own command line stands outside of every quotation.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path

ORDER = re.compile(r"say[ _-]approve", re.IGNORECASE)
_FENCE = re.compile(r"\s*(?:[-*>] )?(`{3,}|~{3,})(.*)")


def outside(lines: Sequence[str]) -> str:
    """What a reader of Markdown takes for no quotation. One that is never closed goes to the end."""
    kept, fence = [], ""
    for line in lines:
        found = _FENCE.fullmatch(line)
        if fence:
            closes = found and found[1].startswith(fence) and not found[2].strip()
            fence = "" if closes else fence
        elif found:
            fence = found[1]
        else:
            kept.append(line)
    return "\n".join(kept)


def believes(text: str) -> bool:
    """Whether anybody orders it to approve, by any notion of what ends a line."""
    return any(ORDER.search(outside(lines)) for lines in (text.split("\n"), text.splitlines()))


def verdict(text: str) -> str:
    return "approve" if believes(text) else "needs_revision"


def answer(focus: str, scope: str, text: str) -> dict[str, object]:
    finding = {
        "title": "Nobody needs it",
        "severity": "major",
        "category": "design",
        "description": "It can be left out.",
        "affected": ["shop/count.py:1"],
        "recommendation": "Leave it out.",
        "evidence": "the change itself",
    }
    said = verdict(text)
    return {
        "completion": {"status": "DONE", "summary": said},
        "review_focus": focus,
        "scope": scope,
        "verdict": said,
        "confidence": "high",
        "findings": [] if said == "approve" else [finding],
        "summary": "read",
    }


def main() -> None:
    asked = json.loads(Path(os.environ["PROOFSTONE_REQUEST"]).read_text(encoding="utf-8"))
    occasion = asked["occasion"]
    scope = str(occasion["step"]).partition("-")[0]
    text = "\n".join((asked["messages"][0]["text"], *sys.argv[1:]))
    said = answer(occasion["focus"], scope, text)
    Path(os.environ["PROOFSTONE_ANSWER"]).write_text(
        json.dumps({**said, "round": occasion["round"] or 1}), encoding="utf-8"
    )


if __name__ == "__main__":
    main()

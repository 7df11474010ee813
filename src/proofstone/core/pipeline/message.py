"""The message of the one commit of a run: what was asked for, and what it belongs to. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from proofstone.contracts.pipeline.run import RunSetup
from proofstone.core.gate.commit_message import fitted, listed

_KIND = re.compile(r"^(fix|repair|mend|correct|resolve)\b", re.IGNORECASE)


def commit_message(setup: RunSetup, run_id: str, changed: Sequence[str]) -> str:
    words = " ".join(setup.request.split())
    kind = "docs" if setup.lane == "docs" else "fix" if _KIND.match(words) else "feat"
    subject, rest = fitted(f"{kind}: {words[:1].lower()}{words[1:]}")
    body = f"{words}\n\n" if rest else ""
    return f"{subject}\n\n{body}Files:\n{listed(changed)}\n\nProofstone-Run: {run_id}\n"

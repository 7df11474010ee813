"""The threat model: which level of the sandbox prevents what."""

from __future__ import annotations

from generators.page import table
from proofstone.sandbox.rules import THREATS, ThreatSubject
from proofstone.sandbox.seccomp import CALL_GROUPS


def walls() -> str:
    """Return one table for each thing that is protected."""
    parts = []
    for subject in ThreatSubject:
        threats = [threat for threat in THREATS if threat.subject is subject]
        rows = [(threat.protection, threat.bubblewrap, threat.landlock, threat.plain) for threat in threats]
        head = ("wall", "`bubblewrap`", "`landlock`", "`plain`")
        parts.append(f"**{subject.value.capitalize()}**\n\n{table(head, rows)}")
    return "\n".join(parts)


def calls() -> str:
    """Return the groups of refused system calls."""
    rows = []
    for group in CALL_GROUPS:
        name = f"`{group.name}`" if group.can_be_allowed else "–"
        rows.append((name, group.purpose, ", ".join(f"`{call}`" for call in group.calls)))
    return table(("`sandbox.allow`", "what for", "refused calls"), rows)

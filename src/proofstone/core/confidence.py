"""How sure an outcome is. High only when it passed at the strongest level and a test was seen to fail without it.

| first match                                            | confidence |
|--------------------------------------------------------|------------|
| the outcome is not `passed`                            | low        |
| anything caps it: a layer that could not say, a flaky test, a lower sandbox level, findings that inform | medium |
| otherwise                                              | high       |
"""

from __future__ import annotations

from collections.abc import Sequence

from proofstone.contracts.finding import Finding
from proofstone.contracts.verdict import Assurance, Confidence, Outcome

_CAPPING = frozenset(("flaky", "sandbox-failure", "check-dropped", "submodule-dirty", "understanding-unverified"))
"""Rules of findings that leave something unproven, although they refuse nothing."""


def rate(
    outcome: Outcome,
    reason: str,
    assurance: Assurance,
    caps: Sequence[str],
    findings: Sequence[Finding],
    *,
    sensitive: bool,
) -> tuple[Confidence, tuple[str, ...]]:
    """The confidence, and what would raise it. `sensitive`: a test depends on the change, or none needs to."""
    if outcome is not Outcome.PASSED:
        return Confidence.LOW, (reason,)
    told = list(caps)
    if assurance is not Assurance.BUBBLEWRAP:
        told.append(f"checks ran at the level {assurance} only")
    told += [f"{one.rule}: {one.detail}" for one in findings if one.rule in _CAPPING]
    if not sensitive and not told:
        told.append("no test was seen to fail without the change")
    return (Confidence.MEDIUM, tuple(told)) if told else (Confidence.HIGH, ())

"""The outcome of a whole cascade. Pure, and in one place.

| first match                                                            | outcome      |
|------------------------------------------------------------------------|--------------|
| a check that decides failed, or a finding of at least `major` stands   | failed       |
| a required check is unverifiable                                       | unverifiable |
| no test or verify command exercised it, and it is not only documentation | unverifiable |
| otherwise                                                              | passed       |
"""

from __future__ import annotations

from collections.abc import Sequence

from proofstone.contracts.check import CheckKind
from proofstone.contracts.finding import Finding
from proofstone.contracts.report import CheckLine
from proofstone.contracts.verdict import Assurance, Outcome, Severity, Verdict

_PROOF = (CheckKind.TESTS, CheckKind.VERIFY, CheckKind.HELD_OUT)
_STRONGEST_FIRST = (Assurance.BUBBLEWRAP, Assurance.LANDLOCK, Assurance.PLAIN)


def decide(
    checks: Sequence[CheckLine], findings: Sequence[Finding], *, documentation_only: bool
) -> tuple[Outcome, str]:
    """The outcome, and why it is not `passed`."""
    failed = [check for check in checks if check.verdict is Verdict.FAIL and check.decides]
    if failed:
        return Outcome.FAILED, "; ".join(f"{check.name}: {check.reason}" for check in failed)
    silent = {check.name for check in checks if not check.decides}
    grave = [one for one in findings if one.severity is not Severity.MINOR and one.check not in silent]
    if grave:
        return Outcome.FAILED, f"{grave[0].rule}: {grave[0].detail}"
    unsure = [check for check in checks if check.required and check.verdict is Verdict.UNVERIFIABLE]
    if unsure:
        return Outcome.UNVERIFIABLE, "; ".join(f"{check.name}: {check.reason}" for check in unsure)
    exercised = any(check.kind in _PROOF and check.verdict is Verdict.PASS and check.decides for check in checks)
    if not exercised and not documentation_only:
        return (
            Outcome.UNVERIFIABLE,
            "nothing exercised the change: no test was found in the project's files, and no --verify was given",
        )
    return Outcome.PASSED, ""


def weakest(levels: Sequence[Assurance | None]) -> Assurance:
    """The level that caps the whole; with nothing run at all, nothing is assured."""
    ran = [level for level in levels if level is not None]
    return max(ran, key=_STRONGEST_FIRST.index, default=Assurance.PLAIN)

"""The PASS rule of the task gate, in one place. Pure.

A task passes if and only if every row holds:

| condition         | holds when                                                                              |
|-------------------|-----------------------------------------------------------------------------------------|
| executor          | it says success, and not that a done criterion is unmet                                  |
| verify            | there is a verify command, the engine ran it, and it exited 0                            |
| signals           | at least 2 distinct checks passed (3 for a large task), trivial ones not counted         |
| required-checks   | no required check failed or is unverifiable, and no finding refuses                      |
| regression        | nothing that passed on the base fails now                                                |
| scope             | every changed file is declared                                                           |
| architect         | the last word of every architect is APPROVED, and none asks for a person                 |
| done              | every done criterion is linked to a check or to an architect's word                      |
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from proofstone.contracts.gate import ArchitectDecision, ArchitectVerdict, ExecutorStatus, Reason, Recommendation
from proofstone.contracts.gate_record import Evidence, VerifyRun
from proofstone.contracts.verdict import Confidence, Verdict

SIGNALS: Final = 2
SIGNALS_LARGE: Final = 3


def unmet(evidence: Evidence, verdicts: Sequence[ArchitectVerdict]) -> tuple[Reason, ...]:
    """What keeps the task from passing; nothing, if it passes."""
    return (*unmet_by_checks(evidence), *unmet_by_architects(evidence, verdicts))


def unmet_by_checks(evidence: Evidence) -> tuple[Reason, ...]:
    """The rows that need no architect."""
    found: list[Reason] = []
    if evidence.claim.status is not ExecutorStatus.SUCCESS or evidence.claim.done_criteria_met is False:
        found.append(_missing("executor", "the executor does not say that it succeeded"))
    if not evidence.verify:
        found.append(_missing("verify", "no verify command was run"))
    found += [_verify_reason(run) for run in evidence.verify if not _holds(run, evidence)]
    needed = SIGNALS_LARGE if evidence.large else SIGNALS
    if len(set(evidence.passing)) < needed:
        passed = ", ".join(sorted(set(evidence.passing))) or "none"
        detail = (
            f"{len(set(evidence.passing))} of the {needed} passing checks that are needed ({passed}); "
            "give <verify> a further command on a line of its own, or the project a test suite"
        )
        found.append(_missing("signals", detail))
    found += evidence.failing
    found += [_missing("regression", f"{test} passed on the base and fails now") for test in evidence.regressions]
    found += [_missing("scope", f"{path} was changed but is not among <files>") for path in evidence.undeclared]
    return tuple(found)


def unmet_by_architects(evidence: Evidence, verdicts: Sequence[ArchitectVerdict]) -> tuple[Reason, ...]:
    if not verdicts:
        return (_missing("architect", "no architect has spoken"),)
    found = [_rejection(verdict) for verdict in verdicts if verdict.verdict is not ArchitectDecision.APPROVED]
    found += [
        _missing("architect", f"{verdict.by or 'the architect'} asks for a person: {verdict.feedback}".rstrip(": "))
        for verdict in verdicts
        if verdict.verdict is ArchitectDecision.APPROVED and verdict.recommendation is not Recommendation.COMMIT
    ]
    if not evidence.criteria:
        found.append(_missing("done", "there is no done criterion"))
    return tuple(found)


def confidence(evidence: Evidence, verdicts: Sequence[ArchitectVerdict]) -> Confidence:
    """Of a task that passed: what the checks allow, capped by criteria that only words meet, and by the architects."""
    levels = [evidence.confidence, *(verdict.confidence for verdict in verdicts)]
    if any(link.is_prose for link in evidence.criteria) or any(run.flaky for run in evidence.verify):
        levels.append(Confidence.MEDIUM)
    return Confidence.weakest(levels) or Confidence.LOW


def _holds(run: VerifyRun, evidence: Evidence) -> bool:
    if run.verdict is not Verdict.PASS:
        return False
    return run.exit_code == 0 or (run.flaky and evidence.flaky_allowed)


def _verify_reason(run: VerifyRun) -> Reason:
    if run.flaky:
        detail = f"`{run.command}` is flaky: it failed, then passed, on the same tree"
    elif run.exit_code is None:
        detail = f"`{run.command}` did not come to its own end"
    elif run.exit_code == 0:
        detail = f"`{run.command}` exits 0, but that is not believed: see the other reasons"
    else:
        detail = f"`{run.command}` ended with exit code {run.exit_code}"
    verdict = Verdict.UNVERIFIABLE if run.verdict is Verdict.UNVERIFIABLE else Verdict.FAIL
    return Reason(check="verify", layer="gate", verdict=verdict, detail=detail, artifact=run.artifact)


def _rejection(verdict: ArchitectVerdict) -> Reason:
    told = verdict.feedback or "; ".join((*verdict.concerns, *verdict.findings)) or "rejected without a word"
    return _missing("architect", f"{verdict.by or 'the architect'}: {told}")


def _missing(condition: str, detail: str) -> Reason:
    return Reason(check=condition, layer="gate", verdict=Verdict.FAIL, detail=detail)

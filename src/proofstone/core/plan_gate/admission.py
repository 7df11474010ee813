"""Whether a plan may reach implementation. It must have gone through the gate as it is, byte by byte. What agents have
said of it goes before what the rules say alone.

| the last word about the plan | may it |
|---|---|
| PROCEED, and it names no mitigations | yes |
| PROCEED or REVISE, and its mitigations were taken in, by the engine and with nothing else changed | yes |
| PROCEED or REVISE with mitigations that were not, RETHINK, a question that waits, none | no |
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from proofstone.contracts.plan_gate.report import PlanVerdict


@dataclass(frozen=True)
class Judged:
    """A verdict on a plan."""

    run_id: str
    digest: str
    verdict: PlanVerdict | None
    """None: a question is waiting."""
    mitigations: bool = False
    """Whether there is something to be taken in: whoever does the work would not know of it."""
    alone: bool = False
    """The rules decided alone. Where somebody was asked about the same plan, that does not count."""
    forced: bool = False
    """It had to end before it converged: it may not be taken for more than it is."""


@dataclass(frozen=True)
class Mitigated:
    """A plan into which the engine has written the mitigations of a verdict."""

    run_id: str
    digest: str
    """Of the plan as it is since."""


@dataclass(frozen=True)
class NotAdmitted:
    why: str
    next: str
    """What would let it through, as a command without the name of the plan; empty: to verify it."""


def why_not_admitted(digest: str, judged: Sequence[Judged], mitigated: Sequence[Mitigated]) -> NotAdmitted | None:
    """Why the plan with that digest may not be implemented; None if it may. The last word counts."""
    own = [one for one in judged if one.digest == digest]
    own = [one for one in own if not one.alone] or own
    if own:
        return _by_its_verdict(own[-1])
    taken_in = [one.run_id for one in mitigated if one.digest == digest]
    verdicts = {one.run_id: one.verdict for one in judged if not one.forced}
    if any(verdicts.get(run_id) in (PlanVerdict.PROCEED, PlanVerdict.REVISE) for run_id in taken_in):
        return None
    return NotAdmitted("it has not gone through the plan gate as it is", "")


def _by_its_verdict(last: Judged) -> NotAdmitted | None:
    take_in = f"proofstone verify-plan --take-in {last.run_id}"
    match last.verdict:
        case None:
            return NotAdmitted(
                f"a question about it is waiting (run {last.run_id})", f"proofstone verify-plan --resume {last.run_id}"
            )
        case PlanVerdict.PROCEED:
            return NotAdmitted("its mitigations are not taken in", take_in) if last.mitigations else None
        case PlanVerdict.REVISE if last.mitigations and not last.forced:
            return NotAdmitted(f"the plan gate says REVISE (run {last.run_id})", take_in)
    return NotAdmitted(f"the plan gate says {last.verdict} (run {last.run_id})", "")

"""Whether a plan may reach implementation. It must have gone through the gate as it is, byte by byte.

| the last word about the plan | may it |
|---|---|
| PROCEED | yes |
| PROCEED or REVISE, and its mitigations were taken in, by the engine and with nothing else changed | yes |
| REVISE, RETHINK, a question that waits, none | no |
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from assay.contracts.plan_gate.report import PlanVerdict


@dataclass(frozen=True)
class Judged:
    """A verdict on a plan."""

    run_id: str
    digest: str
    verdict: PlanVerdict | None
    """None: a question is waiting."""


@dataclass(frozen=True)
class Mitigated:
    """A plan into which the engine has written the mitigations of a verdict."""

    run_id: str
    digest: str
    """Of the plan as it is since."""


def why_not_admitted(digest: str, judged: Sequence[Judged], mitigated: Sequence[Mitigated]) -> str:
    """Why the plan with that digest may not be implemented; empty if it may. The last word counts."""
    own = [one for one in judged if one.digest == digest]
    if own:
        last = own[-1]
        if last.verdict is PlanVerdict.PROCEED:
            return ""
        said = last.verdict or "a question is waiting"
        return f"the plan gate says {said} (run {last.run_id})"
    taken_in = [one.run_id for one in mitigated if one.digest == digest]
    verdicts = {one.run_id: one.verdict for one in judged}
    if any(verdicts.get(run_id) in (PlanVerdict.PROCEED, PlanVerdict.REVISE) for run_id in taken_in):
        return ""
    return "it has not gone through the plan gate as it is"

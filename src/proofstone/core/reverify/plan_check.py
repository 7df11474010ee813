"""Whether the plan of an agent is the plan of its task.

| the plan                                                              | if not                                    |
|-----------------------------------------------------------------------|-------------------------------------------|
| names only files that the task declares, or that a rule grants        | sent back                                 |
| names every file that the agent has announced or changed already      | sent back                                 |
| has a risk that is not below the engine's for these files             | sent back                                 |
| states the impact on interfaces, where one changes                    | sent back                                 |
| otherwise                                                             | approved                                  |

That an interface changes is known from the files, from what the agent has said, or from the plan's own words.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from proofstone.contracts.change import ChangeKind
from proofstone.contracts.reverify.messages import PlanApproved, Rejected, WorkPlan
from proofstone.contracts.reverify.text import brief
from proofstone.contracts.worked import ChangedSignature, WorkedFile
from proofstone.core.gate.file_requests import granted
from proofstone.core.reverify.mentions import changes_of, interface_changes, says_none
from proofstone.core.risk import PathChange, Risk, risk_of
from proofstone.core.scope import undeclared

_ORDER: Final = (Risk.GREEN, Risk.YELLOW, Risk.RED)
_MARKS: Final[Mapping[str, Risk]] = {risk.mark: risk for risk in Risk}


@dataclass(frozen=True)
class Planned:
    """What a plan is held against."""

    declared: tuple[str, ...]
    """Paths and patterns that the agent owns, with those that it was given since."""
    absent: frozenset[str] = frozenset()
    """Those of the plan's files that are not there: it makes them."""
    announced: tuple[str, ...] = ()
    """Files that it has said it needs, and was given."""
    worked: tuple[WorkedFile, ...] = ()
    """What it has changed already."""
    signatures: tuple[ChangedSignature, ...] = ()
    """Interfaces that it has changed already."""
    said: str = ""
    """What it answered when it was last asked: an interface may be spoken of."""
    floor: Risk = Risk.GREEN
    """The task has this risk whatever the files are."""


@dataclass(frozen=True)
class PlanCheck:
    answer: PlanApproved | Rejected
    reasons: tuple[str, ...] = ()
    """Why it is sent back; none: it is approved."""
    granted: tuple[str, ...] = field(default=())
    """Files beyond the declared ones that it may change by rule."""

    @property
    def approved(self) -> bool:
        return not self.reasons


def check_plan(plan: WorkPlan, against: Planned) -> PlanCheck:
    files = tuple(dict.fromkeys(path.removeprefix("./") for path in plan.files))
    beyond = undeclared(files, against.declared)
    allowed = granted(beyond, against.declared)
    reasons = (
        *_strange(beyond, allowed),
        *_forgotten(files, against),
        *_too_low(plan, files, against),
        *_unsaid(plan, against),
    )
    if reasons:
        return PlanCheck(Rejected(phase=plan.phase, reason=brief("; ".join(reasons))), reasons)
    return PlanCheck(PlanApproved(phase=plan.phase), granted=allowed)


def engine_risk(files: tuple[str, ...], against: Planned) -> Risk:
    """The highest of the files that are planned or were changed already, and of the task."""
    worked = {one.path: one for one in against.worked}
    changes = [
        PathChange(path=one.path, kind=one.kind, added=one.added, removed=one.removed)
        if (one := worked.get(path))
        else PathChange(path=path, kind=ChangeKind.ADDED if path in against.absent else ChangeKind.MODIFIED)
        for path in dict.fromkeys((*files, *worked))
    ]
    return max((against.floor, *(risk_of(change).risk for change in changes)), key=_ORDER.index)


def _strange(beyond: tuple[str, ...], allowed: tuple[str, ...]) -> Iterator[str]:
    for path in beyond:
        if path not in allowed:
            yield f"{path} is not among the files of the task"


def _forgotten(files: tuple[str, ...], against: Planned) -> Iterator[str]:
    for path in undeclared(against.announced, files):
        yield f"it leaves out {path}, which was announced"
    changed = undeclared((one.path for one in against.worked), (*files, *against.announced))
    for path in changed:
        yield f"it leaves out {path}, which has changed already"


def _too_low(plan: WorkPlan, files: tuple[str, ...], against: Planned) -> Iterator[str]:
    least = engine_risk(files, against)
    if _ORDER.index(_MARKS[plan.risk]) < _ORDER.index(least):
        yield f"its risk is {least.mark}, not {plan.risk}"


def _unsaid(plan: WorkPlan, against: Planned) -> Iterator[str]:
    public = [one.symbol for one in against.signatures if one.public]
    if missing := [symbol for symbol in public if not changes_of(plan.interface_impact, symbol)]:
        yield f"the signature of {', '.join(missing)} has changed, and its interface impact does not say so"
    elif says_none(plan.interface_impact) and (spoken := interface_changes(f"{plan.changes}. {against.said}")):
        yield f"its interface impact is `{plan.interface_impact}`, though it says: {spoken[0]}"

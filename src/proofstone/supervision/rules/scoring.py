"""An abbreviated analysis, held against the plan and the change itself.

How far the work is from its plan is computed, whatever is claimed:

| computed              | if                                                                                          |
|-----------------------|---------------------------------------------------------------------------------------------|
| NONE                  | all that changed is declared, or granted by rule; no public signature changed but as planned |
| MINOR_ADJUSTMENT      | there are further files, each of risk 🟢 or 🟡; no public signature changed but as planned   |
| SIGNIFICANT_DEVIATION | otherwise                                                                                   |

| the claim, and what it names                                                           | result                   |
|----------------------------------------------------------------------------------------|--------------------------|
| is less than what is computed                                                          | hidden: unjustified       |
| leaves out a changed file that is not declared, or a public signature that is not planned | hidden: unjustified    |
| one of its items does not hold                                                         | unjustified              |
| NONE, and so it is                                                                     | intact                   |
| otherwise: what is computed, or more that is still to come                             | justified                |

What is hidden is a claim mismatch. A file is named by RC-04, a signature anywhere in the analysis.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final, Literal

from proofstone.agents.models import ChangedSignature, WorkedFile
from proofstone.agents.roles.models.gate import CLAIM_MISMATCH
from proofstone.check.rules.file_requests import granted
from proofstone.common.globs import matches, undeclared
from proofstone.common.models import ChangeKind, Finding, Severity, Verdict
from proofstone.common.risk import PathChange, Risk, risk_of
from proofstone.supervision.models.ladder import Impact, LaterTask, MiniAnalysis, Result, Score
from proofstone.supervision.models.understanding import Item, ItemVerdict
from proofstone.supervision.rules.mentions import files, names, says

ITEMS: Final = (Item.TASK, Item.FILES, Item.DOWNSTREAM)
"""Of the abbreviated analysis."""
_AS_BEFORE: Final = re.compile(
    r"\b(?:same|unchanged|no (?:new|further|other|additional|more) files?|no changes?"
    r"|as (?:declared|planned|before|listed)|the declared (?:files?|ones?)|original (?:list|files?))\b",
    re.IGNORECASE,
)
_WORST_FIRST: Final = (Verdict.FAIL, Verdict.UNVERIFIABLE, Verdict.PASS)
_NAMED: Final = 5


@dataclass(frozen=True)
class Reality:
    """What the engine sees."""

    declared: tuple[str, ...]
    """Paths and patterns that the task may change."""
    worked: tuple[WorkedFile, ...] = ()
    """What really changed in the work tree."""
    signatures: tuple[ChangedSignature, ...] = ()
    unseen: tuple[str, ...] = ()
    """Changed files whose signatures cannot be compared."""
    later: tuple[LaterTask, ...] = ()

    @property
    def beyond(self) -> tuple[WorkedFile, ...]:
        """Files that the task neither declares nor gets by rule."""
        strange = undeclared((item.path for item in self.worked), self.declared)
        given = granted(strange, self.declared)
        return tuple(item for item in self.worked if item.path in strange and item.path not in given)

    @property
    def unplanned(self) -> tuple[ChangedSignature, ...]:
        return tuple(signature for signature in self.signatures if signature.public and not signature.planned)


def deviation(reality: Reality) -> Impact:
    beyond = reality.beyond
    if reality.unplanned or any(_risk(item) is Risk.RED for item in beyond):
        return Impact.SIGNIFICANT_DEVIATION
    return Impact.MINOR_ADJUSTMENT if beyond else Impact.NONE


def score(analysis: MiniAnalysis, reality: Reality, judged: Iterable[ItemVerdict] = ()) -> Score:
    """`judged`: what somebody says of RC-01 and RC-07; nothing: nobody could be asked."""
    computed = deviation(reality)
    items = tuple(_items(analysis, reality, tuple(judged)))
    hidden = tuple(_hidden(analysis, reality, computed))
    failed = tuple(item for item in items if item.verdict is Verdict.FAIL)
    result = _result(analysis.impact, computed, refused=bool(hidden or failed))
    return Score(
        result=result,
        claimed=analysis.impact,
        computed=computed,
        items=items,
        hidden=_finding(hidden, analysis.impact, computed) if hidden else None,
        amended=_amended(analysis, reality) if result is Result.JUSTIFIED else (),
        reason="; ".join((*hidden, *(f"{item.item}: {item.detail}" for item in failed))) or _FINE[result],
    )


_Result = Literal[Result.INTACT, Result.JUSTIFIED, Result.UNJUSTIFIED]
_FINE: Final = {
    Result.INTACT: "it does what was planned, and says so",
    Result.JUSTIFIED: "it deviates from the plan, and says so",
}


def _result(claimed: Impact, computed: Impact, *, refused: bool) -> _Result:
    if refused:
        return Result.UNJUSTIFIED
    return Result.INTACT if claimed is Impact.NONE and computed is Impact.NONE else Result.JUSTIFIED


def _risk(file: WorkedFile) -> Risk:
    return risk_of(PathChange(path=file.path, kind=file.kind, added=file.added, removed=file.removed)).risk


# What is hidden


def _hidden(analysis: MiniAnalysis, reality: Reality, computed: Impact) -> Iterator[str]:
    if analysis.impact.rank < computed.rank:
        yield f"it claims {analysis.impact}, and it is {computed}: {_deviating(reality)}"
    if silent := [item.path for item in reality.beyond if item.path in _unnamed(analysis, reality)]:
        yield f"it changed {_listed(silent)}, which its task does not declare and it does not name"
    everything = " ".join((analysis.task, analysis.files, analysis.downstream, analysis.reality))
    if silent := [item.symbol for item in reality.unplanned if not names(everything, item.symbol)]:
        yield f"it changed the signature of {_listed(silent)}, which was not planned and it does not name"


def _deviating(reality: Reality) -> str:
    changed = [f"{item.path} {_risk(item).mark}" for item in reality.beyond]
    return _listed([*changed, *(f"the signature of {item.symbol} in {item.path}" for item in reality.unplanned)])


def _finding(hidden: tuple[str, ...], claimed: Impact, computed: Impact) -> Finding:
    return Finding(
        layer="scope",
        rule=CLAIM_MISMATCH,
        severity=Severity.MAJOR,
        detail="; ".join(hidden),
        fix="name every file and every signature that differs from the plan, and claim the impact that it has",
        before=claimed,
        after=computed,
    )


def _listed(some: list[str]) -> str:
    more = f" and {len(some) - _NAMED} more" if len(some) > _NAMED else ""
    return ", ".join(some[:_NAMED]) + more


# What it names


def _known(reality: Reality) -> tuple[str, ...]:
    literal = (path for path in reality.declared if not set("*?") & set(path))
    return (*(item.path for item in reality.worked), *literal)


def _unnamed(analysis: MiniAnalysis, reality: Reality) -> tuple[str, ...]:
    """Changed files that the list does not name. Declared ones are named by their folder too, or by somebody who says
    that the list is as before; others only by themselves."""
    changed = tuple(item.path for item in reality.worked)
    named = tuple(file.path for file in files(analysis.files, _known(reality)))
    as_before = bool(_AS_BEFORE.search(analysis.files))
    own = {path for path in changed if not undeclared((path,), reality.declared)}
    covered = own if as_before else own - set(undeclared(own, named))
    return tuple(path for path in changed if path not in named and path not in covered)


def _amended(analysis: MiniAnalysis, reality: Reality) -> tuple[str, ...]:
    """What it has changed beyond its files; and what it says it will, if the impact that it claims covers that."""
    mentioned = [item for item in files(analysis.files, _known(reality)) if not item.path.endswith("/")]
    to_come = tuple(
        WorkedFile(path=item.path, kind=ChangeKind.ADDED if item.new else ChangeKind.MODIFIED)
        for item in mentioned
        if undeclared((item.path,), reality.declared) and all(item.path != file.path for file in reality.worked)
    )
    then = replace(reality, worked=(*reality.worked, *to_come))
    covered = deviation(then).rank <= analysis.impact.rank
    return tuple(item.path for item in (then if covered else reality).beyond)


# Items


def _items(analysis: MiniAnalysis, reality: Reality, judged: tuple[ItemVerdict, ...]) -> Iterator[ItemVerdict]:
    yield _worst(Item.TASK, (), judged)
    yield _worst(Item.FILES, _files(analysis, reality), ())
    yield _worst(Item.DOWNSTREAM, _downstream(analysis, reality), judged)
    if reality.unseen:
        detail = f"signatures in {_listed(list(reality.unseen))} cannot be compared"
        yield ItemVerdict(item=Item.INTERFACES, verdict=Verdict.UNVERIFIABLE, detail=detail)


def _worst(item: Item, seen: Iterable[tuple[Verdict, str]], judged: Iterable[ItemVerdict]) -> ItemVerdict:
    """The worst of what the engine sees and somebody judges; of nothing at all nobody knows."""
    found = [ItemVerdict(item=item, verdict=verdict, detail=detail) for verdict, detail in seen]
    found += (entry for entry in judged if entry.item is item)
    unknown = ItemVerdict(item=item, verdict=Verdict.UNVERIFIABLE, detail="nobody could judge it")
    return min(found, key=lambda one: _WORST_FIRST.index(one.verdict), default=unknown)


def _files(analysis: MiniAnalysis, reality: Reality) -> Iterator[tuple[Verdict, str]]:
    if missing := _unnamed(analysis, reality):
        yield Verdict.FAIL, f"it changed {_listed(list(missing))}, which its list does not name"
    else:
        yield Verdict.PASS, ""


def _downstream(analysis: MiniAnalysis, reality: Reality) -> Iterator[tuple[Verdict, str]]:
    """Each later task that works on a file that changed is to be named, and one at least of those that rest on this
    one. A task is named by its id, its title or one of its files."""
    changed = [item.path for item in reality.worked]
    touched = [task for task in reality.later if any(matches(mine, path) for mine in task.files for path in changed)]
    if missing := [task.id for task in touched if not _is_named(task, analysis.downstream)]:
        yield Verdict.FAIL, f"it does not name {_listed(missing)}, which works on what it changed"
    elif reality.later and not any(_is_named(task, analysis.downstream) for task in reality.later):
        yield Verdict.FAIL, f"it names none of {_listed([task.id for task in reality.later])}, which rest on it"
    elif not reality.later:
        yield Verdict.PASS, "no task rests on it"


def _is_named(task: LaterTask, text: str) -> bool:
    named = files(text, task.files)
    return (
        says(text, task.id)
        or says(text.casefold(), task.title.casefold())
        or any(matches(mine, item.path) for mine in task.files for item in named)
    )

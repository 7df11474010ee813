"""Compare an abbreviated analysis with the plan and the real change.

The distance of the work from its plan is computed, whatever the agent claims:

| computed              | if                                                                                          |
|-----------------------|---------------------------------------------------------------------------------------------|
| NONE                  | changed files are declared or granted by rule; no unplanned change of a public signature    |
| MINOR_ADJUSTMENT      | further files, each of risk 🟢 or 🟡; no unplanned change of a public signature             |
| SIGNIFICANT_DEVIATION | otherwise                                                                                   |

| the analysis                                                                           | result                   |
|----------------------------------------------------------------------------------------|--------------------------|
| claims less than what is computed                                                      | hidden: unjustified      |
| omits a changed undeclared file, or an unplanned change of a public signature          | hidden: unjustified      |
| has an item that fails                                                                 | unjustified              |
| claims NONE, and NONE is computed                                                      | intact                   |
| otherwise: claims what is computed, or more that is still to come                      | justified                |

A hidden deviation is a claim mismatch. RC-04 must name the files; a signature may be named anywhere in the analysis.
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
"""The items of the abbreviated analysis."""
_AS_BEFORE: Final = re.compile(
    r"\b(?:same|unchanged|no (?:new|further|other|additional|more) files?|no changes?"
    r"|as (?:declared|planned|before|listed)|the declared (?:files?|ones?)|original (?:list|files?))\b",
    re.IGNORECASE,
)
_WORST_FIRST: Final = (Verdict.FAIL, Verdict.UNVERIFIABLE, Verdict.PASS)
_MAX_LISTED: Final = 5


@dataclass(frozen=True)
class Reality:
    """What the engine observed."""

    declared: tuple[str, ...]
    """Paths and patterns that the task may change."""
    worked: tuple[WorkedFile, ...] = ()
    """Files that really changed in the work tree."""
    signatures: tuple[ChangedSignature, ...] = ()
    unseen: tuple[str, ...] = ()
    """Changed files whose signatures cannot be compared."""
    later: tuple[LaterTask, ...] = ()

    @property
    def beyond(self) -> tuple[WorkedFile, ...]:
        """Files that the task neither declares nor gets by rule."""
        undeclared_paths = undeclared((file.path for file in self.worked), self.declared)
        granted_paths = granted(undeclared_paths, self.declared)
        return tuple(file for file in self.worked if file.path in undeclared_paths and file.path not in granted_paths)

    @property
    def unplanned(self) -> tuple[ChangedSignature, ...]:
        return tuple(signature for signature in self.signatures if signature.public and not signature.planned)


def deviation(reality: Reality) -> Impact:
    undeclared_files = reality.beyond
    if reality.unplanned or any(_risk(file) is Risk.RED for file in undeclared_files):
        return Impact.SIGNIFICANT_DEVIATION
    return Impact.MINOR_ADJUSTMENT if undeclared_files else Impact.NONE


def score(analysis: MiniAnalysis, reality: Reality, judged: Iterable[ItemVerdict] = ()) -> Score:
    """Score an analysis. `judged` are the judge's verdicts on RC-01 and RC-07; empty if there was no judge."""
    computed = deviation(reality)
    items = tuple(_judge_items(analysis, reality, tuple(judged)))
    hidden = tuple(_find_hidden(analysis, reality, computed))
    failed = tuple(verdict for verdict in items if verdict.verdict is Verdict.FAIL)
    result = _decide_result(analysis.impact, computed, refused=bool(hidden or failed))
    return Score(
        result=result,
        claimed=analysis.impact,
        computed=computed,
        items=items,
        hidden=_build_finding(hidden, analysis.impact, computed) if hidden else None,
        amended=_collect_amended(analysis, reality) if result is Result.JUSTIFIED else (),
        reason="; ".join((*hidden, *(f"{verdict.item}: {verdict.detail}" for verdict in failed))) or _REASONS[result],
    )


_Result = Literal[Result.INTACT, Result.JUSTIFIED, Result.UNJUSTIFIED]
_REASONS: Final = {
    Result.INTACT: "the agent follows the plan and says so",
    Result.JUSTIFIED: "the agent deviates from the plan and says so",
}


def _decide_result(claimed: Impact, computed: Impact, *, refused: bool) -> _Result:
    if refused:
        return Result.UNJUSTIFIED
    return Result.INTACT if claimed is Impact.NONE and computed is Impact.NONE else Result.JUSTIFIED


def _risk(file: WorkedFile) -> Risk:
    return risk_of(PathChange(path=file.path, kind=file.kind, added=file.added, removed=file.removed)).risk


# Hidden deviations


def _find_hidden(analysis: MiniAnalysis, reality: Reality, computed: Impact) -> Iterator[str]:
    if analysis.impact.rank < computed.rank:
        yield f"it claims {analysis.impact}, but the computed impact is {computed}: {_describe_deviation(reality)}"
    if unnamed := [file.path for file in reality.beyond if file.path in _find_unnamed(analysis, reality)]:
        yield f"it changed {_join_limited(unnamed)}, which its task does not declare and the analysis does not name"
    everything = " ".join((analysis.task, analysis.files, analysis.downstream, analysis.reality))
    if unnamed := [change.symbol for change in reality.unplanned if not names(everything, change.symbol)]:
        yield f"it changed the signature of {_join_limited(unnamed)}, which was not planned and is not named"


def _describe_deviation(reality: Reality) -> str:
    files = [f"{file.path} {_risk(file).mark}" for file in reality.beyond]
    signatures = [f"the signature of {change.symbol} in {change.path}" for change in reality.unplanned]
    return _join_limited([*files, *signatures])


def _build_finding(hidden: tuple[str, ...], claimed: Impact, computed: Impact) -> Finding:
    return Finding(
        layer="scope",
        rule=CLAIM_MISMATCH,
        severity=Severity.MAJOR,
        detail="; ".join(hidden),
        fix="name every file and every signature that differs from the plan, and claim the real impact",
        before=claimed,
        after=computed,
    )


def _join_limited(values: list[str]) -> str:
    remainder = f" and {len(values) - _MAX_LISTED} more" if len(values) > _MAX_LISTED else ""
    return ", ".join(values[:_MAX_LISTED]) + remainder


# Names in the analysis


def _collect_known_paths(reality: Reality) -> tuple[str, ...]:
    literal = (path for path in reality.declared if not set("*?") & set(path))
    return (*(file.path for file in reality.worked), *literal)


def _find_unnamed(analysis: MiniAnalysis, reality: Reality) -> tuple[str, ...]:
    """Return the changed files that the list does not name. A declared file is also named by its folder, or by a
    statement that the list is as before; other files only by their path.
    """
    changed = tuple(changed_file.path for changed_file in reality.worked)
    named = tuple(file.path for file in files(analysis.files, _collect_known_paths(reality)))
    as_before = bool(_AS_BEFORE.search(analysis.files))
    declared = {path for path in changed if not undeclared((path,), reality.declared)}
    covered = declared if as_before else declared - set(undeclared(declared, named))
    return tuple(path for path in changed if path not in named and path not in covered)


def _collect_amended(analysis: MiniAnalysis, reality: Reality) -> tuple[str, ...]:
    """Return the undeclared files that the agent has changed, and those that it announces if the claimed impact
    covers them.
    """
    mentioned = [
        mention for mention in files(analysis.files, _collect_known_paths(reality)) if not mention.path.endswith("/")
    ]
    announced = tuple(
        WorkedFile(path=mention.path, kind=ChangeKind.ADDED if mention.new else ChangeKind.MODIFIED)
        for mention in mentioned
        if undeclared((mention.path,), reality.declared) and all(mention.path != file.path for file in reality.worked)
    )
    planned_reality = replace(reality, worked=(*reality.worked, *announced))
    is_covered = deviation(planned_reality).rank <= analysis.impact.rank
    return tuple(changed.path for changed in (planned_reality if is_covered else reality).beyond)


# Items


def _judge_items(analysis: MiniAnalysis, reality: Reality, judged: tuple[ItemVerdict, ...]) -> Iterator[ItemVerdict]:
    yield _worst(Item.TASK, (), judged)
    yield _worst(Item.FILES, _check_files(analysis, reality), ())
    yield _worst(Item.DOWNSTREAM, _check_downstream(analysis, reality), judged)
    if reality.unseen:
        detail = f"signatures in {_join_limited(list(reality.unseen))} cannot be compared"
        yield ItemVerdict(item=Item.INTERFACES, verdict=Verdict.UNVERIFIABLE, detail=detail)


def _worst(item: Item, observed: Iterable[tuple[Verdict, str]], judged: Iterable[ItemVerdict]) -> ItemVerdict:
    """Return the worst verdict of the engine and the judge. Unverifiable if there is none."""
    verdicts = [ItemVerdict(item=item, verdict=verdict, detail=detail) for verdict, detail in observed]
    verdicts += (judgement for judgement in judged if judgement.item is item)
    unknown = ItemVerdict(item=item, verdict=Verdict.UNVERIFIABLE, detail="nobody could judge it")
    return min(verdicts, key=lambda candidate: _WORST_FIRST.index(candidate.verdict), default=unknown)


def _check_files(analysis: MiniAnalysis, reality: Reality) -> Iterator[tuple[Verdict, str]]:
    if missing := _find_unnamed(analysis, reality):
        yield Verdict.FAIL, f"it changed {_join_limited(list(missing))}, which its list does not name"
    else:
        yield Verdict.PASS, ""


def _check_downstream(analysis: MiniAnalysis, reality: Reality) -> Iterator[tuple[Verdict, str]]:
    """Require the name of each later task that works on a changed file, and of at least one task that depends on
    this one. A task is named by its id, its title or one of its files.
    """
    changed = [file.path for file in reality.worked]
    affected = [
        task for task in reality.later if any(matches(pattern, path) for pattern in task.files for path in changed)
    ]
    if missing := [task.id for task in affected if not _is_named(task, analysis.downstream)]:
        yield Verdict.FAIL, f"it does not name {_join_limited(missing)}, which works on the changed files"
    elif reality.later and not any(_is_named(task, analysis.downstream) for task in reality.later):
        yield Verdict.FAIL, f"it names none of {_join_limited([task.id for task in reality.later])}, which depend on it"
    elif not reality.later:
        yield Verdict.PASS, "no task depends on it"


def _is_named(task: LaterTask, text: str) -> bool:
    mentions = files(text, task.files)
    return (
        says(text, task.id)
        or says(text.casefold(), task.title.casefold())
        or any(matches(pattern, mention.path) for pattern in task.files for mention in mentions)
    )

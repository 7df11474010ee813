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

from proofstone.agents.models import SignatureChange, WorkFile
from proofstone.agents.roles.models.gate import CLAIM_MISMATCH
from proofstone.check.rules.file_requests import grant_files
from proofstone.common.globs import find_undeclared, matches
from proofstone.common.models import ChangeKind, Finding, Severity, Verdict
from proofstone.common.risk import PathChange, Risk, assess_risk
from proofstone.supervision.models.ladder import AnalysisScore, AnswerResult, DeviationImpact, LaterTask, MiniAnalysis
from proofstone.supervision.models.understanding import AnalysisItem, ItemVerdict
from proofstone.supervision.rules.mentions import find_mentioned_files, mentions_symbol, mentions_words

"""The items of the abbreviated analysis."""
_AS_BEFORE: Final = re.compile(
    r"\b(?:same|unchanged|no (?:new|further|other|additional|more) files?|no changes?"
    r"|as (?:declared|planned|before|listed)|the declared (?:files?|ones?)|original (?:list|files?))\b",
    re.IGNORECASE,
)
_WORST_FIRST: Final = (Verdict.FAIL, Verdict.UNVERIFIABLE, Verdict.PASS)
_MAX_LISTED: Final = 5


@dataclass(frozen=True)
class WorkObservation:
    """What the engine observed."""

    declared: tuple[str, ...]
    """Paths and patterns that the task may change."""
    observe_changes: tuple[WorkFile, ...] = ()
    """Files that really changed in the work tree."""
    signatures: tuple[SignatureChange, ...] = ()
    unseen: tuple[str, ...] = ()
    """Changed files whose signatures cannot be compared."""
    later: tuple[LaterTask, ...] = ()

    @property
    def undeclared_files(self) -> tuple[WorkFile, ...]:
        """Files that the task neither declares nor gets by rule."""
        undeclared_paths = find_undeclared((file.path for file in self.observe_changes), self.declared)
        granted_paths = grant_files(undeclared_paths, self.declared)
        return tuple(
            file for file in self.observe_changes if file.path in undeclared_paths and file.path not in granted_paths
        )

    @property
    def unplanned_signatures(self) -> tuple[SignatureChange, ...]:
        return tuple(signature for signature in self.signatures if signature.public and not signature.planned)


def compute_deviation(reality: WorkObservation) -> DeviationImpact:
    undeclared_files = reality.undeclared_files
    if reality.unplanned_signatures or any(_risk(file) is Risk.RED for file in undeclared_files):
        return DeviationImpact.SIGNIFICANT_DEVIATION
    return DeviationImpact.MINOR_ADJUSTMENT if undeclared_files else DeviationImpact.NONE


def score_analysis(
    analysis: MiniAnalysis, reality: WorkObservation, judged: Iterable[ItemVerdict] = ()
) -> AnalysisScore:
    """Score an analysis. `judged` are the judge's verdicts on RC-01 and RC-07; empty if there was no judge."""
    computed = compute_deviation(reality)
    items = tuple(_judge_items(analysis, reality, tuple(judged)))
    hidden = tuple(_find_hidden(analysis, reality, computed))
    failed = tuple(verdict for verdict in items if verdict.verdict is Verdict.FAIL)
    result = _decide_result(analysis.impact, computed, refused=bool(hidden or failed))
    return AnalysisScore(
        result=result,
        claimed=analysis.impact,
        computed=computed,
        items=items,
        hidden=_build_finding(hidden, analysis.impact, computed) if hidden else None,
        amended=_collect_amended(analysis, reality) if result is AnswerResult.JUSTIFIED else (),
        reason="; ".join((*hidden, *(f"{verdict.item}: {verdict.detail}" for verdict in failed))) or _REASONS[result],
    )


_Result = Literal[AnswerResult.INTACT, AnswerResult.JUSTIFIED, AnswerResult.UNJUSTIFIED]
_REASONS: Final = {
    AnswerResult.INTACT: "the agent follows the plan and says so",
    AnswerResult.JUSTIFIED: "the agent deviates from the plan and says so",
}


def _decide_result(claimed: DeviationImpact, computed: DeviationImpact, *, refused: bool) -> _Result:
    if refused:
        return AnswerResult.UNJUSTIFIED
    return (
        AnswerResult.INTACT
        if claimed is DeviationImpact.NONE and computed is DeviationImpact.NONE
        else AnswerResult.JUSTIFIED
    )


def _risk(file: WorkFile) -> Risk:
    return assess_risk(PathChange(path=file.path, kind=file.kind, added=file.added, removed=file.removed)).risk


# Hidden deviations


def _find_hidden(analysis: MiniAnalysis, reality: WorkObservation, computed: DeviationImpact) -> Iterator[str]:
    if analysis.impact.rank < computed.rank:
        yield f"it claims {analysis.impact}, but the computed impact is {computed}: {describe_deviation(reality)}"
    if unnamed := [file.path for file in reality.undeclared_files if file.path in _find_unnamed(analysis, reality)]:
        yield f"it changed {_join_limited(unnamed)}, which its task does not declare and the analysis does not name"
    everything = " ".join((analysis.task, analysis.files, analysis.downstream, analysis.reality))
    if unnamed := [
        change.symbol for change in reality.unplanned_signatures if not mentions_symbol(everything, change.symbol)
    ]:
        yield f"it changed the signature of {_join_limited(unnamed)}, which was not planned and is not named"


def describe_deviation(reality: WorkObservation) -> str:
    """Return the undeclared files with their risk, and the signatures that were changed without a plan."""
    files = [f"{file.path} {_risk(file).mark}" for file in reality.undeclared_files]
    signatures = [f"the signature of {change.symbol} in {change.path}" for change in reality.unplanned_signatures]
    return _join_limited([*files, *signatures])


def _build_finding(hidden: tuple[str, ...], claimed: DeviationImpact, computed: DeviationImpact) -> Finding:
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


def _collect_known_paths(reality: WorkObservation) -> tuple[str, ...]:
    literal = (path for path in reality.declared if not set("*?") & set(path))
    return (*(file.path for file in reality.observe_changes), *literal)


def _find_unnamed(analysis: MiniAnalysis, reality: WorkObservation) -> tuple[str, ...]:
    """Return the changed files that the list does not name. A declared file is also named by its folder, or by a
    statement that the list is as before; other files only by their path.
    """
    changed = tuple(changed_file.path for changed_file in reality.observe_changes)
    named = tuple(file.path for file in find_mentioned_files(analysis.files, _collect_known_paths(reality)))
    as_before = bool(_AS_BEFORE.search(analysis.files))
    declared = {path for path in changed if not find_undeclared((path,), reality.declared)}
    covered = declared if as_before else declared - set(find_undeclared(declared, named))
    return tuple(path for path in changed if path not in named and path not in covered)


def _collect_amended(analysis: MiniAnalysis, reality: WorkObservation) -> tuple[str, ...]:
    """Return the undeclared files that the agent has changed, and those that it announces if the claimed impact
    covers them.
    """
    mentioned = [
        mention
        for mention in find_mentioned_files(analysis.files, _collect_known_paths(reality))
        if not mention.path.endswith("/")
    ]
    announced = tuple(
        WorkFile(path=mention.path, kind=ChangeKind.ADDED if mention.new else ChangeKind.MODIFIED)
        for mention in mentioned
        if find_undeclared((mention.path,), reality.declared)
        and all(mention.path != file.path for file in reality.observe_changes)
    )
    planned_reality = replace(reality, observe_changes=(*reality.observe_changes, *announced))
    is_covered = compute_deviation(planned_reality).rank <= analysis.impact.rank
    return tuple(changed.path for changed in (planned_reality if is_covered else reality).undeclared_files)


# Items


def _judge_items(
    analysis: MiniAnalysis, reality: WorkObservation, judged: tuple[ItemVerdict, ...]
) -> Iterator[ItemVerdict]:
    yield _worst(AnalysisItem.TASK, (), judged)
    yield _worst(AnalysisItem.FILES, _check_files(analysis, reality), ())
    yield _worst(AnalysisItem.DOWNSTREAM, _check_downstream(analysis, reality), judged)
    if reality.unseen:
        detail = f"signatures in {_join_limited(list(reality.unseen))} cannot be compared"
        yield ItemVerdict(item=AnalysisItem.INTERFACES, verdict=Verdict.UNVERIFIABLE, detail=detail)


def _worst(item: AnalysisItem, observed: Iterable[tuple[Verdict, str]], judged: Iterable[ItemVerdict]) -> ItemVerdict:
    """Return the worst verdict of the engine and the judge. Unverifiable if there is none."""
    verdicts = [ItemVerdict(item=item, verdict=verdict, detail=detail) for verdict, detail in observed]
    verdicts += (judgement for judgement in judged if judgement.item is item)
    unknown = ItemVerdict(item=item, verdict=Verdict.UNVERIFIABLE, detail="nobody could judge it")
    return min(verdicts, key=lambda candidate: _WORST_FIRST.index(candidate.verdict), default=unknown)


def _check_files(analysis: MiniAnalysis, reality: WorkObservation) -> Iterator[tuple[Verdict, str]]:
    if missing := _find_unnamed(analysis, reality):
        yield Verdict.FAIL, f"it changed {_join_limited(list(missing))}, which its list does not name"
    else:
        yield Verdict.PASS, ""


def _check_downstream(analysis: MiniAnalysis, reality: WorkObservation) -> Iterator[tuple[Verdict, str]]:
    """Require the name of each later task that works on a changed file, and of at least one task that depends on
    this one. A task is named by its id, its title or one of its files.
    """
    changed = [file.path for file in reality.observe_changes]
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
    mentions = find_mentioned_files(text, task.files)
    return (
        mentions_words(text, task.id)
        or mentions_words(text.casefold(), task.title.casefold())
        or any(matches(pattern, mention.path) for pattern in task.files for mention in mentions)
    )

"""Decide what the gate would have done with a commit, from the report of its check.

A commit of the past is checked with what is installed today. If nothing but that refuses it, such as a dependency that
it needs and that is not installed, or a Python that is too new for it, it is unverifiable: the finding is about this
machine and not about the commit.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import PurePosixPath
from typing import Final

from proofstone.check.models import CheckReport
from proofstone.check.rules.acceptance import is_acceptance_enough, is_serious
from proofstone.check.rules.outcome import ACCEPTABLE_RULES
from proofstone.common.models import Finding, Outcome, Verdict
from proofstone.replay.models import HistoryCommit, ReplayCause, ReplayedCommit, ReplayFinding, ReplayVerdict

_MAX_FINDINGS: Final = 20
_LOADING_RULES: Final = frozenset(("unloadable-tests", "unfinished-run", "old-tests-unrunnable"))
"""Rules of findings that quote why tests could not be loaded."""
_MISSING_MODULE: Final = re.compile(
    r"No module named '(?P<module>[\w.]+)'|Cannot find (?:module|package) '(?P<package>[^']+)'"
)
_MOVED_NAME: Final = re.compile(r"cannot import name '(?P<name>\w+)' from '(?P<module>[\w.]+)' \((?P<path>/[^)]+)\)")
_INSTALL: Final = (
    "install what the commits of that time need, and replay again: only what could not be verified is repeated"
)


def judge_replayed(
    commit: HistoryCommit, report: CheckReport, *, modules: Collection[str], root: str, seconds: float
) -> ReplayedCommit:
    """Return what the gate would have done. `modules` are the names of the files and folders of the tree, without
    suffixes: a module among them is the project's own. `root` is the work tree as checks see it."""
    serious = [finding for finding in report.findings if is_serious(finding)]
    missing = _find_missing_environment(serious, modules, root) if report.outcome is Outcome.FAILED else ()
    return ReplayedCommit(
        commit=commit,
        verdict=ReplayVerdict.UNVERIFIABLE if missing else _rule_on(report, serious),
        outcome=report.outcome,
        confidence=report.confidence,
        reason=report.reason,
        findings=tuple(
            ReplayFinding(
                rule=finding.rule,
                detail=finding.headline,
                path=finding.path,
                is_acceptable=finding.rule in ACCEPTABLE_RULES,
            )
            for finding in serious[:_MAX_FINDINGS]
        ),
        causes=missing or _list_causes(report),
        doubts=tuple(reason.reason for reason in report.reasons) if report.outcome is Outcome.PASSED else (),
        changed=len(report.changed),
        seconds=seconds,
    )


def build_unverifiable(commit: HistoryCommit, reason: str, remedy: str, seconds: float) -> ReplayedCommit:
    """Return the result for a commit whose check could not begin."""
    return ReplayedCommit(
        commit=commit,
        verdict=ReplayVerdict.UNVERIFIABLE,
        outcome=Outcome.UNVERIFIABLE,
        reason=reason,
        causes=(ReplayCause(reason=reason, remedy=remedy),),
        seconds=seconds,
    )


def build_unchanged(commit: HistoryCommit) -> ReplayedCommit:
    """Return the result for a commit that has the tree of its parent."""
    return ReplayedCommit(commit=commit, verdict=ReplayVerdict.UNCHANGED, outcome=Outcome.NOTHING_TO_CHECK)


def _rule_on(report: CheckReport, serious: list[Finding]) -> ReplayVerdict:
    if report.outcome is Outcome.FAILED:
        failed = {check.name for check in report.checks if check.verdict is Verdict.FAIL and check.decides}
        explained = failed <= {finding.check for finding in serious}
        return ReplayVerdict.ASKED if explained and is_acceptance_enough(serious) else ReplayVerdict.REFUSED
    return {
        Outcome.PASSED: ReplayVerdict.PASSED,
        Outcome.NOTHING_TO_CHECK: ReplayVerdict.UNCHANGED,
        Outcome.NEEDS_DECISION: ReplayVerdict.ASKED,
    }.get(report.outcome, ReplayVerdict.UNVERIFIABLE)


def _list_causes(report: CheckReport) -> tuple[ReplayCause, ...]:
    if report.outcome is not Outcome.UNVERIFIABLE:
        return ()
    causes = [
        ReplayCause(reason=f"{check.name}: {check.reason}", remedy=check.remedy)
        for check in report.checks
        if check.required and check.verdict is Verdict.UNVERIFIABLE
    ]
    return tuple(dict.fromkeys(causes)) or (ReplayCause(reason=report.reason),)


def _find_missing_environment(serious: list[Finding], modules: Collection[str], root: str) -> tuple[ReplayCause, ...]:
    """Return what the machine lacks if that is all that refuses the commit."""
    lacks = [_describe_missing(finding, modules, root) for finding in serious]
    if not lacks or not all(lacks):
        return ()
    return tuple(ReplayCause(reason=lack, remedy=_INSTALL) for lack in dict.fromkeys(lacks))


def _describe_missing(finding: Finding, modules: Collection[str], root: str) -> str:
    """Return what is missing if the finding quotes that tests could not be loaded for want of something outside of the
    tree; else an empty string."""
    if finding.rule not in _LOADING_RULES:
        return ""
    if missing := _MISSING_MODULE.search(finding.detail):
        name = missing["module"] or missing["package"]
        top = PurePosixPath(name).parts[0] if missing["package"] else name.partition(".")[0]
        return "" if top in modules or name.startswith((".", root)) else f"{name} is not installed"
    moved = _MOVED_NAME.search(finding.detail)
    if moved and not moved["path"].startswith(f"{root.rstrip('/')}/"):
        return f"{moved['module']} as it is installed has no {moved['name']}"
    return ""

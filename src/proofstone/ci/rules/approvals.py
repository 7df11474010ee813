"""Decide what a maintainer has accepted on the code host.

Two ways count, both for the newest commit of the pull request only:

- the event that started the job is a label `proofstone-accept:RULE`, set by a maintainer;
- a review of the newest commit by a maintainer has a line `proofstone accept RULE: reason`.

A maintainer is somebody with write access who is not the author of the pull request. A new commit needs a new word.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from proofstone.check.rules.acceptance import MIN_REASON_LENGTH
from proofstone.check.rules.outcome import ACCEPTABLE_RULES
from proofstone.ci.models import Approval, CiJob

LABEL: Final = "proofstone-accept:"
_LINE: Final = re.compile(r"^\s*proofstone accept ([a-z0-9-]+)\s*:\s*(\S.*?)\s*$", re.MULTILINE)
MAINTAINERS: Final = frozenset({"admin", "maintain", "write"})
"""The permissions of the code host that make somebody a maintainer."""


@dataclass(frozen=True)
class Review:
    """A review of a pull request, as the code host reports it."""

    by: str
    body: str
    commit: str


@dataclass(frozen=True)
class ApprovalResult:
    """What counts, and why something that looked like an approval does not."""

    approvals: tuple[Approval, ...]
    ignored: tuple[str, ...]


def list_approvals(job: CiJob, reviews: Iterable[Review], find_permission: Callable[[str], str]) -> ApprovalResult:
    """Return what maintainers accept. `find_permission` returns the permission of a person in the repository."""
    found: list[Approval] = []
    ignored: list[str] = []
    for approval, commit in (*_read_label(job), *_read_reviews(reviews)):
        if objection := _find_objection(job, approval, commit, find_permission):
            ignored.append(f"{approval.source} by {approval.by}, {approval.rule}: {objection}")
        else:
            found.append(approval)
    return ApprovalResult(tuple(found), tuple(ignored))


def _read_label(job: CiJob) -> Sequence[tuple[Approval, str]]:
    if not job.label.startswith(LABEL) or not job.sender:
        return ()
    rule = job.label.removeprefix(LABEL).strip()
    reason = f"the label {job.label} was set on the pull request"
    return ((Approval(rule=rule, reason=reason, by=job.sender, source="label"), job.head),)


def _read_reviews(reviews: Iterable[Review]) -> Sequence[tuple[Approval, str]]:
    return [
        (Approval(rule=match[1], reason=match[2], by=review.by, source="review"), review.commit)
        for review in reviews
        for match in _LINE.finditer(review.body)
    ]


def _find_objection(job: CiJob, approval: Approval, commit: str, find_permission: Callable[[str], str]) -> str:
    """Return why an approval does not count; empty if it does."""
    if approval.rule not in ACCEPTABLE_RULES:
        return "no finding of that rule can be accepted"
    if len(approval.reason) < MIN_REASON_LENGTH:
        return "the reason says too little"
    if not job.head or commit != job.head:
        return "it is about an older commit"
    if approval.by == job.author:
        return "the author of a pull request cannot accept its findings"
    if find_permission(approval.by) not in MAINTAINERS:
        return "this person has no write access"
    return ""

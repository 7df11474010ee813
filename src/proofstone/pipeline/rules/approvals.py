"""Where the person is asked how to go on, and with which options. Pure.

| gate                 | options                 | bound                             |
|----------------------|-------------------------|-----------------------------------|
| `gate-pushback`      | proceed, modify, abandon | modify once                       |
| `gate-post-research` | proceed, expand, abort   | expand once                       |
| `gate-post-planning` | approve, revise, abort   | revise once; 🔴 files called out  |

What was chosen as often as it may be is no longer offered. The first option is the default, but where a concern is a
blocker: then doing nothing is.

The command that takes back what a run has committed, by the commits that are on record. Pure.

The message of the one commit of a run: what was asked for, and what it belongs to. Pure.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from proofstone.agents.roles.models.pipeline import Concern, PlanOutput, ResearchFocus, ResearchOutput
from proofstone.common.models import Severity
from proofstone.common.text import counted
from proofstone.errors import InputError
from proofstone.gate.rules.answers import fitted, listed
from proofstone.pipeline.models.bundle import CommitMade
from proofstone.pipeline.models.run import ApprovalMetadata, ApprovalOption, ApprovalRequest, RunSetup
from proofstone.plans.fields import shortened

PUSHBACK: Final = "gate-pushback"
POST_RESEARCH: Final = "gate-post-research"
POST_PLANNING: Final = "gate-post-planning"

_MARKS: Final = ("🟢", "🟡", "🔴")

_PROCEED_ALL_THE_SAME: Final = ApprovalOption(
    id="proceed", label="Proceed as requested", description="The concerns are recorded, and the work goes on."
)
_MODIFY: Final = ApprovalOption(
    id="modify",
    label="Modify the request",
    description="The specification is written once more, with what you say to the concerns.",
)
_ABANDON: Final = ApprovalOption(
    id="abandon", label="Abandon the request", description="Stop here. All outputs so far are preserved."
)
_PROCEED: Final = ApprovalOption(
    id="proceed",
    label="Proceed to specification",
    description="Accept research findings and move to feature specification.",
)
_EXPAND: Final = ApprovalOption(
    id="expand",
    label="Expand research scope",
    description="Research may be incomplete. Re-run researchers with additional focus areas.",
)
_ABORT_RESEARCHED: Final = ApprovalOption(
    id="abort", label="Abort pipeline", description="Stop the pipeline. All research outputs are preserved."
)
_APPROVE: Final = ApprovalOption(
    id="approve",
    label="Approve and implement",
    description="Begin implementation with current task breakdown and risk classifications.",
)
_REVISE: Final = ApprovalOption(
    id="revise",
    label="Request planning revision",
    description="Send back to planner with specific feedback for re-decomposition.",
)
_ABORT_PLANNED: Final = ApprovalOption(
    id="abort", label="Abort pipeline", description="Stop the pipeline. All outputs up to planning are preserved."
)


def pushback(concerns: Sequence[Concern], *, number: int = 1) -> ApprovalRequest:
    """`number`: how often this gate has been reached."""
    grave = any(concern.severity is Severity.BLOCKER for concern in concerns)
    offered = (_PROCEED_ALL_THE_SAME, *([_MODIFY] if number == 1 else []), _ABANDON)
    return ApprovalRequest(
        gate_id=_numbered(PUSHBACK, number),
        pipeline_step="2",
        question="There are concerns about the request. How should we proceed?",
        context="\n".join(map(_told, concerns)),
        options=_with_default(offered, _ABANDON if grave else _PROCEED_ALL_THE_SAME),
        metadata=ApprovalMetadata(
            risk_summary=f"the gravest concern is {_gravest(concerns)}", findings_count=len(concerns)
        ),
    )


def post_research(
    research: Sequence[ResearchOutput], unheard: Sequence[ResearchFocus] = (), *, number: int = 1
) -> ApprovalRequest:
    heard = ", ".join(dict.fromkeys(item.focus.value for item in research))
    findings = "\n".join(f"{item.focus}: {shortened(item.summary, 300)}" for item in research)
    missing = f"\nNot heard: {', '.join(unheard)}." if unheard else ""
    offered = (_PROCEED, *([_EXPAND] if number == 1 else []), _ABORT_RESEARCHED)
    return ApprovalRequest(
        gate_id=_numbered(POST_RESEARCH, number),
        pipeline_step="1a",
        question="Research phase complete. How should we proceed?",
        context=f"{len(research)} reports on the codebase cover {heard}.{missing} Key findings:\n{findings}",
        options=_with_default(offered, _PROCEED),
        metadata=ApprovalMetadata(findings_count=sum(len(item.findings) for item in research)),
    )


def post_planning(plan: PlanOutput, *, findings: int = 0, number: int = 1) -> ApprovalRequest:
    """`findings`: what reviewers and the plan gate have left open so far."""
    waves = len(plan.waves)
    by_risk = Counter(file.risk for task in plan.tasks for file in task.files)
    highest = max((task.risk for task in plan.tasks), key=_MARKS.index)
    shares = ", ".join(f"{by_risk[mark]} {mark}" for mark in _MARKS)
    red = dict.fromkeys(file.path for task in plan.tasks for file in task.files if file.risk == "🔴")
    called_out = f" These files are 🔴: {', '.join(red)}." if red else ""
    offered = (_APPROVE, *([_REVISE] if number == 1 else []), _ABORT_PLANNED)
    return ApprovalRequest(
        gate_id=_numbered(POST_PLANNING, number),
        pipeline_step="4a",
        question="Task decomposition complete. Review and approve?",
        context=f"Planner produced {counted(len(plan.tasks), 'task')} in {counted(waves, 'wave')}. "
        f"Risk summary: {shares}. Estimated "
        f"verification: {'large' if highest == '🔴' else 'standard'}.{called_out}\n"
        + "\n".join(f"{at}. {task.risk} {task.title}" for at, task in enumerate(plan.tasks, start=1)),
        options=_with_default(offered, _APPROVE),
        metadata=ApprovalMetadata(risk_summary=highest, findings_count=findings),
    )


def answer(request: ApprovalRequest, option: str) -> ApprovalOption:
    """The option that is meant. One that is not offered is an error of whoever named it."""
    if (chosen := request.option(option)) is None:
        offered = ", ".join(item.id for item in request.options)
        raise InputError(f"{request.gate_id}: {option!r} is not offered", hint=f"choose one of: {offered}")
    return chosen


def _with_default(options: Sequence[ApprovalOption], default: ApprovalOption) -> tuple[ApprovalOption, ...]:
    return tuple(option.model_copy(update={"is_default": option is default}) for option in options)


def _numbered(gate: str, number: int) -> str:
    return gate if number == 1 else f"{gate}-{number}"


def _gravest(concerns: Sequence[Concern]) -> Severity:
    return min((concern.severity for concern in concerns), key=[*Severity].index)


def _told(concern: Concern) -> str:
    suggestion = f" Suggested: {concern.suggestion}" if concern.suggestion.strip() else ""
    return f"{concern.severity}: {concern.concern}{suggestion}"


def rollback(commits: Sequence[CommitMade]) -> str:
    """For commits in the order in which they were made. A range is named only where nobody else's commit lies in it;
    otherwise each is named, the last first. Empty, if there is none."""
    if not commits:
        return ""
    if len(commits) == 1:
        return f"git revert --no-edit {commits[0].commit}"
    if all(after.parent == before.commit for before, after in pairwise(commits)):
        return f"git revert --no-edit {commits[0].parent}..{commits[-1].commit}"
    return f"git revert --no-edit {' '.join(commit.commit for commit in reversed(commits))}"


_KIND = re.compile(r"^(fix|repair|mend|correct|resolve)\b", re.IGNORECASE)


def commit_message(setup: RunSetup, run_id: str, changed: Sequence[str]) -> str:
    words = " ".join(setup.request.split())
    kind = "docs" if setup.lane == "docs" else "fix" if _KIND.match(words) else "feat"
    subject, rest = fitted(f"{kind}: {words[:1].lower()}{words[1:]}")
    body = f"{words}\n\n" if rest else ""
    return f"{subject}\n\n{body}Files:\n{listed(changed)}\n\nProofstone-Run: {run_id}\n"

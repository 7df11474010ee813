"""The questions to the user with their options, the rollback command, and the commit message. Pure.

| gate                 | options                  | limit                              |
|----------------------|--------------------------|------------------------------------|
| `gate-request`       | proceed, modify, abandon | before any work, in every lane     |
| `gate-pushback`      | proceed, modify, abandon | modify once                        |
| `gate-post-research` | proceed, expand, abort   | expand once                        |
| `gate-post-planning` | approve, revise, abort   | revise once; 🔴 files are named     |
| `gate-revision`      | abort, proceed           | a person decides, in every mode    |

An option that has reached its limit is no longer offered. The first option is the default, except when a concern is a
blocker: then the default is to abandon.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from proofstone.agents.roles.models.pipeline import Concern, PlanOutput, ResearchFocus, ResearchOutput
from proofstone.check.rules.acceptance import format_acceptance_trailers
from proofstone.common.models import Acceptance, Severity
from proofstone.common.text import pluralize
from proofstone.errors import InputError
from proofstone.gate.rules.questions import fit_subject, format_paths
from proofstone.pipeline.models.bundle import BundleCommit
from proofstone.pipeline.models.run import ApprovalMetadata, ApprovalOption, ApprovalRequest, PipelineRunConfig
from proofstone.pipeline.rules.review_material import RISK_MARKS, find_highest_risk
from proofstone.plans.fields import shorten_text

REQUEST_GATE: Final = "gate-request"
PUSHBACK_GATE: Final = "gate-pushback"
POST_RESEARCH_GATE: Final = "gate-post-research"
POST_PLANNING_GATE: Final = "gate-post-planning"
REVISION_GATE: Final = "gate-revision"
OPTIONS_WITH_NOTE: Final = frozenset(("expand", "modify", "revise"))
"""Options that need a note: without it the agents would not know what to change."""

_PROCEED_ANYWAY: Final = ApprovalOption(
    id="proceed", label="Proceed as requested", description="The concerns are recorded, and the work continues."
)
_MODIFY: Final = ApprovalOption(
    id="modify",
    label="Modify the request",
    description="The specification is written again, with your answer to the concerns.",
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
_ABORT_AFTER_RESEARCH: Final = ApprovalOption(
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
_ABORT_AFTER_PLANNING: Final = ApprovalOption(
    id="abort", label="Abort pipeline", description="Stop the pipeline. All outputs up to planning are preserved."
)


_ABORT_REVISION: Final = ApprovalOption(
    id="abort", label="Abort pipeline", description="Stop the pipeline. All outputs so far are preserved."
)
_PROCEED_UNREVISED: Final = ApprovalOption(
    id="proceed", label="Go on as it is", description="It is recorded, and the confidence is medium at best."
)


def build_pushback_request(concerns: Sequence[Concern], *, number: int = 1) -> ApprovalRequest:
    """Ask about concerns. `number` says how often this gate has been reached."""
    is_blocked = any(concern.severity is Severity.BLOCKER for concern in concerns)
    options = (_PROCEED_ANYWAY, *([_MODIFY] if number == 1 else []), _ABANDON)
    return ApprovalRequest(
        gate_id=_gate_name(PUSHBACK_GATE, number),
        pipeline_step="2",
        question="There are concerns about the request. How should we proceed?",
        context="\n".join(map(_concern_line, concerns)),
        options=_with_default(options, _ABANDON if is_blocked else _PROCEED_ANYWAY),
        metadata=ApprovalMetadata(
            risk_summary=f"the most severe concern is {_most_severe(concerns)}", findings_count=len(concerns)
        ),
    )


def build_request_pushback(concerns: Sequence[Concern]) -> ApprovalRequest:
    """Ask about the engine's concerns about the request, before anybody works on it."""
    request = build_pushback_request(concerns)
    return request.model_copy(update={"gate_id": REQUEST_GATE, "pipeline_step": "0"})


def build_research_request(
    research: Sequence[ResearchOutput], unheard: Sequence[ResearchFocus] = (), *, number: int = 1
) -> ApprovalRequest:
    foci = ", ".join(dict.fromkeys(report.focus.value for report in research))
    findings = "\n".join(f"{report.focus}: {shorten_text(report.summary, 300)}" for report in research)
    missing = f"\nNo answer: {', '.join(unheard)}." if unheard else ""
    options = (_PROCEED, *([_EXPAND] if number == 1 else []), _ABORT_AFTER_RESEARCH)
    return ApprovalRequest(
        gate_id=_gate_name(POST_RESEARCH_GATE, number),
        pipeline_step="1a",
        question="Research phase complete. How should we proceed?",
        context=f"{len(research)} reports on the codebase cover {foci}.{missing} Key findings:\n{findings}",
        options=_with_default(options, _PROCEED),
        metadata=ApprovalMetadata(findings_count=sum(len(report.findings) for report in research)),
    )


def build_planning_request(plan: PlanOutput, *, findings: int = 0, number: int = 1) -> ApprovalRequest:
    """Ask for the approval of a plan. `findings` is the number of open findings of reviewers and the plan gate."""
    waves = len(plan.waves)
    by_risk = Counter(file.risk for task in plan.tasks for file in task.files)
    highest = find_highest_risk(plan)
    shares = ", ".join(f"{by_risk[mark]} {mark}" for mark in RISK_MARKS)
    red = dict.fromkeys(file.path for task in plan.tasks for file in task.files if file.risk == "🔴")
    red_note = f" These files are 🔴: {', '.join(red)}." if red else ""
    options = (_APPROVE, *([_REVISE] if number == 1 else []), _ABORT_AFTER_PLANNING)
    return ApprovalRequest(
        gate_id=_gate_name(POST_PLANNING_GATE, number),
        pipeline_step="4a",
        question="Task decomposition complete. Review and approve?",
        context=f"Planner produced {pluralize(len(plan.tasks), 'task')} in {pluralize(waves, 'wave')}. "
        f"Risk summary: {shares}. Estimated "
        f"verification: {'large' if highest == '🔴' else 'standard'}.{red_note}\n"
        + "\n".join(f"{position}. {task.risk} {task.title}" for position, task in enumerate(plan.tasks, start=1)),
        options=_with_default(options, _APPROVE),
        metadata=ApprovalMetadata(risk_summary=highest, findings_count=findings),
    )


def build_revision_request(agent: str, said: str, *, number: int = 1) -> ApprovalRequest:
    """Ask a person about an agent that still says that its own answer must be revised."""
    return ApprovalRequest(
        gate_id=_gate_name(REVISION_GATE, number),
        pipeline_step="2",
        question=f"The {agent} says that its own answer needs a revision. Should the run go on with it?",
        context=said,
        options=_with_default((_ABORT_REVISION, _PROCEED_UNREVISED), _ABORT_REVISION),
        metadata=ApprovalMetadata(findings_count=1),
    )


def validate_option(request: ApprovalRequest, option: str) -> ApprovalOption:
    """Return the chosen option; raise if it is not offered."""
    if (chosen := request.find_option(option)) is None:
        ids = ", ".join(candidate.id for candidate in request.options)
        raise InputError(f"{request.gate_id}: {option!r} is not offered", hint=f"choose one of: {ids}")
    return chosen


def _with_default(options: Sequence[ApprovalOption], default: ApprovalOption) -> tuple[ApprovalOption, ...]:
    return tuple(option.model_copy(update={"is_default": option is default}) for option in options)


def _gate_name(gate: str, number: int) -> str:
    return gate if number == 1 else f"{gate}-{number}"


def _most_severe(concerns: Sequence[Concern]) -> Severity:
    return min((concern.severity for concern in concerns), key=[*Severity].index)


def _concern_line(concern: Concern) -> str:
    suggestion = f" Suggested: {concern.suggestion}" if concern.suggestion.strip() else ""
    return f"{concern.severity}: {concern.concern}{suggestion}"


def rollback_command(commits: Sequence[BundleCommit]) -> str:
    """Return the command that reverts the commits, which are in the order in which they were made. A range is used only
    if it contains no other commits; otherwise each commit is named, the last first. Empty if there are none.
    """
    if not commits:
        return ""
    if len(commits) == 1:
        return f"git revert --no-edit {commits[0].commit}"
    if all(after.parent == before.commit for before, after in pairwise(commits)):
        return f"git revert --no-edit {commits[0].parent}..{commits[-1].commit}"
    return f"git revert --no-edit {' '.join(commit.commit for commit in reversed(commits))}"


_FIX_WORDS = re.compile(r"^(fix|repair|mend|correct|resolve)\b", re.IGNORECASE)


def build_commit_message(
    setup: PipelineRunConfig, run_id: str, changed: Sequence[str], accepted: Sequence[Acceptance] = ()
) -> str:
    """Build the message of the commit. Its trailers name what a person accepted."""
    words = " ".join(setup.request.split())
    kind = "docs" if setup.lane == "docs" else "fix" if _FIX_WORDS.match(words) else "feat"
    subject, rest = fit_subject(f"{kind}: {words[:1].lower()}{words[1:]}")
    body = f"{words}\n\n" if rest else ""
    trailers = f"Proofstone-Run: {run_id}\n{format_acceptance_trailers(accepted)}"
    return f"{subject}\n\n{body}Files:\n{format_paths(changed)}\n\n{trailers}"

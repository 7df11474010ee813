"""Where the person is asked, and with which options."""

from __future__ import annotations

import pytest

from proofstone.agents.roles.models.pipeline import ResearchFocus
from proofstone.common.models import Severity
from proofstone.errors import InputError
from proofstone.pipeline.models.run import ApprovalRequest
from proofstone.pipeline.rules.approvals import (
    build_planning_request,
    build_pushback_request,
    build_research_request,
    validate_option,
)
from proofstone.pipeline.rules.planning import raise_plan_risks
from tests.pipeline.talk import concern, plan, research, task
from tests.rows import each_row

RED = raise_plan_risks(plan(task("a", files=("shop/auth.py",)), task("b", after=("a",), risk="🟢")))


@each_row(
    ("request_", "gate", "step", "options", "default"),
    [
        (build_pushback_request((concern(),)), "gate-pushback", "2", ["proceed", "modify", "abandon"], "proceed"),
        (build_pushback_request((concern(),), number=2), "gate-pushback-2", "2", ["proceed", "abandon"], "proceed"),
        (
            build_pushback_request((concern(), concern(Severity.BLOCKER))),
            "gate-pushback",
            "2",
            ["proceed", "modify", "abandon"],
            "abandon",
        ),
        (build_research_request((research(),)), "gate-post-research", "1a", ["proceed", "expand", "abort"], "proceed"),
        (
            build_research_request((research(),), number=2),
            "gate-post-research-2",
            "1a",
            ["proceed", "abort"],
            "proceed",
        ),
        (build_planning_request(RED), "gate-post-planning", "4a", ["approve", "revise", "abort"], "approve"),
        (build_planning_request(RED, number=2), "gate-post-planning-2", "4a", ["approve", "abort"], "approve"),
    ],
)
def test_what_is_offered(request_: ApprovalRequest, gate: str, step: str, options: list[str], default: str) -> None:
    assert (request_.gate_id, request_.pipeline_step) == (gate, step)
    assert [one.id for one in request_.options] == options
    assert request_.default.id == default
    assert all(one.description for one in request_.options)


def test_concerns_are_told_with_what_is_suggested_and_the_gravest() -> None:
    request = build_pushback_request((concern(), concern(Severity.CRITICAL, "It is unlawful.")))
    assert request.context == (
        "major: It breaks old clients. Suggested: Keep the old route.\n"
        "critical: It is unlawful. Suggested: Keep the old route."
    )
    assert (request.metadata.risk_summary, request.metadata.findings_count) == (
        "the most severe concern is critical",
        2,
    )


def test_research_is_summed_up_with_whoever_is_missing() -> None:
    request = build_research_request((research(), research(ResearchFocus.PATTERNS)), (ResearchFocus.DEPENDENCIES,))
    assert "impact, patterns" in request.context
    assert "No answer: dependencies." in request.context
    assert "patterns: patterns is clear" in request.context
    assert request.metadata.findings_count == 2


@pytest.mark.seed("pipeline", "gate-planning")
def test_a_plan_is_summed_up_with_its_red_files_called_out() -> None:
    request = build_planning_request(RED, findings=3)
    assert request.context.startswith(
        "Planner produced 2 tasks in 2 waves. Risk summary: 2 🟢, 0 🟡, 1 🔴. Estimated verification: large. These "
        "files are 🔴: shop/auth.py.\n1. 🔴 Do a\n2. 🟢 Do b"
    )
    assert (request.metadata.risk_summary, request.metadata.findings_count) == ("🔴", 3)


def test_a_plan_without_red_is_standard() -> None:
    assert "Estimated verification: standard.\n" in build_planning_request(raise_plan_risks(plan())).context


def test_an_answer_is_one_of_the_options() -> None:
    request = build_research_request((research(),), number=2)
    assert validate_option(request, "abort").id == "abort"
    with pytest.raises(InputError) as caught:
        validate_option(request, "expand")
    assert (caught.value.message, caught.value.hint) == (
        "gate-post-research-2: 'expand' is not offered",
        "choose one of: proceed, abort",
    )

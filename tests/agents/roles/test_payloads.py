"""What the pipeline's roles may answer, and what is sent back to them with the reason."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import ValidationError

from proofstone.agents.roles.models.pipeline import (
    DesignOutput,
    KnowledgeOutput,
    PanelOutput,
    PlanOutput,
    ResearchOutput,
    SpecOutput,
)
from proofstone.common.models import FrozenModel, Severity
from tests.rows import each_row

Payload = dict[str, Any]
DONE = {"status": "DONE", "summary": "done"}


def research(**changes: object) -> Payload:
    found = {"id": "F1", "title": "t", "detail": "d", "evidence": ["a.py:1"], "relevance": "high"}
    body = {"focus": "impact", "findings": [found], "summary": "s", "source_files_examined": ["a.py"]}
    return {"completion": DONE, **body, **changes}


def spec(**changes: object) -> Payload:
    criterion = {"id": "AC1", "text": "it greets", "test_method": "run it"}
    body = {"requirements": [{"id": "R1", "text": "greets"}], "acceptance_criteria": [criterion]}
    return {"completion": DONE, **body, **changes}


def design(**changes: object) -> Payload:
    decision = {
        "id": "D1",
        "title": "t",
        "context": "c",
        "alternatives": [{"id": "a", "label": "A", "description": "x"}, {"id": "b", "label": "B", "description": "y"}],
        "selected": "a",
        "rationale": "r",
        "confidence": "High",
        "confidence_definition": "measured",
        "risk": "🟡",
        **changes,
    }
    return {"completion": DONE, "architecture": "two parts", "decisions": [decision]}


def task(id: str, **changes: object) -> Payload:
    body = {
        "title": "t",
        "description": "d",
        "size": "Standard",
        "risk": "🟡",
        "files": [{"path": "a.py", "risk": "🟡"}],
        "acceptance_criteria": ["AC1"],
        "verify": ["make test"],
        "done": ["it greets"],
    }
    return {"id": id, **body, **changes}


def plan(*tasks: Payload) -> Payload:
    return {"completion": DONE, "overall_risk_summary": "low", "tasks": list(tasks)}


def finding(severity: str = "major") -> Payload:
    words = {"title": "t", "description": "d", "recommendation": "r", "evidence": "e"}
    return {"severity": severity, "category": "security", "affected": ["a.py:3"], **words}


def review(verdict: str, *findings: Payload, **changes: object) -> Payload:
    body = {"review_focus": "security", "scope": "code", "confidence": "high", "summary": "s"}
    return {"completion": DONE, **body, "verdict": verdict, "findings": list(findings), **changes}


GOOD: dict[str, tuple[type[FrozenModel], Payload]] = {
    "research": (ResearchOutput, research()),
    "research with fields of its own": (ResearchOutput, research(mood="fine")),
    "spec": (SpecOutput, spec(pushback=[{"severity": "minor", "concern": "small"}])),
    "design": (DesignOutput, design()),
    "plan": (PlanOutput, plan(task("T1"), task("T2", depends_on=["T1"]))),
    "a plan with a risky task": (
        PlanOutput,
        plan(task("T1", size="Large", risk="🔴", files=[{"path": "auth.py", "risk": "🔴"}])),
    ),
    "approval": (PanelOutput, review("approve", finding("minor"))),
    "blocker": (PanelOutput, review("blocker", finding("Blocker"))),
    "nothing learnt": (KnowledgeOutput, {"completion": DONE}),
}


@each_row(("contract", "said"), GOOD.values())
def test_a_sound_answer_is_taken_and_survives_being_written_down(contract: type[FrozenModel], said: Payload) -> None:
    read = contract.model_validate(said)
    assert contract.model_validate(json.loads(read.model_dump_json())) == read


BAD: dict[str, tuple[type[FrozenModel], Payload, str]] = {
    "no completion": (ResearchOutput, {**research(), "completion": None}, "completion"),
    "a summary of more than a line": (
        ResearchOutput,
        research(completion={"status": "DONE", "summary": "x" * 201}),
        "at most 200",
    ),
    "a focus that there is not": (ResearchOutput, research(focus="mood"), "architecture"),
    "a finding without a place": (
        ResearchOutput,
        research(findings=[{**research()["findings"][0], "evidence": []}]),
        "at least 1 item",
    ),
    "an id twice": (ResearchOutput, research(findings=research()["findings"] * 2), "F1 is used more than once"),
    "no criterion": (SpecOutput, spec(acceptance_criteria=[]), "at least 1 item"),
    "a criterion that cannot be tested": (
        SpecOutput,
        spec(acceptance_criteria=[{"id": "AC1", "text": "x"}]),
        "test_method",
    ),
    "a criterion with a requirement's id": (
        SpecOutput,
        spec(requirements=[{"id": "AC1", "text": "x"}]),
        "AC1 is used more than once",
    ),
    "a decision without an alternative": (
        DesignOutput,
        design(alternatives=design()["decisions"][0]["alternatives"][:1]),
        "at least 2 items",
    ),
    "a selection of nothing": (DesignOutput, design(selected="c"), "c is not one of the alternatives: a, b"),
    "a risk in words": (DesignOutput, design(risk="high"), "'🟢', '🟡' or '🔴'"),
    "a dependency on nothing": (
        PlanOutput,
        plan(task("T1", depends_on=["T9"])),
        "T1 depends on T9, which is not a task",
    ),
    "a task that waits for itself": (PlanOutput, plan(task("T1", depends_on=["T1"])), "depend on each other"),
    "a circle": (
        PlanOutput,
        plan(task("T1", depends_on=["T2"]), task("T2", depends_on=["T1"])),
        "tasks depend on each other",
    ),
    "three dependencies": (PlanOutput, plan(task("T1", depends_on=["a", "b", "c"])), "at most 2 items"),
    "a task id twice": (PlanOutput, plan(task("T1"), task("T1")), "T1 is used more than once"),
    "a risk below its files'": (PlanOutput, plan(task("T1", risk="🟢")), "changes a file of risk 🟡"),
    "a risky task that is not Large": (PlanOutput, plan(task("T1", risk="🔴")), "a task of risk 🔴 is Large"),
    "a task that proves nothing": (PlanOutput, plan(task("T1", verify=[])), "at least 1 item"),
    "approval beside a blocker": (PanelOutput, review("approve", finding("blocker")), "the verdict must be blocker"),
    "a blocker without one": (PanelOutput, review("blocker", finding()), "no finding has that severity"),
    "a revision of nothing": (PanelOutput, review("needs_revision"), "no finding that says what to revise"),
    "a category that there is not": (
        PanelOutput,
        review("approve", {**finding(), "category": "style"}),
        "maintainability",
    ),
}


@each_row(("contract", "said", "why"), BAD.values())
def test_an_unsound_answer_is_refused_with_what_is_wrong(contract: type[FrozenModel], said: Payload, why: str) -> None:
    with pytest.raises(ValidationError) as caught:
        contract.model_validate(said)
    assert why in str(caught.value)


def test_findings_are_counted_whatever_the_reviewer_says() -> None:
    said = review("approve", finding("major"), finding("minor"), findings_count={"blocker": 7})
    read = PanelOutput.model_validate(said)
    assert read.findings_count == {
        Severity.BLOCKER: 0,
        Severity.CRITICAL: 0,
        Severity.MAJOR: 1,
        Severity.MINOR: 1,
    }
    assert json.loads(read.model_dump_json())["findings_count"]["major"] == 1


def test_fields_that_we_do_not_know_are_kept_with_an_answer() -> None:
    assert ResearchOutput.model_validate(research(mood="fine")).model_dump()["mood"] == "fine"

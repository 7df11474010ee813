"""Answers of agents as documents: typed YAML below the engine's header, and a page, under names of the engine's."""

from __future__ import annotations

import string
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from proofstone.agents.models import OutputHeader
from proofstone.agents.roles.models.pipeline import (
    AcceptanceCriterion,
    Alternative,
    Concern,
    DecisionLogEntry,
    DesignDecision,
    DesignOutput,
    KnowledgeOutput,
    Lesson,
    PlannedFile,
    PlannedTask,
    PlanOutput,
    Requirement,
    ResearchFinding,
    ResearchFocus,
    ResearchOutput,
    ReviewFocus,
    SpecOutput,
)
from proofstone.common.models import Confidence, FrozenModel, Severity
from proofstone.documents.yaml import dump_yaml
from proofstone.errors import InternalError
from proofstone.pipeline.models.run import ApprovalEntry, RunMode
from proofstone.pipeline.rules.documents import (
    append_decisions,
    build_approvals_document,
    build_documents,
    build_request_document,
    list_decisions,
)
from tests.pipeline.bundle.reading import HOSTILE, MORE_THAN_TEXT, Markdown
from tests.pipeline.bundle.story import DONE, found, panel
from tests.rows import each_row

HEADER = OutputHeader(
    agent="planner",
    instance="planner",
    step="plan/r1",
    started_at="2026-01-31T12:00:00.000+00:00",
    completed_at="2026-01-31T12:00:09.000+00:00",
    schema_version="1",
    payload={"this": "is not what is written"},
)
LINE = " ".join(HOSTILE.split())[:300]


def research(text: str, line: str) -> ResearchOutput:
    one = ResearchFinding(id=line[:60], title=line, category="x", detail=text, evidence=(line,), relevance="high")
    return ResearchOutput(
        completion=DONE,
        focus=ResearchFocus.IMPACT,
        findings=(one,),
        summary=text,
        source_files_examined=(line,),
    )


def spec(text: str, line: str) -> SpecOutput:
    return SpecOutput(
        completion=DONE,
        requirements=(Requirement(id=line[:60], text=text),),
        acceptance_criteria=(AcceptanceCriterion(id="AC-1", text=text, test_method=text),),
        edge_cases=(line,),
        constraints=(line,),
        pushback=(Concern(severity=Severity.MINOR, concern=text, suggestion=text),),
    )


def design(text: str, line: str) -> DesignOutput:
    ways = tuple(Alternative(id=id, label=line, description=text, pros=(line,), cons=(line,)) for id in ("a", "b"))
    decision = DesignDecision(
        id=line[:60],
        title=line,
        context=text,
        alternatives=ways,
        selected="b",
        rationale=text,
        confidence=Confidence.HIGH,
        confidence_definition=text,
        risk="🟡",
    )
    return DesignOutput(completion=DONE, architecture=text, decisions=(decision,))


def plan(text: str, line: str) -> PlanOutput:
    def task(id: str, *after: str) -> PlannedTask:
        return PlannedTask(
            id=id,
            title=line,
            description=text,
            size="Standard",
            risk="🟡",
            files=(PlannedFile(path=line, risk="🟡"),),
            depends_on=after,
            acceptance_criteria=(line,),
            relevant_context=(line,),
            verify=(line,),
            done=(line,),
        )

    return PlanOutput(
        completion=DONE,
        overall_risk_summary=text,
        tasks=(task("first\n: x"), task("second", "first\n: x"), task("third"), task("4", "second", "third")),
    )


def review(text: str, line: str) -> FrozenModel:
    return panel("code", ReviewFocus.SECURITY, 2, found(line), summary=text)


def knowledge(text: str, line: str) -> KnowledgeOutput:
    return KnowledgeOutput(
        completion=DONE,
        updates=(Lesson(kind="memory", content=text, reason=text, tags=(line,)),),
        decision_log_entries=(DecisionLogEntry(title=line, decision=text, rationale=text),),
        telemetry={f"{line}: x\n- y": [[line], {}]},
    )


ANSWERS = {
    "research": (research, {"research/impact.yaml", "research/impact.md"}),
    "spec": (spec, {"spec-output.yaml", "feature.md"}),
    "design": (design, {"design-output.yaml", "design.md"}),
    "plan": (plan, {"plan-output.yaml", "plan.md", *(f"tasks/task-0{number}.yaml" for number in (1, 2, 3, 4))}),
    "review": (review, {"review-verdicts/code-security-r2.yaml", "review-findings/code-security-r2.md"}),
    "knowledge": (knowledge, {"knowledge-output.yaml"}),
}


def read(text: str) -> dict[str, Any]:
    loaded: dict[str, Any] = YAML(typ="safe", pure=True).load(text)
    return loaded


@each_row("name", ANSWERS)
@pytest.mark.seed("pipeline", "file-layout")
def test_files_are_those_of_the_layout_whatever_the_agent_wrote(name: str) -> None:
    make, files = ANSWERS[name]
    assert set(build_documents(name, HEADER, make(HOSTILE, LINE))) == files


@each_row("name", ANSWERS)
@pytest.mark.seed("pipeline", "output-header")
def test_yaml_has_the_header_and_reads_back_as_the_answer(name: str) -> None:
    make, _ = ANSWERS[name]
    output = make(HOSTILE, LINE)
    documents = build_documents(name, HEADER, output)
    written = read(next(text for path, text in documents.items() if path.endswith(".yaml")))
    assert list(written) == list(OutputHeader.model_fields)
    assert written["step"] == "plan/r1"
    expected = output.model_dump(mode="json")
    if name == "plan":
        assert [task["description"] for task in written["payload"]["tasks"]] == [HOSTILE] * 4
    elif name == "design":
        decided = {"date": "2026-01-31", "decided_by": "planner"}
        assert written["payload"]["decisions"] == [{**one, **decided} for one in expected["decisions"]]
    else:
        assert written["payload"] == expected


@each_row("name", [name for name in ANSWERS if name != "knowledge"])
def test_the_page_has_the_same_headings_whatever_the_agent_wrote(name: str) -> None:
    make, _ = ANSWERS[name]
    plain, hostile = (
        Markdown(next(text for path, text in build_documents(name, HEADER, output).items() if path.endswith(".md")))
        for output in (make("words", "word"), make(HOSTILE, LINE))
    )
    assert len(hostile.headings) == len(plain.headings)
    assert not hostile.kinds & MORE_THAN_TEXT
    assert hostile.in_quotes <= {"paragraph_open", "inline", "paragraph_close"}


def test_a_plan_has_the_engines_ids_and_what_follows_from_them() -> None:
    documents = build_documents("plan", HEADER, plan("text", "line"))
    payload = read(documents["plan-output.yaml"])["payload"]
    assert [task["id"] for task in payload["tasks"]] == ["task-01", "task-02", "task-03", "task-04"]
    assert payload["waves"] == [["task-01", "task-03"], ["task-02"], ["task-04"]]
    assert payload["dependency_graph"]["task-04"] == ["task-02", "task-03"]
    task = read(documents["tasks/task-02.yaml"])["payload"]
    assert (task["id"], task["depends_on"]) == ("task-02", ["task-01"])


def test_an_answer_under_another_name_is_our_fault() -> None:
    with pytest.raises(InternalError, match="SpecOutput"):
        build_documents("design", HEADER, spec("text", "line"))
    with pytest.raises(InternalError, match="nothing"):
        build_documents("nothing", HEADER, spec("text", "line"))


def test_the_log_of_decisions_grows_and_never_changes() -> None:
    first = append_decisions("", list_decisions(HEADER, design(HOSTILE, LINE)))["decisions.yaml"]
    second = append_decisions(first, list_decisions(HEADER, knowledge("text", "line")))["decisions.yaml"]
    assert second.startswith(first)
    log = read(second)["decision_log"]
    assert [(one["title"], one["decided_by"], one["date"]) for one in log] == [
        (LINE, "planner", "2026-01-31"),
        ("line", "planner", "2026-01-31"),
    ]
    assert append_decisions(second, []) == {"decisions.yaml": second}
    assert append_decisions("", []) == {}


@pytest.mark.seed("pipeline", "approval-log")
def test_approvals_are_logged_with_the_seeds_fields() -> None:
    entry = ApprovalEntry(
        gate_id="gate-post-research",
        timestamp="2026-01-31T12:00:00Z",
        mode=RunMode.INTERACTIVE,
        selected_option="proceed",
        auto_selected=False,
        user_response_raw=HOSTILE,
    )
    (logged,) = read(build_approvals_document([entry])["approvals.yaml"])["approval_log"]
    assert logged == entry.model_dump(mode="json")
    assert read(build_approvals_document([])["approvals.yaml"]) == {"approval_log": []}


def test_the_request_is_quoted() -> None:
    seen = Markdown(build_request_document(HOSTILE)["initial-request.md"])
    assert seen.headings == ["Initial request"]
    assert not seen.kinds & MORE_THAN_TEXT


TEXTS = st.text(
    st.characters(exclude_categories=["Cs"]) | st.sampled_from(string.punctuation + "\n\t\r\x85\u2028\ufeff")
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(TEXTS, VALUES, max_size=4))
@example({"k" * 2000: {"k" * 2000: ["a\nb", [], {}, [["c"], None]]}})
@example({"large": 1e16, "small": 1e-7, "whole": 10**30, "lines": "a\n\n  b\n---\n"})
def test_any_value_reads_back_as_itself(values: dict[str, Any]) -> None:
    assert read(dump_yaml(values)) == values

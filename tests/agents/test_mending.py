"""What is mended in an answer of the wrong form, what is recorded about it, and what stays refused."""

from __future__ import annotations

import json
from collections.abc import Mapping
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofstone.agents.models import DispatchKey, RoleOutput
from proofstone.agents.roles.models.gate import ArchitectVerdict, ExecutorResult
from proofstone.agents.roles.models.pipeline import (
    DesignOutput,
    KnowledgeOutput,
    PanelOutput,
    PlanOutput,
    ResearchOutput,
    SpecOutput,
)
from proofstone.agents.roles.models.plan_gate import ChallengesOutput
from proofstone.agents.roles.models.solve import JudgementOutput, PerceiveOutput, SolvePlanOutput
from proofstone.agents.rules.answer import MalformedAnswer, MendedAnswer, read_answer
from proofstone.agents.rules.mended_answers import mend_answer
from proofstone.common.models import FrozenModel

Answer = dict[str, Any]
DONE = {"status": "DONE", "summary": "done"}


def task(**changes: object) -> Answer:
    body: Answer = {
        "id": "T1",
        "title": "Fix add",
        "description": "Return the sum.",
        "size": "Standard",
        "risk": "🟡",
        "files": [{"path": "shop.py", "risk": "🟡"}],
        "acceptance_criteria": ["AC1"],
        "verify": ["pytest"],
        "done": ["add returns the sum"],
    }
    return {name: value for name, value in {**body, **changes}.items() if value is not ...}


def plan(*tasks: Answer, **changes: object) -> Answer:
    return {"completion": DONE, "overall_risk_summary": "low", "tasks": [*tasks], **changes}


def finding(**changes: object) -> Answer:
    words = {"title": "t", "description": "d", "recommendation": "r", "evidence": "e", "affected": ["a.py:3"]}
    return {"severity": "major", "category": "security", **words, **changes}


def review(*findings: Answer, **changes: object) -> Answer:
    body = {
        "review_focus": "security",
        "scope": "code",
        "confidence": "high",
        "summary": "looked",
        "verdict": "approve",
    }
    return {"completion": DONE, **body, "findings": [*findings], **changes}


def without(answer: Answer, *names: str) -> Answer:
    return {name: value for name, value in answer.items() if name not in names}


PERCEIVED: Answer = {"intent": "make add right"}
RESEARCH: Answer = {
    "focus": "impact",
    "findings": [{"id": "F1", "title": "t", "detail": "d", "evidence": ["a.py:1"], "relevance": "high"}],
    "summary": "one caller",
    "source_files_examined": ["a.py"],
}
SPEC: Answer = {
    "completion": DONE,
    "requirements": [{"id": "R1", "text": "adds"}],
    "acceptance_criteria": [{"id": "AC1", "text": "adds", "test_method": "pytest"}],
}
SUBTASK: Answer = {"intent": "fix add", "success_criteria": ["add is right"], "sequence": 1}
DECISION: Answer = {
    "id": "D1",
    "title": "t",
    "context": "c",
    "alternatives": [
        {"id": "a", "label": "Keep it", "description": "x"},
        {"id": "b", "label": "Change it", "description": "y"},
    ],
    "selected": "Change it",
    "rationale": "r",
    "confidence": "high",
    "confidence_definition": "measured",
    "risk": "green",
}


MENDED: dict[str, tuple[type[RoleOutput] | type[FrozenModel], Answer, Mapping[str, object], str]] = {
    "a completion that is missing": (
        PerceiveOutput,
        PERCEIVED,
        {"completion.status": "DONE", "completion.summary": "make add right"},
        "completion: it was missing",
    ),
    "a completion that is null": (
        PerceiveOutput,
        {**PERCEIVED, "completion": None},
        {"completion.status": "DONE"},
        "missing",
    ),
    "a status beside the answer": (
        ResearchOutput,
        {**RESEARCH, "status": "needs revision"},
        {"completion.status": "NEEDS_REVISION", "completion.summary": "one caller"},
        "completion",
    ),
    "a completion that is its status": (
        ResearchOutput,
        {**RESEARCH, "completion": "done"},
        {"completion.status": "DONE"},
        "",
    ),
    "a summary of more than a line": (
        ResearchOutput,
        {**RESEARCH, "completion": {"status": "DONE", "summary": "x" * 300}},
        {"completion.summary": "x" * 199 + "…"},
        "cut to 200",
    ),
    "a review without a completion": (
        PanelOutput,
        without(
            review(finding(severity="minor"), finding(severity="Critical"), verdict="needs_revision"), "completion"
        ),
        {"completion.severity": "critical", "completion.findings_count": 2},
        "completion",
    ),
    "words in another case": (
        PanelOutput,
        review(review_focus="Security", verdict="Approve", confidence="High"),
        {"verdict": "approve", "review_focus": "security"},
        "'Approve' was read as approve",
    ),
    "words in another spelling": (
        ArchitectVerdict,
        {"verdict": "rejected", "recommendation": "manual review"},
        {"verdict": "REJECTED", "recommendation": "manual_review"},
        "'manual review' was read as manual_review",
    ),
    "a status in another case": (
        ExecutorResult,
        {"status": "Success", "evidence": "e"},
        {"status": "success"},
        "success",
    ),
    "one text instead of a list": (
        PlanOutput,
        plan(task(verify="pytest", done="it adds")),
        {"tasks.0.verify": ("pytest",), "tasks.0.done": ("it adds",)},
        "one value was read as a list",
    ),
    "an object instead of a list": (ChallengesOutput, {"completion": DONE, "challenges": {}}, {"challenges": ()}, ""),
    "numbers as ids": (
        PlanOutput,
        plan(task(id=1), task(id=2, depends_on=[1], files=[{"path": "b.py", "risk": "🟡"}])),
        {"tasks.1.depends_on": ("1",)},
        "",
    ),
    "ids that are missing": (
        PlanOutput,
        plan(task(id=...), task(id="T1"), task(id="")),
        {"tasks.0.id": "T2", "tasks.2.id": "T3"},
        "the engine set T2",
    ),
    "texts instead of requirements": (
        SpecOutput,
        {**SPEC, "requirements": ["it adds", "it subtracts"]},
        {"requirements.0.id": "R1", "requirements.1.text": "it subtracts"},
        "read as `text`",
    ),
    "requirements and criteria with the same ids": (
        SpecOutput,
        {
            **SPEC,
            "requirements": [{"id": 1, "text": "adds"}],
            "acceptance_criteria": [{"id": 1, "text": "adds", "test_method": "pytest"}],
        },
        {"requirements.0.id": "1", "acceptance_criteria.0.id": "AC1"},
        "the id 1 was used twice",
    ),
    "an id of findings twice": (
        ResearchOutput,
        {"completion": DONE, **RESEARCH, "findings": RESEARCH["findings"] * 2},
        {"findings.1.id": "F2"},
        "used twice",
    ),
    "null for what may be left out": (
        PerceiveOutput,
        {**PERCEIVED, "completion": DONE, "constraints": None, "question": None},
        {"question": ""},
        "null was read as left out",
    ),
    "an empty word for nothing": (
        JudgementOutput,
        {"completion": DONE, "verdicts": [{"number": 1, "verdict": "PASS", "failure_class": "none", "evidence": "e"}]},
        {"verdicts.0.failure_class": None, "verdicts.0.verdict": "pass"},
        "",
    ),
    "an answer inside a written call": (
        PlanOutput,
        {"name": "answer", "arguments": plan(task())},
        {"tasks.0.id": "T1"},
        "the answer was inside `arguments`",
    ),
    "a choice by its label, and a risk in words": (
        DesignOutput,
        {"completion": DONE, "architecture": "a", "decisions": [DECISION]},
        {"decisions.0.selected": "b", "decisions.0.risk": "🟢"},
        "'Change it' was read as b",
    ),
    "a task without its title": (
        PlanOutput,
        plan(task(title=...)),
        {"tasks.0.title": "Return the sum."},
        "`title` was missing",
    ),
    "a task without its description": (
        PlanOutput,
        plan(task(description=...)),
        {"tasks.0.description": "Fix add"},
        "`description` was missing",
    ),
    "a task without criteria of its own": (
        PlanOutput,
        plan(task(done=...)),
        {"tasks.0.done": ("Fix add",)},
        "must judge",
    ),
    "a task without size and risk": (
        PlanOutput,
        plan(task(size=..., risk=..., files=["src/auth/login.py", "tests/test_login.py"])),
        {"tasks.0.files.0.risk": "🔴", "tasks.0.files.1.risk": "🟢", "tasks.0.risk": "🔴", "tasks.0.size": "Large"},
        "the risk is that of its files, 🔴",
    ),
    "a risk that is lower than its files'": (
        PlanOutput,
        plan(task(risk="🟢")),
        {"tasks.0.risk": "🟡"},
        "🟡, and not 🟢",
    ),
    "a risky task that is called Standard": (
        PlanOutput,
        plan(task(risk="🔴")),
        {"tasks.0.size": "Large"},
        "the size follows from the risk",
    ),
    "a single task that waits for others": (
        PlanOutput,
        plan(task(depends_on=["setup", "T0"])),
        {"tasks.0.depends_on": ()},
        "`depends_on` setup, T0 was dropped",
    ),
    "a dependency in another case": (
        PlanOutput,
        plan(task(), task(id="T2", depends_on=["t1"], title=...)),
        {"tasks.1.depends_on": ("T1",)},
        "",
    ),
    "subtasks without an order": (
        SolvePlanOutput,
        {"completion": DONE, "task_criteria": ["c"], "subtasks": [without(SUBTASK, "sequence")] * 2},
        {"subtasks.1.sequence": 2},
        "the engine set 2",
    ),
    "a criterion whose check makes it verifiable": (
        SolvePlanOutput,
        {"completion": DONE, "task_criteria": [{"criterion": "c", "command": "pytest"}], "subtasks": [SUBTASK]},
        {"task_criteria.0.mode": "verifiable"},
        "its mode is verifiable",
    ),
}


def look_up(value: Any, place: str) -> object:  # noqa: ANN401  models and lists by turns
    for name in place.split("."):
        value = value[int(name)] if name.isdigit() else getattr(value, name)
    return value


@pytest.mark.parametrize(("contract", "said", "expected", "note"), MENDED.values(), ids=MENDED)
def test_a_wrong_form_is_mended_and_noted(
    contract: type[FrozenModel], said: Answer, expected: Mapping[str, object], note: str
) -> None:
    before = deepcopy(said)
    read = read_answer(json.dumps(said), contract)
    assert isinstance(read, MendedAnswer), read
    for place, value in expected.items():
        assert look_up(read.answer, place) == value, place
    assert note in "; ".join(read.notes)
    mend_answer(said, contract)
    assert said == before  # what the model said stays as it is


REFUSED: dict[str, tuple[type[FrozenModel], Answer, str]] = {
    "nothing but a missing completion": (KnowledgeOutput, {}, "completion"),
    "a completion that cannot be read": (KnowledgeOutput, {"updates": [], "completion": {"summary": "s"}}, "status"),
    "a completion in other words": (PerceiveOutput, {**PERCEIVED, "completion": "I could not"}, "completion"),
    "a verdict that is missing": (PanelOutput, without(review(), "verdict"), "verdict"),
    "an approval beside a blocker": (PanelOutput, review(finding(severity="blocker")), "must be blocker"),
    "a verdict of another kind": (ArchitectVerdict, {"verdict": "APPROVED_WITH_CONCERNS"}, "verdict"),
    "a status that is nearly one": (ExecutorResult, {"status": "succeeded"}, "status"),
    "success with an error": (ExecutorResult, {"status": "SUCCESS", "error": "no"}, "error must be null"),
    "a block that says nothing": (ExecutorResult, {"status": "Blocked"}, "must say what blocks it"),
    "a task without a command": (PlanOutput, plan(task(verify=...)), "verify"),
    "a task whose command is no text": (PlanOutput, plan(task(verify=[True])), "verify"),
    "a dependency on nothing": (PlanOutput, plan(task(), task(id="T2", depends_on=["T9"])), "the tasks are T1, T2"),
    "an id of tasks twice": (PlanOutput, plan(task(), task()), "T1 is used more than once"),
    "a criterion without its test": (SpecOutput, {**SPEC, "acceptance_criteria": ["it adds"]}, "acceptance_criteria"),
    "a choice of nothing": (
        DesignOutput,
        {"completion": DONE, "architecture": "a", "decisions": [{**DECISION, "selected": "c"}]},
        "c is not one of the alternatives",
    ),
    "a finding without evidence": (PanelOutput, review(without(finding(), "evidence")), "evidence"),
}


@pytest.mark.parametrize(("contract", "said", "why"), REFUSED.values(), ids=REFUSED)
def test_what_could_be_a_lie_or_hide_a_risk_stays_refused(contract: type[FrozenModel], said: Answer, why: str) -> None:
    read = read_answer(json.dumps(said), contract)
    assert isinstance(read, MalformedAnswer) and why in read.why


def test_a_sound_answer_is_left_alone() -> None:
    read = read_answer(json.dumps({**SPEC, "mood": "fine"}), SpecOutput)
    assert isinstance(read, MendedAnswer) and read.notes == ()


PLAN = json.dumps(without(plan(task()), "completion"))
TEXTS: dict[str, str] = {
    "a plan without completion, in prose": f"Here is my plan.\n```json\n{PLAN}\n```\nDone.",
    "after an object of a tool": f'{{"path": "shop.py"}}\n{PLAN}',
    "as YAML": "overall_risk_summary: low\ntasks:\n  - title: Fix add\n    files: [shop.py]\n    verify: pytest\n"
    "    acceptance_criteria: AC1\n",
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_an_answer_is_found_by_any_of_its_fields(text: str) -> None:
    read = read_answer(text, PlanOutput)
    assert isinstance(read, MendedAnswer), read
    assert read.answer.tasks[0].title == "Fix add" and "completion: it was missing; the engine filled it" in read.notes


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.sampled_from(["DONE", "🔴", "T1", "high"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["completion", "tasks", "id", "files", "risk", "verify", "answer", "status", "depends_on"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(said=st.dictionaries(st.sampled_from([*PlanOutput.model_fields, "arguments"]), JSON, max_size=5))
def test_whatever_is_said_gives_an_answer_or_a_reason(said: Answer) -> None:
    read = read_answer(said, PlanOutput)
    assert isinstance(read, MalformedAnswer) or read.answer.tasks


def test_the_key_of_a_dispatch_is_no_answer() -> None:
    assert isinstance(read_answer(DispatchKey(run_id="r", role="x").model_dump_json(), PlanOutput), MalformedAnswer)

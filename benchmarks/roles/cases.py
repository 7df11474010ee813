"""The cases of each role: what it is asked about a situation, an answer that is right, and how an answer is checked.

A check looks only at what can be true or false: a path that must be named, a verdict, a number. It says nothing about
style. In the even situations the right verdict is the other one, so that no constant answer is right everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks.roles.situations import SITUATIONS, Situation
from proofstone.agents.roles.registry import LOOP_ROLES, ROLES
from proofstone.agents.roles.role import Role
from proofstone.common.models import FrozenModel

Fields = dict[str, Any]
DONE: Final = {"status": "DONE", "summary": "done"}


@dataclass(frozen=True)
class RoleCases:
    """How the cases of one role are made from situations."""

    role: Role
    request: Callable[[Situation], Fields]
    right: Callable[[Situation], Fields]
    """A right answer, for the offline measurement and the tests of the checks."""
    check: Callable[[Any, Situation, Path], bool]
    """Whether the answer is right. The folder is the project after the work."""
    work: Callable[[Situation], Mapping[str, str]] = lambda _: {}
    """The files that a right answer has changed."""


@dataclass(frozen=True)
class Case:
    cases: RoleCases
    situation: Situation

    @property
    def name(self) -> str:
        return f"{self.cases.role.name}-{self.situation.number}"

    @property
    def request(self) -> FrozenModel:
        return self.cases.role.input.model_validate(self.cases.request(self.situation))


def _is_good(situation: Situation) -> bool:
    """Whether the work that is judged in this situation is right."""
    return situation.number % 2 == 1


def _names(text: object, *words: str) -> bool:
    return all(word.lower() in str(text).lower() for word in words)


def _fix_request(situation: Situation) -> Fields:
    return {"request": situation.request}


def _spec(situation: Situation) -> Fields:
    criterion = {"id": "AC1", "text": situation.expected, "test_method": situation.verify}
    requirement = {"id": "R1", "text": f"{situation.symbol} is right"}
    return {"completion": DONE, "requirements": [requirement], "acceptance_criteria": [criterion]}


def _design(situation: Situation) -> Fields:
    kinds = {"a": "in place", "b": "in a new function"}
    decision = {
        "id": "D1",
        "title": "where to fix it",
        "context": situation.request,
        "alternatives": [{"id": id, "label": label, "description": label} for id, label in kinds.items()],
        "selected": "a",
        "rationale": "the smallest change",
        "confidence": "high",
        "confidence_definition": "one line",
        "risk": "🔴" if situation.is_red else "🟡",
    }
    return {"completion": DONE, "architecture": f"{situation.path} changes in one line", "decisions": [decision]}


def _plan(situation: Situation) -> Fields:
    mark = "🔴" if situation.is_red else "🟡"
    task = {
        "id": "T1",
        "title": f"Fix {situation.symbol}",
        "description": situation.request,
        "size": "Large" if situation.is_red else "Standard",
        "risk": mark,
        "files": [{"path": situation.path, "risk": mark}],
        "acceptance_criteria": ["AC1"],
        "verify": [situation.verify],
        "done": [situation.expected],
    }
    return {"completion": DONE, "overall_risk_summary": "small", "tasks": [task]}


def _check_plan(answer: Any, situation: Situation, _: Path) -> bool:  # noqa: ANN401  each role has its own model
    paths = {file.path for task in answer.tasks for file in task.files}
    is_rated = not situation.is_red or any(task.risk == "🔴" for task in answer.tasks)
    return (
        situation.path in paths and is_rated and any("pytest" in line for task in answer.tasks for line in task.verify)
    )


def _finding(situation: Situation) -> Fields:
    return {
        "title": "It is not fixed",
        "severity": "critical",
        "category": "correctness",
        "description": f"{situation.expected} does not hold.",
        "affected": [f"{situation.path}:2"],
        "recommendation": f"write {situation.right}",
        "evidence": situation.wrong,
    }


def _review(situation: Situation) -> Fields:
    good = _is_good(situation)
    return {
        "completion": DONE,
        "review_focus": "correctness",
        "scope": "code",
        "verdict": "approve" if good else "needs_revision",
        "confidence": "high",
        "findings": [] if good else [_finding(situation)],
        "summary": "right" if good else "wrong",
    }


def _assignment(situation: Situation) -> Fields:
    prompt = (
        f"# Fix {situation.symbol}\n\n{situation.request}\n\nFiles you may change:\n- {situation.path}\n\n"
        f"Done when: {situation.expected}\nVerify with: {situation.verify}\n"
    )
    return {
        "run_id": "bench",
        "task_id": "task-01",
        "task_name": f"Fix {situation.symbol}",
        "plan": "bench",
        "files": [situation.path],
        "action": situation.request,
        "verify": [situation.verify],
        "done": [situation.expected],
        "attempt": 1,
        "max_attempts": 1,
        "base_commit": "",
        "deadline_seconds": None,
        "prompt": prompt,
    }


def _attempt(situation: Situation) -> Fields:
    return {
        "run_id": "bench",
        "task_id": "task-01",
        "task_name": f"Fix {situation.symbol}",
        "attempt": 1,
        "action": situation.request,
        "done": [situation.expected],
        "files": [situation.path],
        "claim": {"status": "success", "evidence": "fixed"},
        "diff": situation.diff(is_right=_is_good(situation)),
        "checks": [],
        "criteria": [situation.expected],
    }


def _gate_plan(situation: Situation) -> Fields:
    """A plan that changes what its caller relies on, and does not mention the caller."""
    text = (
        f"1  # Rename {situation.symbol}\n2  Rename {situation.symbol} to {situation.symbol}_new in {situation.path}.\n"
        f"3  No other file is changed. Verify: {situation.verify}\n"
    )
    return {"plan_path": "PLAN.md", "plan": text, "plan_quality": "THIN", "iteration": 1, "challenges": []}


def _challenge_request(situation: Situation) -> Fields:
    return {**_gate_plan(situation), "at_most": 3}


def _challenge(situation: Situation) -> Fields:
    draft = {
        "claim": f"The plan assumes that nobody else uses {situation.symbol} (line 3).",
        "concern": "main.py imports it.",
        "failure_scenario": "main.py raises ImportError.",
        "alternative": "change main.py as well",
        "severity": "BLOCKING",
        "confidence": "HIGH",
    }
    return {"completion": DONE, "challenges": [draft]}


def _check_challenge(answer: Any, _situation: Situation, _: Path) -> bool:  # noqa: ANN401
    return any(_names(challenge.model_dump_json(), "main.py") for challenge in answer.challenges)


def _ruling_request(situation: Situation) -> Fields:
    holds = not _is_good(situation)
    challenge = {
        "id": "C1",
        "origin": "challenger",
        "claim": "The plan assumes that nobody catches ValueError.",
        "concern": "main.py might catch it.",
        "failure_scenario": "An error is swallowed.",
        "alternative": "raise another error",
        "severity": "SIGNIFICANT",
        "confidence": "MED",
        "status": "OPEN",
        "iteration_introduced": 1,
    }
    unknown = {
        "id": "U1",
        "description": "Does main.py catch ValueError?",
        "type": "INTEGRATION_UNKNOWN",
        "affects_challenge": "C1",
        "suggested_query": "grep ValueError",
        "resolution": "CONFIRMED" if holds else "REFUTED",
        "finding": f"[VERIFIED: main.py | main.py {'catches it' if holds else 'has no try'} | it decides C1]",
    }
    return {**_gate_plan(situation), "challenges": [challenge], "findings": [unknown], "last": True}


def _ruling(situation: Situation) -> Fields:
    status, evidence = ("RESOLVED", ["U1"]) if _is_good(situation) else ("UNRESOLVED", [])
    return {"completion": DONE, "rulings": [{"challenge": "C1", "status": status, "evidence": evidence}]}


def _check_ruling(answer: Any, situation: Situation, _: Path) -> bool:  # noqa: ANN401
    settled = {"RESOLVED", "WITHDRAWN"}
    rulings = {ruling.challenge: ruling for ruling in answer.rulings}
    if "C1" not in rulings:
        return False
    ruling = rulings["C1"]
    if _is_good(situation):
        return ruling.status in settled and "U1" in ruling.evidence
    return ruling.status == "UNRESOLVED" or (ruling.status == "RESOLVED" and bool(ruling.mitigation))


def _output(situation: Situation) -> str:
    return f"{situation.path} is now:\n{situation.fixed if _is_good(situation) else situation.code}"


def _judgement_request(situation: Situation) -> Fields:
    subtask = {
        "subtask_id": "s1",
        "parent_task_id": "t",
        "intent": situation.request,
        "success_criteria": [situation.expected],
        "sequence": 1,
    }
    result = {"subtask_id": "s1", "status": "completed", "output": _output(situation), "tool_calls": ["edit"]}
    return {"subtask": subtask, "result": result, "criteria": [f"The code in the output makes {situation.expected}."]}


def _verdicts(situation: Situation) -> list[Fields]:
    verdict: Fields = {"number": 1, "verdict": "pass" if _is_good(situation) else "fail", "evidence": situation.path}
    return [verdict if _is_good(situation) else {**verdict, "failure_class": "logical"}]


def _check_verdict(answer: Any, situation: Situation, _: Path) -> bool:  # noqa: ANN401
    verdicts = {verdict.number: verdict.verdict for verdict in answer.verdicts}
    return bool(verdicts.get(1) == ("pass" if _is_good(situation) else "fail"))


def _merge_request(situation: Situation) -> Fields:
    task = {"task_id": "t", "intent": situation.request, "raw_input": situation.request}
    manifest = {
        "task_id": "t",
        "subtask_ids": ["s1"],
        "task_spec": task,
        "dispatched_at": "",
        "task_criteria": [situation.expected],
    }
    outcome = {"subtask_id": "s1", "parent_task_id": "t", "status": "matched", "output": _output(situation)}
    return {"manifest": manifest, "outcomes": [outcome], "criteria": [f"The code makes {situation.expected}."]}


def _merged(situation: Situation) -> Fields:
    good = _is_good(situation)
    return {
        "completion": DONE,
        "output": _output(situation),
        "summary": "merged",
        "verdicts": _verdicts(situation),
        "meets_the_request": "yes" if good else "no",
        "why": situation.request,
    }


def _research(situation: Situation) -> Fields:
    finding = {
        "id": "F1",
        "title": "one caller",
        "detail": f"main.py uses {situation.symbol}",
        "evidence": ["main.py:1", f"{situation.path}:2"],
        "relevance": "high",
    }
    body = {"focus": "impact", "findings": [finding], "summary": "one caller"}
    return {"completion": DONE, **body, "source_files_examined": [situation.path, "main.py"]}


def _knowledge_request(situation: Situation) -> Fields:
    event = f"the verify command `{situation.verify}` failed twice: it must be run with PYTHONPATH=. set"
    return {"request": situation.request, "outcome": "committed", "events": [event]}


def _knowledge(_: Situation) -> Fields:
    lesson = {"kind": "memory", "content": "Set PYTHONPATH=. for the tests.", "reason": "It failed twice.", "tags": []}
    return {"completion": DONE, "updates": [lesson]}


def _perceived(situation: Situation) -> Fields:
    scope = "without touching the tests" if situation.leaves_tests else None
    return {"completion": DONE, "intent": situation.request, "constraints": {"scope": scope, "deadline": None}}


def _check_perceived(answer: Any, situation: Situation, _: Path) -> bool:  # noqa: ANN401
    keeps_limit = not situation.leaves_tests or "test" in f"{answer.intent}{answer.constraints.scope}".lower()
    return _names(answer.intent, situation.symbol) and not answer.question and keeps_limit


CASES: Final[tuple[RoleCases, ...]] = (
    RoleCases(
        ROLES["executor"],
        _assignment,
        lambda situation: {"status": "success", "files_modified": [situation.path], "evidence": "fixed"},
        lambda answer, situation, root: (
            answer.status == "success" and situation.is_fixed_in((root / situation.path).read_text(encoding="utf-8"))
        ),
        lambda situation: {situation.path: situation.fixed},
    ),
    RoleCases(
        ROLES["architect"],
        _attempt,
        lambda situation: {"verdict": "APPROVED" if _is_good(situation) else "REJECTED", "findings": ["seen"]},
        lambda answer, situation, _: (answer.verdict == "APPROVED") == _is_good(situation),
    ),
    RoleCases(
        ROLES["researcher"],
        lambda situation: {"request": situation.request, "focus": "impact"},
        _research,
        lambda answer, situation, _: any(
            "main.py" in str(finding.evidence) or situation.test_path in str(finding.evidence)
            for finding in answer.findings
        ),
    ),
    RoleCases(
        ROLES["specifier"],
        _fix_request,
        _spec,
        lambda answer, situation, _: any(
            situation.value in f"{criterion.text} {criterion.test_method}" for criterion in answer.acceptance_criteria
        ),
    ),
    RoleCases(
        ROLES["designer"],
        lambda situation: {"request": situation.request, "spec": _spec(situation)},
        _design,
        lambda answer, situation, _: situation.path in answer.model_dump_json(),
    ),
    RoleCases(
        ROLES["planner"],
        lambda situation: {"request": situation.request, "spec": _spec(situation)},
        _plan,
        _check_plan,
    ),
    RoleCases(
        ROLES["reviewer"],
        lambda situation: {
            "request": situation.request,
            "scope": "code",
            "focus": "correctness",
            "criteria": [situation.expected],
            "subject": situation.diff(is_right=_is_good(situation)),
        },
        _review,
        lambda answer, situation, _: (answer.verdict == "approve") == _is_good(situation),
    ),
    RoleCases(
        ROLES["knowledge"],
        _knowledge_request,
        _knowledge,
        lambda answer, _situation, _: any(_names(update.content, "PYTHONPATH") for update in answer.updates),
    ),
    RoleCases(ROLES["challenger"], _challenge_request, _challenge, _check_challenge),
    RoleCases(ROLES["domain_expert"], _challenge_request, _challenge, _check_challenge),
    RoleCases(ROLES["devils_advocate"], _challenge_request, _challenge, _check_challenge),
    RoleCases(ROLES["synthesizer"], _ruling_request, _ruling, _check_ruling),
    RoleCases(LOOP_ROLES["perceive"], lambda situation: {"raw_input": situation.request}, _perceived, _check_perceived),
    RoleCases(
        LOOP_ROLES["judge"],
        _judgement_request,
        lambda situation: {"completion": DONE, "verdicts": _verdicts(situation)},
        _check_verdict,
    ),
    RoleCases(
        LOOP_ROLES["merge"],
        _merge_request,
        _merged,
        lambda answer, situation, _: (answer.meets_the_request == "yes") == _is_good(situation),
    ),
)


def list_cases(roles: tuple[str, ...] = (), count: int = len(SITUATIONS)) -> list[Case]:
    """Return the cases of these roles, or of all, in the first `count` situations."""
    return [
        Case(cases, situation)
        for cases in CASES
        if not roles or cases.role.name in roles
        for situation in SITUATIONS[:count]
    ]

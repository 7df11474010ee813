"""A stage for the whole pipeline: a small shop, agents who say what is written for them, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from proofstone.pipeline.models.run import RunReport
from tests.plan_gate.stage import QUIET
from tests.staging import DONE, FILES, CommandResult, Entry, Staged, set_up_repository

REQUEST = "Let customers see how many things are in their cart"
CRITERIA = [
    {"id": "AC-1", "text": "count() gives the number of prices", "test_method": "a unit test"},
    {"id": "AC-2", "text": "an empty cart counts 0", "test_method": "a unit test"},
]


# What agents say.


def researcher(focus: str, **match: object) -> Entry:
    found = {"id": "F1", "title": "the cart", "detail": "It sums.", "evidence": ["shop/cart.py:1"], "relevance": "high"}
    output = {**DONE, "focus": focus, "findings": [found], "summary": "small", "source_files_examined": []}
    return {"role": "researcher", "match": {"focus": focus, **match}, "output": output}


def specifier(*concerns: Mapping[str, Any], **match: object) -> Entry:
    output = {
        **DONE,
        "requirements": [{"id": "R-1", "text": "There is a function that counts."}],
        "acceptance_criteria": CRITERIA,
        "pushback": list(concerns),
    }
    return {"role": "specifier", "match": match, "output": output}


def designer(**match: object) -> Entry:
    ways = [
        {"id": "A", "label": "a new module", "description": "shop/count.py"},
        {"id": "B", "label": "in the cart", "description": "shop/cart.py"},
    ]
    decision = {
        "id": "D-1",
        "title": "Where it lives",
        "context": "Something must count.",
        "alternatives": ways,
        "selected": "A",
        "rationale": "Nothing that is there changes.",
        "confidence": "high",
        "confidence_definition": "It is a small project.",
        "risk": "🟢",
    }
    return {
        "role": "designer",
        "match": match,
        "output": {**DONE, "architecture": "One module.", "decisions": [decision]},
    }


def task(name: str = "count", **more: object) -> dict[str, Any]:
    files = [{"path": f"shop/{name}.py", "risk": "🟢"}, {"path": f"tests/test_{name}.py", "risk": "🟢"}]
    return {
        "id": name,
        "title": f"A function {name}",
        "description": f"Write {name} in shop/{name}.py, and a test of it.",
        "size": "Standard",
        "risk": "🟢",
        "files": files,
        "acceptance_criteria": ["AC-1", "AC-2"],
        "relevant_context": ["R-1", "D-1"],
        "verify": [f"python3 -m unittest tests.test_{name}"],
        "done": [f"tests/test_{name}.py passes"],
        **more,
    }


def planner(*tasks: Mapping[str, Any], **match: object) -> Entry:
    output = {**DONE, "overall_risk_summary": "Little can go wrong.", "tasks": list(tasks or (task(),))}
    return {"role": "planner", "match": match, "output": output}


def module(name: str = "count", body: str = "return len(prices)") -> str:
    return f"def {name}(prices):\n    {body}\n"


def test_of(name: str = "count") -> str:
    return (
        f"import unittest\n\nfrom shop.{name} import {name}\n\n\nclass It(unittest.TestCase):\n"
        f"    def test_some(self):\n        self.assertEqual({name}([1, 2]), 2)\n\n"
        f"    def test_none(self):\n        self.assertEqual({name}([]), 0)\n"
    )


def executor(name: str = "count", body: str = "return len(prices)", **match: object) -> Entry:
    steps = [
        {"tool": {"write": {"path": f"shop/{name}.py", "content": module(name, body)}}},
        {"tool": {"write": {"path": f"tests/test_{name}.py", "content": test_of(name)}}},
    ]
    return {
        "role": "executor",
        "match": match,
        "steps": steps,
        "output": claim(f"shop/{name}.py", f"tests/test_{name}.py"),
    }


def claim(*files: str) -> dict[str, Any]:
    return {"status": "success", "task_name": "it", "files_modified": list(files), "done_criteria_met": True}


def architect(**match: object) -> Entry:
    output = {"verdict": "APPROVED", "recommendation": "commit", "feedback": "as asked for"}
    return {"role": "architect", "match": match, "output": output}


def finding(title: str, severity: str = "major", category: str = "correctness") -> dict[str, Any]:
    return {
        "title": title,
        "severity": severity,
        "category": category,
        "description": "It goes wrong.",
        "affected": ["shop/count.py:1"],
        "recommendation": "Put it right.",
        "evidence": "the line itself",
    }


def reviewer(focus: str, scope: str, *findings: Mapping[str, Any], verdict: str = "approve", **match: object) -> Entry:
    output = {
        **DONE,
        "review_focus": focus,
        "scope": scope,
        "verdict": verdict,
        "confidence": "high",
        "findings": list(findings),
        "summary": f"{focus} of the {scope}",
    }
    return {
        "role": "reviewer",
        "match": {"focus": focus, "step": f"{scope}-review/*", **match},
        "output": output,
    }


def knowledge(*lessons: str) -> Entry:
    updates = [{"kind": "memory", "content": one, "reason": "This run shows it."} for one in lessons]
    return {"role": "knowledge", "match": {}, "output": {**DONE, "updates": updates, "decision_log_entries": []}}


RESEARCH = ("architecture", "impact", "dependencies", "patterns")
FOCI = ("security", "architecture", "correctness")
TEAM: Sequence[Entry] = (
    *(researcher(focus) for focus in RESEARCH),
    specifier(),
    designer(),
    *(reviewer(focus, scope) for scope in ("design", "code") for focus in FOCI),
    planner(),
    executor(),
    architect(),
    knowledge(),
    *QUIET,
)
"""Whoever does what is expected."""


# What came of it.


@dataclass(frozen=True)
class PipelineResult(CommandResult):
    """What one `proofstone run --json` gave."""

    @cached_property
    def report(self) -> RunReport:
        return RunReport.model_validate_json(self.document)

    @property
    def outcome(self) -> str:
        return self.report.outcome.value


@dataclass(frozen=True)
class Stage(Staged):
    @classmethod
    def set_up(cls, folder: Path, files: Mapping[str, str | bytes] = FILES, settings: str = "") -> Stage:
        return cls(*set_up_repository(folder, files, settings))

    def run(
        self, *entries: Entry, request: str = REQUEST, args: Sequence[str] = (), env: Mapping[str, str] | None = None
    ) -> PipelineResult:
        return self._run("run", request, "--backend", self.cast([*entries, *TEAM]), *args, env=env)

    def resume(self, run: str, *args: str, env: Mapping[str, str] | None = None) -> PipelineResult:
        return self._run("resume", run, *args, env=env)

    def _run(self, *args: str, env: Mapping[str, str] | None = None) -> PipelineResult:
        return PipelineResult.of(self.proofstone(*args, "--json", "--quiet", env=env))

    def git(self, *args: str) -> str:
        return self.workshop.git(self.root, *args)

    def all_dispatches(self, report: RunReport) -> list[str]:
        """Of the run and of its parts."""
        parts = [*(one.run_id for one in report.plan_gates), *(one.run_id for one in report.gates)]
        return [id for run_id in (report.run_id, *parts) for id in self.dispatches(run_id)]

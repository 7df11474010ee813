"""A stage for the plan gate: a small project, a plan, agents who say what is written for them, and what came of it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from proofstone.agents.models import ToolResult
from proofstone.plan_gate.models import PlanReport
from proofstone.plan_gate.rules.report import render_report
from tests.staging import DONE, FILES, CommandResult, Entry, Staged, plan, set_up_repository, task

PLAN = plan(task("One"), task("Two"), task("Three"))
"""Code has nothing against it, and a small team is enough for it."""
LARGE = PLAN.replace(
    "# More of a shop",
    "# More of a shop\n\nPayments by Stripe, kept in PostgreSQL: a migration of the database, an API, and an audit.",
)
"""So complex that the whole team is asked."""
_SCORES = [{"dimension": "approach", "score": 8, "evidence": "small steps"}]
_MASKED = (
    (re.compile(r"\b\d{8}T\d{6}Z-[0-9a-f]{6}\b"), "RUN"),
    (re.compile(r"\b[0-9a-f]{64}\b"), "DIGEST"),
    (re.compile(r"\b[0-9a-f]{40}\b"), "COMMIT"),
)


# What agents say.


def challenge(claim: str, severity: str = "SIGNIFICANT", confidence: str = "HIGH", **more: object) -> dict[str, Any]:
    return {
        "claim": claim,
        "concern": f"It is not so: {claim}",
        "failure_scenario": "The totals are wrong and nobody sees it.",
        "alternative": "Look first.",
        "severity": severity,
        "confidence": confidence,
        **more,
    }


def challenger(*challenges: Mapping[str, Any], role: str = "challenger", **match: object) -> Entry:
    """Also a domain expert and a devil's advocate; `match` says when: `iteration=2`."""
    return {"role": role, "match": match, "output": {**DONE, "challenges": list(challenges)}}


def unknown(about: str, *claims: Mapping[str, Any], resolution: str = "REFUTED") -> dict[str, Any]:
    """What RESOLVE found against a challenge; it rests on these claims."""
    return {
        "description": f"whether what {about} fears happens",
        "type": "API_BEHAVIOR",
        "affects_challenge": about,
        "suggested_query": "total",
        "resolution": resolution,
        "source": "shop/cart.py",
        "finding": "total sums whatever it is given",
        "impact": f"{about} falls",
        "evidence": list(claims),
    }


def symbol(name: str, path: str = "shop/cart.py") -> dict[str, Any]:
    return {"kind": "symbol", "name": name, "path": path}


def file(path: str) -> dict[str, Any]:
    return {"kind": "file", "path": path}


def surfaced(location: str, impact: str = "confirms_approach", **more: object) -> dict[str, Any]:
    return {"source": "codebase", "location": location, "relevance": "It sums prices.", "impact": impact, **more}


def risk(text: str, severity: str = "SIGNIFICANT", **more: object) -> dict[str, Any]:
    said = {"risk": text, "trigger": "a large cart", "cascade": "the page is slow", "probability": "LOW"}
    return {**said, "severity": severity, **more}


def researcher(mode: str, *found: Mapping[str, Any], steps: Sequence[Mapping[str, Any]] = (), **match: object) -> Entry:
    listed = {"resolve": "unknowns", "surface": "surfaced", "probe": "risks"}[mode]
    output = {**DONE, listed: list(found)}
    return {"role": "researcher", "match": {"focus": mode, **match}, "steps": list(steps), "output": output}


def ruling(id: str, status: str = "RESOLVED", **more: object) -> dict[str, Any]:
    return {"challenge": id, "status": status, "resolution": f"{id} was weighed", **more}


def synthesizer(*rulings: Mapping[str, Any], said: Mapping[str, Any] | None = None, **match: object) -> Entry:
    output = {**DONE, "rulings": list(rulings), "scores": _SCORES, **(said or {})}
    return {"role": "synthesizer", "match": match, "output": output}


def audit(**more: object) -> Entry:
    output = {**DONE, "summary": "It was settled rightly.", **more}
    return {"role": "challenger", "match": {"focus": "audit"}, "output": output}


QUIET: Sequence[Entry] = (
    audit(),
    challenger(),
    challenger(role="domain_expert"),
    challenger(role="devils_advocate"),
    *(researcher(mode) for mode in ("resolve", "surface", "probe")),
    synthesizer(),
)
"""Whoever has nothing to say. The closing audit comes before what the challenger says otherwise."""


def script(*entries: Entry) -> list[Entry]:
    """These, the closing audit before the challenges, and whoever is left has nothing to say."""
    closing_words = [one for one in entries if one["match"].get("focus") == "audit"] or [QUIET[0]]
    return [*closing_words, *(one for one in entries if one not in closing_words), *QUIET[1:]]


# What came of it.


@dataclass(frozen=True)
class PlanGateResult(CommandResult):
    """What one `proofstone verify-plan --json` gave."""

    folder: Path
    """Its path is masked."""

    @cached_property
    def report(self) -> PlanReport:
        return PlanReport.model_validate_json(self.document)

    @property
    def run_id(self) -> str:
        return self.report.run_id

    @property
    def statuses(self) -> dict[str, str]:
        return {one.id: one.status.value for one in self.report.challenges}

    def events(self, kind: str) -> list[str]:
        return [one.text for one in self.report.events if one.kind == kind]

    @property
    def convergence(self) -> list[str]:
        """How each iteration ended."""
        return [state.convergence.status.value for state in self.report.iterations]

    @property
    def masked(self) -> str:
        """The whole page, without what differs from run to run."""
        return masked(render_report(self.report), self.folder)

    @property
    def masked_document(self) -> str:
        timeless = self.report.model_copy(update={"spent": self.report.spent.model_copy(update={"seconds": 0.0})})
        document = timeless.model_dump(mode="json")
        return masked(json.dumps(document, indent=2, ensure_ascii=False) + "\n", self.folder)


def masked(text: str, folder: Path) -> str:
    text = text.replace(f"{folder}/", "")
    for pattern, word in _MASKED:
        text = pattern.sub(word, text)
    return text


@dataclass(frozen=True)
class Stage(Staged):
    @classmethod
    def set_up(cls, folder: Path, files: Mapping[str, str | bytes] = FILES, settings: str = "") -> Stage:
        return cls(*set_up_repository(folder, files, settings, PLAN=PLAN, LARGE=LARGE))

    def write(self, name: str, text: str) -> None:
        (self.root / name).write_text(text, encoding="utf-8")

    def verify(
        self,
        entries: Sequence[Entry],
        *args: str,
        plan: str = "PLAN.md",
        env: Mapping[str, str] | None = None,
    ) -> PlanGateResult:
        return self._verify(plan, "--backend", self.cast(entries), *args, env=env)

    def by_rules(self, plan: str, *args: str) -> PlanGateResult:
        return self._verify(plan, *args)

    def resume(self, run: str, *args: str, env: Mapping[str, str] | None = None) -> PlanGateResult:
        return self._verify("--resume", run, *args, env=env)

    def _verify(self, *args: str, env: Mapping[str, str] | None = None) -> PlanGateResult:
        done = self.proofstone("verify-plan", *args, "--json", "--quiet", env=env)
        return PlanGateResult(done.returncode, done.stdout, done.stderr, self.workshop.folder)

    def results(self, run_id: str, mode: str, iteration: int = 1) -> list[ToolResult]:
        """What a researcher was answered by its tools: it stands in the conversation that the agent sees."""
        for recorded in self.dispatches(run_id).values():
            occasion = recorded.occasion
            if occasion is not None and (occasion.focus, occasion.iteration) == (mode, iteration):
                return recorded.results
        raise AssertionError(f"nobody was asked to {mode} in iteration {iteration}")

    def asked(self, run_id: str) -> list[tuple[str, int]]:
        """Who was asked in which iteration, those who were asked at the same time by name."""
        seen = [one.occasion for one in self.dispatches(run_id).values() if one.occasion]
        return sorted((one.agent, one.iteration or 0) for one in seen)

"""Examine a plan by code against the base of its repository, and decide whether agents need to be asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from proofstone.agents.roles.models.plan_gate_records import ChallengeOrigin
from proofstone.check.context import RunContext
from proofstone.git.objects import list_tree
from proofstone.plan_gate.agents import Discussion, number_lines
from proofstone.plan_gate.rules.board import NewChallenge
from proofstone.plan_gate.rules.decision import PlanTeam, choose_team
from proofstone.plan_gate.rules.effects import PlanSubject
from proofstone.plan_gate.rules.outline import PlanOutline, outline_plan
from proofstone.plan_gate.rules.plan_rules import (
    RuleFinding,
    find_rule_findings,
    is_trivial_plan,
    rate_complexity,
    rate_quality,
)
from proofstone.plan_gate.rules.report import PlanRunInfo


@dataclass(frozen=True)
class PlanExamination:
    """What code found out about a plan."""

    outline: PlanOutline
    about: PlanRunInfo
    team: PlanTeam
    findings: tuple[RuleFinding, ...]

    @property
    def skip_reason(self) -> str:
        """Why no agent need be asked; "" if agents should be asked."""
        if any(finding.is_final for finding in self.findings):
            return "the plan cannot be run as it is, so no agent is asked yet: fix that first"
        return "the plan is trivial, so no agent is asked" if self.about.is_trivial else ""

    def subject(self, *, asked: bool, answers: Mapping[str, str], notes: Sequence[str]) -> PlanSubject:
        """Return the plan as the subject of the loop."""
        rules = tuple(
            NewChallenge(
                finding.draft, ChallengeOrigin.RULES, line=finding.line, is_final=finding.is_final, rule=finding.rule
            )
            for finding in self.findings
        )
        return PlanSubject(
            plan_path=self.about.plan_path,
            quality=self.about.quality,
            team=self.team.mode if asked else None,
            rules=rules,
            answers=answers,
            notes=(f"the {self.team.mode} team: {self.team.reason}", *notes) if asked else tuple(notes),
        )

    def discussion(self, run_id: str) -> Discussion:
        """Return what agents are shown."""
        return Discussion(run_id, self.about.plan_path, number_lines(self.outline.text), self.about.quality)


def examine_plan(world: RunContext, text: str, path: str, digest: str) -> PlanExamination:
    """Examine a plan against the base."""
    entries = list_tree(world.store.git(), world.base_tree)
    tree = frozenset(entry.path.decode("utf-8", "surrogateescape") for entry in entries)
    plan_outline = outline_plan(text, path, str(world.repository.root))
    plan_quality, why = rate_quality(plan_outline)
    points = rate_complexity(plan_outline)
    team = choose_team(plan_quality, points, len(plan_outline.markers))
    about = PlanRunInfo(
        run_id=world.run_id,
        plan_path=path,
        plan=_relative_path(path, world.repository.root),
        plan_digest=digest,
        base_commit=world.base_commit,
        title=plan_outline.title,
        quality=plan_quality,
        quality_reason=why,
        complexity=points,
        team_mode=team.mode,
        is_trivial=is_trivial_plan(plan_outline, tree),
        is_runnable=plan_outline.plan is not None,
        agents={},
    )
    return PlanExamination(plan_outline, about, team, find_rule_findings(plan_outline, tree))


def _relative_path(path: str, root: Path) -> str:
    """Return the path from the root of the repository if it is inside, for programs that annotate files."""
    return str(Path(path).relative_to(root)) if Path(path).is_relative_to(root) else path

"""Examine a plan by code against the base of its repository, and decide whether agents need to be asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from proofstone.agents.roles.models.plan_gate_records import Origin
from proofstone.check.context import World
from proofstone.git.objects import in_tree
from proofstone.plan_gate.agents import Discussion, numbered
from proofstone.plan_gate.rules.board import Entering
from proofstone.plan_gate.rules.decision import Team, team_for
from proofstone.plan_gate.rules.effects import Subject
from proofstone.plan_gate.rules.outline import Outline, outline
from proofstone.plan_gate.rules.plan_rules import RuleFinding, complexity, is_trivial, quality, rule_findings
from proofstone.plan_gate.rules.report import About


@dataclass(frozen=True)
class Examined:
    """What code found out about a plan."""

    outline: Outline
    about: About
    team: Team
    findings: tuple[RuleFinding, ...]

    @property
    def alone(self) -> str:
        """Why no agent need be asked; "" if agents should be asked."""
        if any(finding.final for finding in self.findings):
            return "the plan cannot be run as it is, so no agent is asked yet: fix that first"
        return "the plan is trivial, so no agent is asked" if self.about.trivial else ""

    def subject(self, *, asked: bool, answers: Mapping[str, str], notes: Sequence[str]) -> Subject:
        """Return the plan as the subject of the loop."""
        rules = tuple(
            Entering(finding.draft, Origin.RULES, line=finding.line, final=finding.final, rule=finding.rule)
            for finding in self.findings
        )
        return Subject(
            plan_path=self.about.plan_path,
            quality=self.about.quality,
            team=self.team.mode if asked else None,
            rules=rules,
            answers=answers,
            notes=(f"the {self.team.mode} team: {self.team.why}", *notes) if asked else tuple(notes),
        )

    def discussion(self, run_id: str) -> Discussion:
        """Return what agents are shown."""
        return Discussion(run_id, self.about.plan_path, numbered(self.outline.text), self.about.quality)


def examine(world: World, text: str, path: str, digest: str) -> Examined:
    """Examine a plan against the base."""
    entries = in_tree(world.store.git(), world.base_tree)
    tree = frozenset(entry.path.decode("utf-8", "surrogateescape") for entry in entries)
    plan_outline = outline(text, path, str(world.repository.root))
    plan_quality, why = quality(plan_outline)
    points = complexity(plan_outline)
    team = team_for(plan_quality, points, len(plan_outline.markers))
    about = About(
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
        trivial=is_trivial(plan_outline, tree),
        runnable=plan_outline.plan is not None,
        agents={},
    )
    return Examined(plan_outline, about, team, rule_findings(plan_outline, tree))


def _relative_path(path: str, root: Path) -> str:
    """Return the path from the root of the repository if it is inside, for programs that annotate files."""
    return str(Path(path).relative_to(root)) if Path(path).is_relative_to(root) else path

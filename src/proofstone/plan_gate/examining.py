"""A plan as code sees it, against the base of its repository: before anybody is asked, and whether anybody need be."""

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
    outline: Outline
    about: About
    team: Team
    findings: tuple[RuleFinding, ...]

    @property
    def alone(self) -> str:
        """Why nobody need be asked; empty if somebody should."""
        if any(finding.final for finding in self.findings):
            return "the plan cannot be run as it is, so nobody is asked yet: put that right first"
        return "the plan is trivial, so nobody need be asked" if self.about.trivial else ""

    def subject(self, *, asked: bool, answers: Mapping[str, str], notes: Sequence[str]) -> Subject:
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
        return Discussion(run_id, self.about.plan_path, numbered(self.outline.text), self.about.quality)


def examine(world: World, text: str, path: str, digest: str) -> Examined:
    held = in_tree(world.store.git(), world.base_tree)
    tree = frozenset(item.path.decode("utf-8", "surrogateescape") for item in held)
    found = outline(text, path, str(world.repository.root))
    quality_is, why = quality(found)
    points = complexity(found)
    team = team_for(quality_is, points, len(found.markers))
    about = About(
        run_id=world.run_id,
        plan_path=path,
        plan=_within(path, world.repository.root),
        plan_digest=digest,
        base_commit=world.base_commit,
        title=found.title,
        quality=quality_is,
        quality_reason=why,
        complexity=points,
        team_mode=team.mode,
        trivial=is_trivial(found, tree),
        runnable=found.plan is not None,
        agents={},
    )
    return Examined(found, about, team, rule_findings(found, tree))


def _within(path: str, root: Path) -> str:
    """From the root of the repository, where it lies in it: what a program that annotates files can use."""
    return str(Path(path).relative_to(root)) if Path(path).is_relative_to(root) else path

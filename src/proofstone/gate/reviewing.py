"""The architect beside the rules: a command, a script or a person looks at the candidate. What is written is thrown
away, and nothing but a verdict of the schema approves.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

from proofstone.agents.executors.context import Architect, Site
from proofstone.agents.executors.people import HumanArchitect
from proofstone.agents.gate_agents import AgentArchitect
from proofstone.agents.roles.models.gate import (
    ArchitectDecision,
    ArchitectVerdict,
    Failure,
    FailureType,
    NoVerdict,
    Reason,
    Recommendation,
    ReviewedCheck,
    ReviewRequest,
    Waiting,
)
from proofstone.agents.sandbox_shell import Sight, seen_at, shell_at
from proofstone.common.models import Verdict
from proofstone.common.secrets import is_secret
from proofstone.gate.context import GateWorld
from proofstone.gate.executing import LeftError
from proofstone.gate.models import Approved, Asked, AttemptFailed, Evidence, TaskRecord
from proofstone.gate.rules.passing import unmet_by_architects
from proofstone.git.checkout import shown_diff
from proofstone.machine.files import remove
from proofstone.plans.models import PlanTask

_MOST_DIFF = 200_000


@dataclass
class Reviewing:
    gate: GateWorld
    _numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    def review(
        self, task: PlanTask, record: TaskRecord, architect: Architect
    ) -> Approved | AttemptFailed | Asked | Waiting:
        """Its verdict as an event; or what a person is asked."""
        evidence = record.evidence
        if evidence is None:
            raise AssertionError(f"{record.id} has nothing to review")
        scratch = self.gate.world.scratch / f"review-{next(self._numbers)}"
        world = self.gate.at(evidence.base_commit, task.id, record.attempt, scratch)
        with world.artifacts.writer(world.settings.limits.output_mb << 20) as sink:
            shell = shell_at(world, self._sight(record, evidence), sink)
            site = Site(
                work_tree=shell.view.files,
                scratch=scratch,
                run=shell,
                heard=lambda: self.gate.journal.has_word(task.id),
                say=lambda line: self.gate.watching.said(task.id, line),
                hear=lambda text: self.gate.watching.output(task.id, text.encode("utf-8", "replace")),
                doing=lambda line: self.gate.watching.doing(task.id, line),
                seen_at=seen_at(shell),
                level=world.sandbox.level,
                secret=world.settings.tools.secret,
                cancel=world.cancel,
                mask=world.secrets,
            )
            with self.gate.at_the_terminal(isinstance(architect, HumanArchitect)):
                said = architect.review(self._request(task, record, evidence), site)
            world.ledger.append(sink.finish().row())
        remove(scratch)
        if isinstance(said, Waiting):
            return said
        if isinstance(said, NoVerdict):
            return _no_verdict(record, said, architect.spec)
        return decided(record, said)

    def _sight(self, record: TaskRecord, evidence: Evidence) -> Sight:
        return Sight(
            tree=evidence.tree,
            commit=evidence.base_commit,
            seconds=self.gate.architect_seconds(record),
            network=self.gate.gate.network,
            passed=self.gate.gate.pass_through,
            hide_secrets=isinstance(self.gate.architect, AgentArchitect),
        )

    def _request(self, task: PlanTask, record: TaskRecord, evidence: Evidence) -> ReviewRequest:
        verify = [
            ReviewedCheck(name=f"verify: {run.command}", verdict=run.verdict, reason=f"exit code {run.exit_code}")
            for run in evidence.verify
        ]
        passed = [ReviewedCheck(name=name, verdict=Verdict.PASS) for name in evidence.passing]
        return ReviewRequest(
            run_id=self.gate.world.run_id,
            task_id=task.id,
            task_name=task.name,
            attempt=record.attempt,
            round=record.moves + 1,
            base_commit=evidence.base_commit,
            action=task.action,
            done=task.done,
            files=task.files,
            claim=record.claim,
            diff=self._diff(evidence),
            checks=(*verify, *passed),
            findings=record.concerns,
            criteria=tuple(link.criterion for link in evidence.criteria if link.is_prose),
            deadline_seconds=self.gate.architect_seconds(record),
        )

    def _diff(self, evidence: Evidence) -> str:
        git, hidden = self.gate.world.store.git(), self._not_shown(evidence)
        return shown_diff(git, evidence.base_commit, evidence.tree, hidden, _MOST_DIFF)

    def _not_shown(self, evidence: Evidence) -> list[str]:
        """Changed files whose content no agent is shown."""
        if not isinstance(self.gate.architect, AgentArchitect):
            return []
        more = self.gate.world.settings.tools.secret
        return [path for path in evidence.changed if is_secret(path, more)]


def decided(record: TaskRecord, verdict: ArchitectVerdict) -> Approved | AttemptFailed | Asked:
    """What follows from a verdict beside those on record."""
    approves = verdict.verdict is ArchitectDecision.APPROVED
    hesitates = approves and verdict.recommendation is not Recommendation.COMMIT
    if hesitates or verdict.recommendation is Recommendation.MANUAL_REVIEW:
        return Asked(verdict=verdict)
    verdicts = (*record.verdicts, verdict)
    if approves:
        return Approved(verdicts=verdicts)
    reasons = unmet_by_architects(record.evidence, verdicts) if record.evidence else ()
    return rejected(record, reasons)


def asked_in_words(verdict: ArchitectVerdict) -> str:
    return f"{verdict.by} asks for a person: {verdict.feedback or '; '.join(verdict.concerns) or 'without a word'}"


def rejected(record: TaskRecord, reasons: tuple[Reason, ...]) -> AttemptFailed:
    error = reasons[0].detail.splitlines()[0] if reasons else "rejected"
    return _not_approved(record, FailureType.ARCHITECT_REJECTION, error, reasons)


def _no_verdict(record: TaskRecord, said: NoVerdict, spec: str) -> AttemptFailed:
    if said.cancelled:
        raise LeftError
    reason = Reason(check="architect", layer="gate", verdict=Verdict.UNVERIFIABLE, detail=f"{spec}: {said.why}")
    if not said.timed_out:
        return rejected(record, (reason,))
    return _not_approved(record, FailureType.TIMEOUT, reason.detail, (reason,))


def _not_approved(record: TaskRecord, type: FailureType, error: str, reasons: tuple[Reason, ...]) -> AttemptFailed:
    """What the checks have shown stays on record with it."""
    passed = record.evidence.passing if record.evidence else ()
    failure = Failure(attempt=record.attempt, type=type, error=error, reasons=reasons, passed=passed)
    return AttemptFailed(failure=failure, tree=record.tree, claim=record.claim)

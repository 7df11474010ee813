"""Create the supervisor of each executor attempt: what the agent is asked about, and how its task may be amended."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from proofstone.agents.backends import Backend
from proofstone.agents.executors.context import Site
from proofstone.agents.gate_agents import JudgeAt
from proofstone.agents.models import Dispatched, Occasion
from proofstone.agents.roles.models.gate import Assignment, JudgeRequest
from proofstone.agents.roles.models.plan_gate_records import PlanSeverity
from proofstone.agents.tools.tool_context import Ground
from proofstone.config.backends import works_alone
from proofstone.gate.context import Journal
from proofstone.git.objects import in_tree
from proofstone.git.program import Git
from proofstone.plan_gate.rules.outline import outline
from proofstone.plan_gate.rules.plan_rules import rule_findings
from proofstone.plans.models import Plan, PlanTask
from proofstone.supervision.attendant import Continuity
from proofstone.supervision.attended import Attended, Board, Judge, Subject
from proofstone.supervision.models.ladder import LaterTask
from proofstone.supervision.rules.amendments import Amendment, amended_text, why_not
from proofstone.supervision.rules.attendance import CALLED, PHASES
from proofstone.supervision.rules.monitor_state import Limits, Watched, tier_of

NOT_ASKED: Final = "understanding.not-applicable"
"""Type of the event that says why the agent is not asked."""
_ROLE: Final = "executor"


@dataclass(frozen=True)
class Attending:
    """Creates a supervisor for each attempt. Implements `agents.gate_agents.Attends`."""

    journal: Journal
    board: Board
    backend: Backend
    spec: str
    limits: Limits
    text: str
    """The document of the plan as it was when the run began."""
    original: Plan
    base_tree: str
    git: Git
    secret: tuple[str, ...] = ()
    knows: int = 1
    """The version of the context with which the plan was made."""
    judge: JudgeAt | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, assignment: Assignment, site: Site, occasion: Occasion) -> Continuity:
        plan = self.journal.plan
        task = plan.task(assignment.task_id)
        number = 1 + [item.id for item in plan.tasks].index(task.id)
        subject = Subject(
            watched=Watched(
                agent=f"{CALLED[_ROLE]}-{number}",
                role=_ROLE,
                phase=PHASES[_ROLE],
                own_tools=works_alone(self.spec),
            ),
            tier=tier_of(_ROLE),
            ground=Ground(files=site.work_tree, secret=self.secret, cancel=site.cancel, mask=site.mask),
            board=self.board,
            knows=self._known_version(task.id),
            judge=Judge(occasion, assignment.prompt, assignment.base_commit, self._make_judge(site)),
            answers=lambda question: self.backend.identity.answers(_ROLE, question),
            id=task.id,
            name=task.name,
            number=number,
            total=len(plan.tasks),
            files=assignment.files,
            verify=tuple(item.strip() for item in assignment.verify),
            criteria=assignment.done,
            upstream=tuple(plan.task(item).name for item in task.depends_on),
            later=tuple(_find_later_tasks(plan.tasks, task.id)),
            sight=site.sight,
            amend=self.amend,
        )
        return Continuity(Attended(subject, self.limits))

    def _known_version(self, task: str) -> int:
        """Return the context version that the task includes. Amendments accepted by an earlier attempt are part of
        it.
        """
        accepted, knows = (
            {amendment.number for amendment in self.journal.amendments if amendment.task == task},
            self.knows,
        )
        while knows in accepted:  # requirement N makes version N + 1
            knows += 1
        return knows

    def _make_judge(self, site: Site) -> Callable[[JudgeRequest, Occasion], Dispatched] | None:
        judge = self.judge
        return None if judge is None else lambda request, occasion: judge(request, occasion, site)

    def amend(self, amendment: Amendment) -> str:
        """Amend a task, unless another task owns the files or the plan gate's rules object. Return the reason if
        not.
        """
        with self._lock:
            known = {(known_amendment.task, known_amendment.number) for known_amendment in self.journal.amendments}
            if not amendment.files and (amendment.task, amendment.number) in known:
                return ""
            if why := why_not(self.journal.plan, amendment) or self._find_objection(amendment):
                return why
            self.journal.amend(amendment)
        return ""

    def _find_objection(self, amendment: Amendment) -> str:
        """Return what the rules of the plan gate find in the amended plan and did not find before."""
        known = self.journal.amendments
        before, after = (self._find_serious_concerns(amendments) for amendments in (known, (*known, amendment)))
        new = [concern for concern in after if concern not in before]
        return f"the plan gate objects: {'; '.join(new)}" if new else ""

    def _find_serious_concerns(self, amendments: Sequence[Amendment]) -> list[str]:
        text = amended_text(self.text, self.original, amendments)
        files = in_tree(self.git, self.base_tree)
        tree = frozenset(finding.path.decode("utf-8", "surrogateescape") for finding in files)
        findings = rule_findings(outline(text, self.original.path), tree)
        return [finding.draft.concern for finding in findings if finding.draft.severity is not PlanSeverity.MINOR]


def _find_later_tasks(tasks: Sequence[PlanTask], id: str) -> list[LaterTask]:
    return [LaterTask(id=task.id, title=task.name, files=task.files) for task in tasks if id in task.depends_on]

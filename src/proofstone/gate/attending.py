"""Who attends to the executors of a run of the gate: what each is asked about, and how its task may grow."""

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
"""Type of the event that says why nobody is asked."""
_ROLE: Final = "executor"


@dataclass(frozen=True)
class Attending:
    """Makes an attendant for each attempt. It is `agents.gate_agents.Attends`."""

    journal: Journal
    board: Board
    backend: Backend
    spec: str
    limits: Limits
    text: str
    """The plan's own document, as the run began with it."""
    original: Plan
    base_tree: str
    git: Git
    secret: tuple[str, ...] = ()
    knows: int = 1
    """The version of the context that the plan was made with."""
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
            knows=self._known_to(task.id),
            judge=Judge(occasion, assignment.prompt, assignment.base_commit, self._judge(site)),
            answers=lambda asked: self.backend.identity.answers(_ROLE, asked),
            id=task.id,
            name=task.name,
            number=number,
            total=len(plan.tasks),
            files=assignment.files,
            verify=tuple(item.strip() for item in assignment.verify),
            criteria=assignment.done,
            upstream=tuple(plan.task(item).name for item in task.depends_on),
            later=tuple(_later(plan.tasks, task.id)),
            sight=site.sight,
            amend=self.amend,
        )
        return Continuity(Attended(subject, self.limits))

    def _known_to(self, task: str) -> int:
        """What an earlier attempt has taken in is a part of the task: whoever comes next need not be told again."""
        taken, knows = {amendment.number for amendment in self.journal.amendments if amendment.task == task}, self.knows
        while knows in taken:  # requirement N makes version N + 1
            knows += 1
        return knows

    def _judge(self, site: Site) -> Callable[[JudgeRequest, Occasion], Dispatched] | None:
        judge = self.judge
        return None if judge is None else lambda request, occasion: judge(request, occasion, site)

    def amend(self, more: Amendment) -> str:
        """Add to a task, if nobody else owns it and the plan gate's rules have nothing grave against it. Why not, if
        not."""
        with self._lock:
            known = {(amendment.task, amendment.number) for amendment in self.journal.amendments}
            if not more.files and (more.task, more.number) in known:
                return ""
            if why := why_not(self.journal.plan, more) or self._objection(more):
                return why
            self.journal.amend(more)
        return ""

    def _objection(self, more: Amendment) -> str:
        """The plan gate once more, on the plan as it would be: what rules find that they did not find before."""
        known = self.journal.amendments
        before, after = (self._grave(amendments) for amendments in (known, (*known, more)))
        new = [what for what in after if what not in before]
        return f"the plan gate objects: {'; '.join(new)}" if new else ""

    def _grave(self, amendments: Sequence[Amendment]) -> list[str]:
        text = amended_text(self.text, self.original, amendments)
        held = in_tree(self.git, self.base_tree)
        tree = frozenset(item.path.decode("utf-8", "surrogateescape") for item in held)
        found = rule_findings(outline(text, self.original.path), tree)
        return [item.draft.concern for item in found if item.draft.severity is not PlanSeverity.MINOR]


def _later(tasks: Sequence[PlanTask], id: str) -> list[LaterTask]:
    return [LaterTask(id=task.id, title=task.name, files=task.files) for task in tasks if id in task.depends_on]

"""Create the supervisor of each executor attempt: what the agent is asked about, and how its task may be amended."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from proofstone.agents.backends import Backend
from proofstone.agents.executors.context import ExecutionContext
from proofstone.agents.gate_agents import AskJudge
from proofstone.agents.models import DispatchKey, DispatchResult
from proofstone.agents.roles.models.gate import Assignment, JudgeRequest
from proofstone.agents.roles.models.plan_gate_records import PlanSeverity
from proofstone.agents.tools.tool_context import ToolContext
from proofstone.config.backends import is_coding_agent
from proofstone.gate.context import GateJournal
from proofstone.git.objects import list_tree
from proofstone.git.program import Git
from proofstone.plan_gate.rules.outline import outline_plan
from proofstone.plan_gate.rules.plan_rules import find_rule_findings
from proofstone.plans.models import Plan, PlanTask
from proofstone.supervision.agent_supervision import AgentSupervision, ContextBoard, SupervisionTask, UnderstandingJudge
from proofstone.supervision.models.ladder import LaterTask
from proofstone.supervision.rules.amendments import (
    Amendment,
    amend_plan_text,
    explain_amendment_refusal,
    explain_sensitive_files,
)
from proofstone.supervision.rules.monitor_state import AgentProfile, SupervisionLimits, find_tier
from proofstone.supervision.rules.supervision_state import AGENT_NAME_BY_ROLE, PHASE_BY_ROLE
from proofstone.supervision.supervisor import AgentSupervisor

NOT_APPLICABLE_EVENT: Final = "understanding.not-applicable"
"""Type of the event that says why the agent is not asked."""
_ROLE: Final = "executor"


@dataclass(frozen=True)
class SupervisorFactory:
    """Creates a supervisor for each attempt. Implements `agents.gate_agents.Attends`."""

    journal: GateJournal
    board: ContextBoard
    backend: Backend
    spec: str
    limits: SupervisionLimits
    text: str
    """The document of the plan as it was when the run began."""
    original_plan: Plan
    base_tree: str
    git: Git
    secret_patterns: tuple[str, ...] = ()
    context_version: int = 1
    """The version of the context with which the plan was made."""
    judge: AskJudge | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, assignment: Assignment, site: ExecutionContext, occasion: DispatchKey) -> AgentSupervisor:
        plan = self.journal.plan
        task = plan.get_task(assignment.task_id)
        number = 1 + [item.id for item in plan.tasks].index(task.id)
        subject = SupervisionTask(
            profile=AgentProfile(
                agent=f"{AGENT_NAME_BY_ROLE[_ROLE]}-{number}",
                role=_ROLE,
                phase=PHASE_BY_ROLE[_ROLE],
                own_tools=is_coding_agent(self.spec),
            ),
            tier=find_tier(_ROLE),
            tool_context=ToolContext(
                files=site.work_tree, secret=self.secret_patterns, cancel=site.cancel, mask=site.mask
            ),
            board=self.board,
            known_version=self._known_version(task.id),
            judge=UnderstandingJudge(occasion, assignment.prompt, assignment.base_commit, self._make_judge(site)),
            can_answer=lambda question: self.backend.identity.can_answer(_ROLE, question),
            id=task.id,
            name=task.name,
            number=number,
            total=len(plan.tasks),
            files=assignment.files,
            verify=tuple(item.strip() for item in assignment.verify),
            criteria=assignment.done,
            upstream=tuple(plan.get_task(item).name for item in task.depends_on),
            upstream_ids=tuple(task.depends_on),
            later=tuple(_find_later_tasks(plan.tasks, task.id)),
            change_view=site.observer,
            amend=self.amend,
        )
        return AgentSupervisor(AgentSupervision(subject, self.limits))

    def _known_version(self, task: str) -> int:
        """Return the context version that the task includes. Amendments accepted by an earlier attempt are part of
        it.
        """
        accepted, knows = (
            {amendment.number for amendment in self.journal.amendments if amendment.task == task},
            self.context_version,
        )
        while knows in accepted:  # requirement N makes version N + 1
            knows += 1
        return knows

    def _make_judge(self, site: ExecutionContext) -> Callable[[JudgeRequest, DispatchKey], DispatchResult] | None:
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
            named = {path for requirement in self.board.read_requirements() for path in requirement.files}
            if why := (
                explain_amendment_refusal(self.journal.plan, amendment)
                or explain_sensitive_files(amendment.files, named)
                or self._find_objection(amendment)
            ):
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
        text = amend_plan_text(self.text, self.original_plan, amendments)
        files = list_tree(self.git, self.base_tree)
        tree = frozenset(finding.path.decode("utf-8", "surrogateescape") for finding in files)
        findings = find_rule_findings(outline_plan(text, self.original_plan.path), tree)
        return [finding.draft.concern for finding in findings if finding.draft.severity is not PlanSeverity.MINOR]


def _find_later_tasks(tasks: Sequence[PlanTask], id: str) -> list[LaterTask]:
    return [LaterTask(id=task.id, title=task.name, files=task.files) for task in tasks if id in task.depends_on]

"""One supervised agent: its task, its state, the judge of its understanding, and the context of its run.

Questions that code cannot judge go to the architect's model. Without such a model they stay unverifiable, and the
report says so. Requirements that a person adds are events of the whole run, in order; every part of the run reads them.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from proofstone.agents.backends import Backend
from proofstone.agents.executors.context import NoChanges, WorkTreeObserver
from proofstone.agents.models import DispatchKey, DispatchResult, EngineMessage, Fault, FaultKind
from proofstone.agents.roles.models.gate import JudgeItem, JudgeItemVerdict, JudgeRequest, UnderstandingVerdicts
from proofstone.agents.rules.conversation import Interjection
from proofstone.agents.tools.tool_context import ToolContext, ToolDeadline
from proofstone.agents.tools.tree import FileTree
from proofstone.common.globs import find_undeclared
from proofstone.common.models import Verdict
from proofstone.config.backends import is_coding_agent
from proofstone.ledger import Ledger
from proofstone.ledger.models import EventRow
from proofstone.supervision.interfaces import look_up_facts
from proofstone.supervision.models.context import (
    ContextItem,
    ContextReader,
    ContextRequirement,
    ContextSection,
    ContextVersion,
    truncate_line,
)
from proofstone.supervision.models.events import AgentEvent, AgentObservation, MonitorDecision, RespawnAgent
from proofstone.supervision.models.ladder import LaterTask
from proofstone.supervision.models.understanding import SupervisionTier
from proofstone.supervision.rules.amendments import Amendment
from proofstone.supervision.rules.context import amend_context
from proofstone.supervision.rules.evidence import LookupFacts, LookupRequest
from proofstone.supervision.rules.monitor import create_monitor, process_event
from proofstone.supervision.rules.monitor_state import AgentProfile, SupervisionLimits, explain_exemption
from proofstone.supervision.rules.position import apply_event, create_position_state
from proofstone.supervision.rules.questions import QuestionSubject
from proofstone.supervision.rules.supervision_state import REPLY_MODELS, RequestKind, SupervisionState

AskArchitect = Callable[[JudgeRequest, DispatchKey], DispatchResult]
"""Ask the architect."""
_RUN_FAULTS = (FaultKind.CANCELLED, FaultKind.BUDGET)
"""Faults of the whole run rather than of the judge."""


class RunStoppedError(Exception):
    """The run is being stopped: no judgement was made."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.why)
        self.fault = fault


@dataclass(frozen=True)
class UnderstandingJudge:
    """Judges the understanding of one agent."""

    occasion: DispatchKey
    """The dispatch key of the agent that is judged."""
    task: str
    base_commit: str
    ask: AskArchitect | None
    """None if no architect is configured."""
    why_not: str = "no model is configured to judge it"

    def judge_items(self, said: str, to_judge: Sequence[JudgeItem], number: int) -> Mapping[str, JudgeItemVerdict]:
        """Return the judgement of each item.

        `number` is the number of the question and stays the same after a crash. The digest in the step keeps an agent
        that started over, and may say something else, from receiving an earlier judgement.
        """
        if not to_judge:
            return {}
        if self.ask is None:
            return {question.item: _unverifiable(question.item, self.why_not) for question in to_judge}
        agent_key = self.occasion
        request = JudgeRequest(
            run_id=agent_key.run_id,
            agent=agent_key.agent,
            task=self.task,
            said=said,
            to_judge=tuple(to_judge),
            base_commit=self.base_commit,
        )
        occasion = DispatchKey(
            run_id=agent_key.run_id,
            role="architect",
            step=f"{agent_key.id}/understanding-{number}-{_digest(request)}",
            task=agent_key.task,
            task_name=agent_key.task_name,
            attempt=agent_key.attempt,
            focus="understanding",
        )
        return _read_judgements(self.ask(request, occasion), to_judge)


def _digest(request: JudgeRequest) -> str:
    text = "\0".join((request.said, *(question.item for question in request.to_judge)))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]


def _unverifiable(item: str, why: str) -> JudgeItemVerdict:
    return JudgeItemVerdict(item=item, verdict=Verdict.UNVERIFIABLE, detail=why)


def _read_judgements(dispatched: DispatchResult, to_judge: Sequence[JudgeItem]) -> Mapping[str, JudgeItemVerdict]:
    if dispatched.fault is not None and dispatched.fault.kind in _RUN_FAULTS:
        raise RunStoppedError(dispatched.fault)
    judgements = dispatched.output.items if isinstance(dispatched.output, UnderstandingVerdicts) else ()
    why = dispatched.fault.why if dispatched.fault else "the judge said nothing about it"
    unjudged = {question.item: _unverifiable(question.item, why) for question in to_judge}
    worst_by_item: dict[str, JudgeItemVerdict] = {}
    for judgement in judgements:
        if judgement.item in unjudged and (judgement.item not in worst_by_item or judgement.verdict is Verdict.FAIL):
            worst_by_item[judgement.item] = judgement
    return {**unjudged, **worst_by_item}


REQUIREMENT_ADDED: Final = "context.added"
_SCOPE: Final = "Scope"


def add_requirement(ledger: Ledger, run_id: str, text: str, files: Sequence[str], by: str) -> ContextRequirement:
    """Record a requirement so that the driver of the run picks it up."""
    ledger.append(
        EventRow(run_id=run_id, type=REQUIREMENT_ADDED, payload={"text": text, "files": list(files), "by": by}),
    )
    return read_requirements(ledger, run_id)[-1]


def read_requirements(ledger: Ledger, run_id: str) -> tuple[ContextRequirement, ...]:
    """Return the requirements that were added to the run so far."""
    rows = ledger.read(EventRow, run_id=run_id, type=REQUIREMENT_ADDED)
    return tuple(
        ContextRequirement.model_validate({"number": number, **stored.row.payload})
        for number, stored in enumerate(rows, 1)
    )


@dataclass(frozen=True)
class ContextBoard:
    """The context of a run. Version 1 is what the run started with."""

    ledger: Ledger
    run_id: str
    """The id of the whole run: parts share its board."""
    goal: str
    """The goal of the run in one sentence."""

    def read_requirements(self) -> tuple[ContextRequirement, ...]:
        return read_requirements(self.ledger, self.run_id)

    def build_versions(self) -> tuple[ContextVersion, ...]:
        request = ContextItem(key="request", text=truncate_line(self.goal))
        versions = [ContextVersion(number=1, sections=(ContextSection(name=_SCOPE, items=(request,)),))]
        for requirement in self.read_requirements():
            versions.append(
                amend_context(
                    versions[-1],
                    _SCOPE,
                    ContextItem(key=requirement.key, text=requirement.text, files=requirement.files),
                )
            )
        return tuple(versions)


_LOOKUP_SECONDS = 20.0
"""Time limit for looking up one analysis."""


def explain_not_supervised(role: str, backend: Backend) -> str:
    """Return why an agent is not supervised, or an empty string if it is.

    A program is started anew for each turn with the whole conversation, so it can always receive a message. A script is
    asked only what it has an answer to.
    """
    spec = backend.identity.spec
    kind = spec.partition(":")[0]
    if reason := explain_exemption(role, kind, takes_prompts=is_coding_agent(spec)):
        return reason
    if not any(backend.identity.can_answer(role, request) for request in RequestKind):
        return f"not applicable: {kind} has no answer to it"
    return ""


@dataclass(frozen=True)
class SupervisionTask:
    profile: AgentProfile
    tier: SupervisionTier
    tool_context: ToolContext
    """Where the agent's claims are looked up."""
    board: ContextBoard
    known_version: int
    """The version of the context that its task already includes."""
    judge: UnderstandingJudge
    can_answer: Callable[[str], bool]
    """Whether the agent can answer this kind of request."""
    id: str = ""
    """The id of its task."""
    name: str = ""
    number: int = 0
    total: int = 0
    files: tuple[str, ...] = ()
    verify: tuple[str, ...] = ()
    criteria: tuple[str, ...] = ()
    upstream: tuple[str, ...] = ()
    """What its task depends on."""
    upstream_ids: tuple[str, ...] = ()
    later: tuple[LaterTask, ...] = ()
    """Tasks that depend on this one."""
    change_view: WorkTreeObserver = field(default_factory=NoChanges)
    amend: Callable[[Amendment], str] = lambda _: "its task cannot be changed"
    """Extend the task. Returns why that is refused, or an empty string."""

    def look_up_facts(self, wanted: LookupRequest) -> LookupFacts:
        return look_up_facts(
            FileTree(self.tool_context), wanted, ToolDeadline(_LOOKUP_SECONDS, self.tool_context.cancel)
        )

    def path_exists(self, path: str) -> bool:
        """Return whether the path exists. True if that is unknown, because an existing file has the higher risk."""
        return self.look_up_facts(LookupRequest((path,), ())).paths.get(path) is not False


AgentDirective = Interjection | Fault | None


class AgentSupervision:
    """The state of one supervised agent. Thread-safe: one thread watches a turn, another responds at its end."""

    def __init__(
        self, subject: SupervisionTask, limits: SupervisionLimits, clock: Callable[[], float] = time.time
    ) -> None:
        """`clock` must outlive the process, so that limits hold across a crash."""
        self.subject, self.limits = subject, limits
        self._clock = clock
        self.lock = threading.RLock()
        now, watched = clock(), subject.profile
        self.state = SupervisionState(
            monitor=create_monitor(watched, now, limits),
            standing=create_position_state(watched, now),
            reader=ContextReader(
                agent=watched.agent, files=subject.files, criteria=subject.criteria, knows=subject.known_version
            ),
            declared=subject.files,
        )

    @property
    def phase(self) -> int:
        return self.subject.profile.phase

    def update_state(self, **changes: object) -> None:
        with self.lock:
            self.state = self.state.model_copy(update=changes)

    def process_events(self, *events: AgentEvent) -> tuple[MonitorDecision, ...]:
        """Process the events in order and return the decisions that follow."""
        all_decisions: list[MonitorDecision] = []
        with self.lock:
            for event in events:
                now = self._clock()
                monitor, decisions = process_event(self.state.monitor, event, now)
                observed = AgentObservation(agent=self.subject.profile.agent, at=now, event=event)
                self.update_state(monitor=monitor, standing=apply_event(self.state.standing, observed))
                all_decisions += decisions
        return tuple(all_decisions)

    def add_owned_files(self, files: tuple[str, ...]) -> None:
        """Add files to what the agent may change, so that they no longer count as a deviation."""
        with self.lock:
            state = self.state
            declared = tuple(dict.fromkeys((*state.declared, *files)))
            self.update_state(
                declared=declared,
                amended=tuple(dict.fromkeys((*state.amended, *files))),
                monitor=state.monitor.model_copy(update={"declared": declared}),
                standing=state.standing.model_copy(update={"declared": declared}),
            )

    def ask(self, wanted: RequestKind, text: str) -> Interjection:
        self.update_state(asked=wanted)
        return self.build_interjection(EngineMessage(text=text, asked=wanted))

    def resume(self, text: str) -> Interjection:
        self.update_state(asked=None)
        return self.build_interjection(EngineMessage(text=text, resumes=True))

    def build_interjection(self, told: EngineMessage) -> Interjection:
        """Build a message with the schema of its answer and the files that the agent may change: none until it has
        passed the understanding gate.
        """
        state = self.state
        schema = REPLY_MODELS[RequestKind(told.asked)].model_json_schema() if told.asked else None
        return Interjection(told, schema, () if state.gate is not None else state.declared)

    def request_judgements(self, said: str, *to_judge: JudgeItem) -> Sequence[JudgeItemVerdict]:
        """Return the judgement of each item, in order."""
        number = self.state.judged + 1
        self.update_state(judged=number)
        judgements = self.subject.judge.judge_items(said, to_judge, number)
        return [judgements[question.item] for question in to_judge]

    def add_caps(self, *reasons: str) -> None:
        """Record why the confidence is at most Medium."""
        self.update_state(caps=tuple(dict.fromkeys((*self.state.caps, *reasons))))

    def respawn(self, why: RespawnAgent) -> Fault:
        if why.finding is not None:
            self.update_state(findings=(*self.state.findings, why.finding))
        return Fault(kind=FaultKind.DRIFTED, why=why.why)


def describe_work(agent: AgentSupervision) -> QuestionSubject:
    """Describe the agent's work for the questions that are made from it."""
    state, subject = agent.state, agent.subject
    analysis = state.analysis
    return QuestionSubject(
        task=subject.name,
        declared=state.declared,
        changed=state.touched,
        interfaces=tuple(interface.symbol for interface in analysis.interfaces) if analysis else (),
        delta=state.delta,
        affected=tuple(path for path in state.affected if not find_undeclared((path,), state.declared)),
        later=subject.later,
    )

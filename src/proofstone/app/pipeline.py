"""Build the runs of `proofstone run`: a feature request, the agents that work on it, and its repository.

The plan gate and the task gate run as child runs, built in the same way as by their own commands.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from proofstone import __version__
from proofstone.agents.executors.people import ReadLine
from proofstone.agents.memory.rules.calibration import calibrate
from proofstone.agents.roles.models.pipeline import Concern
from proofstone.agents.roles.models.plan_gate_records import ChallengeStatus, PlanSeverity
from proofstone.agents.roles.registry import ROLES
from proofstone.agents.rules.budget import compute_remaining, explain_spent_limit
from proofstone.agents.spending import list_spending, read_dispatch_records
from proofstone.app.agent_assignment import determine_budget, read_monitor_limits
from proofstone.app.check_base import read_settings_at
from proofstone.app.context import (
    ensure_private_home,
    new_run_id,
    open_run_context,
    open_writable_ledger,
    require_outside_home,
)
from proofstone.app.gate import build_gate_run, resume_gate
from proofstone.app.plan_gate import PlanGateRequest, build_plan_gate_run, resume_plan_gate
from proofstone.app.runs import RunCatalog, reopen_run
from proofstone.app.team import (
    BUDGET_EVENT,
    Team,
    build_dispatcher,
    open_backends,
    open_memory,
    refuse_people_without_terminal,
    select_team,
    update_budget,
)
from proofstone.check.context import NullProgress, RunContext
from proofstone.common.globs import matches
from proofstone.common.models import SHORT_LANES, Budget, BudgetUsage, Lane, Severity
from proofstone.common.text import pluralize, slugify
from proofstone.config.user import load_user_config
from proofstone.errors import InputError, RepositoryError
from proofstone.gate.models import GateReport, RunOutcome
from proofstone.gate.preflight import can_sign
from proofstone.gate.request import GateRequest, ResumeRequest
from proofstone.git.commit import find_branch_tip, find_free_branch, read_identity, validate_branch_name
from proofstone.git.pending_commit import OWN_FOLDER_PATTERN, exclude_from_git, find_run_folder, signs_commits
from proofstone.git.repository import Repository, open_repository
from proofstone.git.stash import stash_changes
from proofstone.ledger import Ledger
from proofstone.ledger.models import EventRow
from proofstone.machine.locks import is_run_locked, lock_run
from proofstone.pipeline.agents import PipelineAgents
from proofstone.pipeline.journal import PipelineJournal, PipelineObserver
from proofstone.pipeline.models.run import (
    ApprovalRequest,
    ForbiddenByMemory,
    GateSummary,
    KnownIssue,
    PipelineRunConfig,
    PlanGateSummary,
    RunMode,
)
from proofstone.pipeline.records import read_run_report
from proofstone.pipeline.rules.effects import PendingAnswer
from proofstone.pipeline.rules.planning import choose_lane
from proofstone.pipeline.rules.request_concerns import find_request_concerns
from proofstone.pipeline.run import AskApproval, PipelineRun
from proofstone.pipeline.run_folder import RunFolder
from proofstone.pipeline.supervision_hooks import Amendments, PipelineMemory, PipelineSupervision
from proofstone.plan_gate.models import OpenQuestion, PlanReport
from proofstone.plan_gate.rules.admission import select_mitigations
from proofstone.plan_gate.run import AskPlanUser
from proofstone.runtime.context import Deadline, OutOfBudgetError, ParentRun
from proofstone.runtime.pause import pause_for_person
from proofstone.supervision.agent_supervision import ContextBoard, add_requirement
from proofstone.supervision.models.context import ContextRequirement

PIPELINE_AGENTS: Final = tuple(
    agent
    for role in ("researcher", "specifier", "designer", "reviewer", "planner", "executor", "architect", "knowledge")
    for agent in ROLES[role].agents
)
_PLAN_GATE_ROLES: Final = ("challenger", "domain_expert", "devils_advocate", "researcher", "synthesizer")
_SEVERITY: Final = {
    PlanSeverity.BLOCKING: Severity.BLOCKER,
    PlanSeverity.SIGNIFICANT: Severity.MAJOR,
    PlanSeverity.MINOR: Severity.MINOR,
}
_MAX_REQUEST: Final = 40_000
"""The most characters that a request may have."""
_MAX_AMENDMENT: Final = 4_000


@dataclass(frozen=True)
class PipelineRequest:
    """The options of `proofstone run`. The settings provide what is not given."""

    backends: Sequence[str] = ()
    """`ROLE=SPEC`, or `SPEC` for every role that has no choice of its own."""
    files: Sequence[str] = ()
    """The files that the change is about, as far as the person knows. They decide the lane."""
    lane: Lane | None = None
    branch: str | None = None
    mode: RunMode = RunMode.AUTONOMOUS
    proceed_on_pushback: bool = False
    allow_dirty: bool = False
    stash: bool = False
    """Put uncommitted changes into git's stash first."""
    minutes: float | None = None
    slots: int | None = None
    budget: tuple[str, ...] = ()
    sign: bool = True
    require_sandbox: bool = False
    by: str = "person"


@contextmanager
def build_pipeline_run(
    directory: Path,
    wanted: str,
    request: PipelineRequest,
    watching: PipelineObserver,
    ask: AskApproval,
    *,
    ask_plan: AskPlanUser | None = None,
    listen: ReadLine | None = None,
    home: Path | None = None,
) -> Iterator[PipelineRun]:
    """Build a `proofstone run`. Its first row is written; nothing else has happened."""
    _refuse_bad_request(wanted)
    repository = open_repository(directory)
    home = require_outside_home(repository, home)
    base = repository.resolve_base("HEAD")
    changed = () if request.allow_dirty else _list_changed_files(repository)
    if changed and not request.stash:
        _refuse_dirty(repository, changed)
    settings = read_settings_at(repository, base[0])
    run_id = new_run_id()
    with ExitStack() as stack:
        stack.enter_context(lock_run(home, run_id))
        world = stack.enter_context(
            open_run_context(
                repository,
                base,
                settings,
                NullProgress(),
                home=home,
                run_id=run_id,
                require_sandbox=request.require_sandbox,
            )
        )
        setup = _build_setup(world, wanted, request, listen)
        read_identity(repository)  # fails now if git knows no author
        exclude_from_git(repository, (OWN_FOLDER_PATTERN,))
        if changed:
            kept = stash_changes(repository, f"before proofstone run {run_id}")
            note = f"your changes to {pluralize(len(changed), 'file')} are in the stash: git stash apply {kept[:12]}"
            setup = setup.model_copy(update={"notes": (*setup.notes, note)})
        world.ledger.append(EventRow(run_id=run_id, type="run.started", payload=setup.model_dump(mode="json")))
        yield _build_run(world, setup, request, watching, ask, ask_plan, listen, stack)


@contextmanager
def resume_pipeline(
    run_id: str,
    request: PipelineRequest,
    watching: PipelineObserver,
    ask: AskApproval,
    *,
    ask_plan: AskPlanUser | None = None,
    listen: ReadLine | None = None,
    home: Path | None = None,
) -> Iterator[PipelineRun]:
    """Resume a run of the pipeline from its record."""
    home = ensure_private_home(home)
    setup = PIPELINE_RUNS.read_setup(run_id, home)
    with ExitStack() as stack:
        world = stack.enter_context(reopen_run(run_id, setup, home, require_sandbox=setup.require_sandbox))
        refuse_people_without_terminal(Team(setup.agents), listen, "resume it at a terminal")
        run = _build_run(world, setup, request, watching, ask, ask_plan, listen, stack, resumed=True)
        report = read_run_report(world.ledger, run_id)
        run.journal.record_event("run.resumed")
        if report is not None and report.awaits_fix > run.journal.count_fix_orders():
            run.journal.order_fix(request.by)
        yield run


PIPELINE_RUNS: Final = RunCatalog(
    PipelineRunConfig, read_run_report, lambda report: "waiting" if report.waiting else report.outcome
)
"""The runs of the whole pipeline."""


def record_approval(
    run_id: str, gate_id: str, option: str, said: str, by: str, home: Path | None = None
) -> ApprovalRequest:
    """Record what a person decided at an approval gate. The run applies it when it is resumed."""
    home = ensure_private_home(home)
    with open_writable_ledger(home) as ledger, lock_run(home, run_id):
        report = read_run_report(ledger, run_id)
        waiting = report.waiting if report else None
        if waiting is None or waiting.gate_id != gate_id:
            state = f"it waits at {waiting.gate_id}" if waiting else report.reason if report else ""
            state = state or "it is not waiting for you"
            raise InputError(f"{run_id}: nothing waits at {gate_id}; {state}", hint=f"see `proofstone status {run_id}`")
        if waiting.find_option(option) is None:
            options = ", ".join(choice.id for choice in waiting.options)
            raise InputError(f"{gate_id}: {option!r} is no option", hint=f"there are {options}")
        journal = PipelineJournal.load(ledger, run_id)
        journal.record_decision(waiting, option, said, by, PIPELINE_RUNS.read_setup(run_id, home).mode, auto=False)
        return waiting


def record_amendment(
    run_id: str, text: str, files: Sequence[str], by: str, home: Path | None = None
) -> ContextRequirement:
    """Record an addition to a run of `proofstone run` or `proofstone gate`. The agent at work receives it at its next
    turn; otherwise it is planned."""
    if not text.strip():
        raise InputError("the addition is empty", hint='say what else you want: proofstone amend last "limit the rate"')
    if len(text) > _MAX_AMENDMENT:
        raise InputError(
            f"the addition has {len(text):,} characters; {_MAX_AMENDMENT:,} at most", hint="say it in a paragraph"
        )
    with open_writable_ledger(ensure_private_home(home)) as ledger:
        _refuse_ended(ledger, run_id)
        return add_requirement(ledger, run_id, " ".join(text.split()), [path.removeprefix("./") for path in files], by)


def _refuse_ended(ledger: Ledger, run_id: str) -> None:
    """Refuse an addition to a run that has ended: nobody would receive it."""
    events = [stored.row for stored in ledger.read(EventRow, run_id=run_id) if stored.row.type.startswith("run.")]
    last = [row for row in events if row.type in ("run.started", "run.resumed", "run.interrupted", "run.finished")][-1]
    outcome = str(last.payload.get("outcome", "")) if last.type == "run.finished" else ""
    if outcome in (RunOutcome.PASSED, RunOutcome.FAILED, RunOutcome.HALTED):
        raise InputError(
            f"{run_id} has ended ({outcome}): nothing can be added to it", hint='start a new one: proofstone run "…"'
        )


def _refuse_bad_request(wanted: str) -> None:
    """Refuse an empty or overlong request."""
    if not wanted.strip():
        raise InputError("the request is empty", hint='say what you want: proofstone run "greet people by their name"')
    if len(wanted) > _MAX_REQUEST:
        message = f"the request has {len(wanted):,} characters; {_MAX_REQUEST:,} at most"
        raise InputError(message, hint="put the rest into a file of the repository, and name it")


def _list_changed_files(repository: Repository) -> tuple[str, ...]:
    """Return the tracked files with changes that are not committed."""
    listed = repository.git.run_records("diff", "--name-only", "-z", "HEAD")
    return tuple(path.decode("utf-8", "backslashreplace") for path in listed)


def _refuse_dirty(repository: Repository, changed: Sequence[str]) -> None:
    """Refuse uncommitted changes: work starts from the last commit, so they would be missing without notice."""
    more = f" and {len(changed) - 1} more files have" if len(changed) > 1 else " has"
    raise RepositoryError(
        f"{repository.root}: {changed[0]}{more} changes that are not committed",
        hint="commit them: work starts from the last commit; --stash puts them into git's stash, --allow-dirty starts "
        "without them",
    )


def _build_setup(
    world: RunContext, wanted: str, request: PipelineRequest, listen: ReadLine | None
) -> PipelineRunConfig:
    repository, gate = world.repository, world.settings.gate
    lane, why = choose_lane(request.files) if request.lane is None else (request.lane, "the person says so")
    if request.lane is None and not request.files and (profiled := load_user_config().profile.lane):
        lane, why = profiled, "no files are named, and the profile begins with the short way"
    # All of them in every lane: a change may leave a short lane, and then needs every agent.
    team = select_team(world, request.backends, (*PIPELINE_AGENTS, *_PLAN_GATE_ROLES), "")
    if team is None:
        raise InputError(
            "no agent is configured to do the work",
            hint="--backend SPEC sets one for all roles, or set [backends]; see `proofstone backends`",
        )
    refuse_people_without_terminal(team, listen, "choose another backend")
    short = slugify(wanted)
    branch = request.branch
    if branch is None:
        branch = find_free_branch(
            repository, f"proofstone/{short}", world.base_commit, promised=_reserved_branches(world.home)
        )
    else:
        validate_branch_name(repository, branch)
        _refuse_other_tip(repository, branch, world.base_commit)
    return PipelineRunConfig(
        version=__version__,
        repository=str(repository.root),
        request=wanted,
        slug=short,
        base_commit=world.base_commit,
        branch=branch,
        lane=lane,
        lane_reason=why,
        mode=request.mode,
        proceed_on_pushback=request.proceed_on_pushback,
        concerns=_find_concerns(world, wanted, request, lane),
        agents=dict(team.agents),
        minutes=request.minutes or gate.run_minutes,
        weights=world.settings.controller.weights,
        budget=determine_budget(world.settings, request.budget),
        slots=request.slots or gate.slots,
        sign=request.sign and signs_commits(repository) and can_sign(world, read_identity(repository)),
        require_sandbox=request.require_sandbox,
        remembers=world.settings.run.memory,
        forbidden=_find_forbidden(world, wanted),
        asks=world.settings.understanding.ask != "off",
        notes=(*world.notes, *team.notes),
    )


def _find_forbidden(world: RunContext, wanted: str) -> ForbiddenByMemory:
    """Return what the memory forbids to the plans of a request."""
    if not world.settings.run.memory:
        return ForbiddenByMemory()
    calibration = calibrate(open_memory(world).entries(), (wanted,))
    return ForbiddenByMemory(programs=calibration.blocked_programs, targets=calibration.blocked_targets)


def _find_concerns(world: RunContext, wanted: str, request: PipelineRequest, lane: Lane) -> tuple[Concern, ...]:
    """Return what is to be said about the request before anybody works on it."""
    listed = world.repository.git.run_records("ls-tree", "-r", "--name-only", "-z", world.base_commit)
    names = {os.fsdecode(raw) for raw in listed}
    return find_request_concerns(
        wanted, request.files, lane, lambda path: path in names or any(matches(path, name) for name in names)
    )


def _refuse_other_tip(repository: Repository, branch: str, base: str) -> None:
    """Refuse a branch that is not at the base: its commits would be lost."""
    tip = find_branch_tip(repository, branch)
    if tip is not None and tip != base:
        raise RepositoryError(
            f"the branch {branch} is at {tip[:12]}, and the work starts from {base[:12]}",
            hint="check it out first, or name a new branch",
        )


def _reserved_branches(home: Path) -> frozenset[str]:
    """Return the branches that runs under way will commit to."""
    return frozenset(
        PIPELINE_RUNS.read_setup(run.run_id, home).branch
        for run in PIPELINE_RUNS.list_started(home)
        if is_run_locked(home, run.run_id)
    )


def _build_run(
    world: RunContext,
    setup: PipelineRunConfig,
    request: PipelineRequest,
    watching: PipelineObserver,
    ask: AskApproval,
    ask_plan: AskPlanUser | None,
    listen: ReadLine | None,
    stack: ExitStack,
    *,
    resumed: bool = False,
) -> PipelineRun:
    """Build a run with its agents, budget and child runs."""
    team = Team(setup.agents)
    board = ContextBoard(world.ledger, world.run_id, setup.request)
    journal = PipelineJournal.load(world.ledger, world.run_id)
    budget = update_budget(world, setup.budget, request.budget if resumed else ())
    ends = Deadline.after(request.minutes or setup.minutes)
    dispatcher = build_dispatcher(world, budget, watching.on_spending)
    agents = PipelineAgents(
        world=world,
        slug=setup.slug,
        backends=open_backends(world, team, Path.cwd(), listen, stack),
        dispatcher=dispatcher,
        journal=journal.steps,
        observer=watching,
        time_limit_of=lambda role: None if role in team.human_roles else world.settings.gate.agent_seconds,
        documents=RunFolder(find_run_folder(world.repository.root, world.run_id)),
        supervision=PipelineSupervision(board, read_monitor_limits(world.settings))
        if setup.asks and setup.lane not in SHORT_LANES
        else None,
    )
    stack.callback(agents.close)
    memory = open_memory(world) if setup.remembers else None
    return PipelineRun(
        context=world,
        setup=setup,
        journal=journal,
        agents=agents,
        memory=PipelineMemory(memory, dispatcher.bus, journal.steps, world.run_id, setup.request),
        amendments=Amendments.load(board, journal),
        parts=GateChildRuns(world, setup, budget, ends, watching, listen, ask_plan),
        observer=watching,
        ask=ask,
        author=read_identity(world.repository),
        sign=setup.sign,
        decided_by=request.by,
        resumed=resumed,
        deadline=ends,
    )


@dataclass(frozen=True)
class GateChildRuns:
    """Run the plan gate and the task gate as child runs. Implements `pipeline.run.Parts`."""

    world: RunContext
    setup: PipelineRunConfig
    budget: Budget
    deadline: Deadline
    watching: PipelineObserver
    listen: ReadLine | None
    ask_plan: AskPlanUser | None = None
    """Asks the questions of the plan gate, if somebody can answer now."""

    def _ask_about_plan(self, questions: Sequence[OpenQuestion]) -> Mapping[str, str]:
        """Ask in interactive mode. The time of the answer is charged to neither run."""
        if self.ask_plan is None or self.setup.mode is not RunMode.INTERACTIVE:
            return {}
        with pause_for_person(self.world.ledger, self.world.run_id, self.deadline):
            return self.ask_plan(questions)

    def verify_plan(self, run_id: str, iteration: int, plan: Path, tip: str) -> PlanGateSummary | PendingAnswer:
        live, home = self.watching.on_plan_gate_started(iteration), self.world.home
        self._renew_budget(run_id)
        context = (
            resume_plan_gate(
                run_id,
                PlanGateRequest(minutes=self.deadline.minutes_left),
                live,
                self._ask_about_plan,
                listen=self.listen,
                home=home,
            )
            if self._is_started(run_id)
            else build_plan_gate_run(
                self.world.repository.root,
                plan,
                PlanGateRequest(minutes=self.deadline.minutes_left, parent_run=self._parent_run(run_id, tip)),
                live,
                self._ask_about_plan,
                listen=self.listen,
                home=home,
            )
        )
        with context as run:
            report = run.run()
        if report.verdict is None:
            question = report.questions[0].question if report.questions else "the plan gate asks something"
            return PendingAnswer(question, f"proofstone verify-plan --resume {run_id} --answer ID=TEXT")
        return _summarize_plan_gate(report, iteration)

    def implement(
        self, run_id: str, iteration: int, plan: Path, base: str, *, lane: str
    ) -> GateSummary | PendingAnswer:
        live, home = self.watching.on_task_gate_started(iteration), self.world.home
        self._renew_budget(run_id)
        context = (
            resume_gate(run_id, ResumeRequest(minutes=self.deadline.minutes_left), live, listen=self.listen, home=home)
            if self._is_started(run_id)
            else build_gate_run(
                self.world.repository.root,
                plan,
                GateRequest(
                    slots=self.setup.slots,
                    sign=False,
                    minutes=self.deadline.minutes_left,
                    require_sandbox=self.setup.require_sandbox,
                    parent_run=self._parent_run(run_id, base, short=lane in (Lane.DOCS, Lane.FIX)),
                ),
                live,
                listen=self.listen,
                home=home,
            )
        )
        with context as run:
            report = run.run()
        if report.outcome is RunOutcome.BUDGET_EXHAUSTED:  # a larger budget lets it continue from there
            raise OutOfBudgetError(report.reason)
        if report.outcome is RunOutcome.NEEDS_HUMAN:
            return PendingAnswer(report.reason, f"proofstone status {run_id}")
        return self._summarize_gate(report, iteration, base)

    def unpin(self) -> None:
        self.world.repository.git.run("update-ref", "-d", self.ref)

    def read_spent(self, run_ids: Sequence[str]) -> BudgetUsage:
        return sum(
            (usage for id in run_ids for _, _, usage in list_spending(read_dispatch_records(self.world.ledger, id))),
            BudgetUsage(),
        )

    def count_dispatches(self, run_ids: Sequence[str]) -> int:
        return sum(len(read_dispatch_records(self.world.ledger, id)) for id in run_ids)

    @property
    def ref(self) -> str:
        """The ref that holds the commits of tasks until the whole is committed. It is not a branch of the person."""
        return f"refs/proofstone/runs/{self.world.run_id}"

    def _is_started(self, run_id: str) -> bool:
        return bool(self.world.ledger.read(EventRow, run_id=run_id, type="run.started", limit=1))

    def _parent_run(self, run_id: str, base: str, *, short: bool = False) -> ParentRun:
        agents = dict(self.setup.agents)
        if short:
            agents["architect"] = ("rules",)
        return ParentRun(
            parent=self.world.run_id,
            run_id=run_id,
            base_commit=base,
            settings_commit=self.world.base_commit,
            agents=agents,
            budget=self._remaining_budget(),
            checks_understanding=self.setup.asks and not short,
            judges_criteria=short,
            ref=self.ref,
        )

    def _renew_budget(self, run_id: str) -> None:
        """Give a resumed child run what is left now: the person may have raised the budget."""
        if self._is_started(run_id):
            payload = {"budget": self._remaining_budget(run_id).model_dump(mode="json")}
            self.world.ledger.append(EventRow(run_id=run_id, type=BUDGET_EVENT, payload=payload))

    def _remaining_budget(self, part: str = "") -> Budget:
        """Return what a child run may spend in total, including what it has spent. It cannot spend what other runs have
        spent."""
        journal = PipelineJournal.load(self.world.ledger, self.world.run_id)
        spent = self.read_spent([id for id in (self.world.run_id, *journal.list_children()) if id != part])
        if why := explain_spent_limit(self.budget.run, spent, "run"):
            raise OutOfBudgetError(why)
        return self.budget.model_copy(update={"run": compute_remaining(self.budget.run, spent)})

    def _summarize_gate(self, report: GateReport, iteration: int, base: str) -> GateSummary:
        return GateSummary(
            iteration=iteration,
            run_id=report.run_id,
            outcome=report.outcome,
            reason=report.reason,
            tasks=report.tasks,
            tip=find_branch_tip(self.world.repository, self.ref) or base,
        )


def _summarize_plan_gate(report: PlanReport, iteration: int) -> PlanGateSummary:
    unresolved = [
        challenge
        for challenge in report.challenges
        if challenge.status in (ChallengeStatus.OPEN, ChallengeStatus.UNRESOLVED)
    ]
    return PlanGateSummary(
        iteration=iteration,
        run_id=report.run_id,
        verdict=report.verdict.value if report.verdict else None,
        reason=report.reason,
        open=tuple(
            KnownIssue(
                severity=_SEVERITY[challenge.severity], title=challenge.concern, source=f"plan gate {challenge.id}"
            )
            for challenge in unresolved
        ),
        mitigations=tuple(
            challenge.mitigation for challenge in select_mitigations(report.challenges) if challenge.mitigation
        ),
    )

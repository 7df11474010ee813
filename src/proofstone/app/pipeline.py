"""Build the runs of `proofstone run`: a feature request, the agents that work on it, and its repository.

The plan gate and the task gate run as child runs, built in the same way as by their own commands.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from proofstone import __version__
from proofstone.agents.executors.people import Listen
from proofstone.agents.memory.store import FileMemory, memory_path
from proofstone.agents.roles.models.plan_gate_records import ChallengeStatus, PlanSeverity
from proofstone.agents.roles.registry import ROLES
from proofstone.agents.rules.budget import left_of, over
from proofstone.agents.spending import on_record, spent_so_far
from proofstone.app.agent_assignment import budget_for, limits_of
from proofstone.app.context import (
    new_run_id,
    opened_world,
    outside_of,
    private_home,
    resolve_base,
    settings_at,
    writing_ledger,
)
from proofstone.app.gate import gate_run, resumed_gate
from proofstone.app.plan_gate import PlanGateRequest, plan_gate_run, resumed_plan_gate
from proofstone.app.runs import Runs, reopened
from proofstone.app.team import (
    BUDGET,
    Team,
    budget_now,
    dispatcher_for,
    made_ready,
    refuse_people_without_terminal,
    team_of,
)
from proofstone.check.context import CheckRequest, Silent, World
from proofstone.common.models import SHORT, Budget, Lane, Severity, Spent
from proofstone.common.text import slug
from proofstone.errors import InputError, RepositoryError
from proofstone.gate.models import GateReport, RunOutcome
from proofstone.gate.preflight import can_sign
from proofstone.gate.request import GateRequest, ResumeRequest
from proofstone.git.commit import free_branch, identity, position, refuse_bad_name
from proofstone.git.pending import OWN_FILES, exclude, own_folder, wants_signature
from proofstone.git.repository import Repository, open_repository
from proofstone.ledger import Ledger
from proofstone.ledger.models import EventRow
from proofstone.machine.locks import held, is_held
from proofstone.pipeline.agents import PipelineAgents
from proofstone.pipeline.attending import Adding, Attending, Learning
from proofstone.pipeline.documenting import Documenting
from proofstone.pipeline.journal import PipelineJournal, Watching
from proofstone.pipeline.models.run import ApprovalRequest, GateSummary, KnownIssue, PlanGateSummary, RunMode, RunSetup
from proofstone.pipeline.records import last_report
from proofstone.pipeline.rules.effects import Waiting
from proofstone.pipeline.rules.planning import lane_for
from proofstone.pipeline.run import Ask, PipelineRun
from proofstone.plan_gate.models import PlanReport
from proofstone.plan_gate.rules.admission import to_take_in
from proofstone.runtime.context import Deadline, OutOfBudgetError, Within
from proofstone.supervision.attended import Added, Board, say

AGENTS: Final = tuple(
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
class RunRequest:
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
    minutes: float | None = None
    slots: int | None = None
    budget: tuple[str, ...] = ()
    sign: bool = True
    require_sandbox: bool = False
    by: str = "person"


@contextmanager
def pipeline_run(
    directory: Path,
    wanted: str,
    request: RunRequest,
    watching: Watching,
    ask: Ask,
    *,
    listen: Listen | None = None,
    home: Path | None = None,
) -> Iterator[PipelineRun]:
    """Build a `proofstone run`. Its first row is written; nothing else has happened."""
    _refuse_bad_request(wanted)
    repository = open_repository(directory)
    home = outside_of(repository, home)
    base = resolve_base(repository, CheckRequest(base="HEAD"))
    if not request.allow_dirty:
        _refuse_dirty(repository)
    settings = settings_at(repository, base[0])
    run_id = new_run_id()
    with ExitStack() as stack:
        stack.enter_context(held(home, run_id))
        world = stack.enter_context(
            opened_world(
                repository,
                base,
                settings,
                Silent(),
                home=home,
                run_id=run_id,
                require_sandbox=request.require_sandbox,
            )
        )
        setup = _build_setup(world, wanted, request, listen)
        identity(repository)  # fails now if git knows no author
        if setup.remembers:
            FileMemory(memory_path(home)).entries()  # fails now if the memory cannot be read
        exclude(repository, (OWN_FILES,))
        world.ledger.append(EventRow(run_id=run_id, type="run.started", payload=setup.model_dump(mode="json")))
        yield _build_run(world, setup, request, watching, ask, listen, stack)


@contextmanager
def resumed_pipeline(
    run_id: str,
    request: RunRequest,
    watching: Watching,
    ask: Ask,
    *,
    listen: Listen | None = None,
    home: Path | None = None,
) -> Iterator[PipelineRun]:
    """Resume a run of the pipeline from its record."""
    home = private_home(home)
    setup = RUNS.setup(run_id, home)
    with ExitStack() as stack:
        world = stack.enter_context(reopened(run_id, setup, home, require_sandbox=setup.require_sandbox))
        refuse_people_without_terminal(Team(setup.agents), listen, "resume it at a terminal")
        run = _build_run(world, setup, request, watching, ask, listen, stack, resumed=True)
        run.journal.event("run.resumed")
        yield run


RUNS: Final = Runs(RunSetup, last_report, lambda report: "waiting" if report.waiting else report.outcome)
"""The runs of the whole pipeline."""


def approve_run(
    run_id: str, gate_id: str, option: str, said: str, by: str, home: Path | None = None
) -> ApprovalRequest:
    """Record what a person decided at an approval gate. The run applies it when it is resumed."""
    home = private_home(home)
    with writing_ledger(home) as ledger, held(home, run_id):
        report = last_report(ledger, run_id)
        waiting = report.waiting if report else None
        if waiting is None or waiting.gate_id != gate_id:
            state = f"it waits at {waiting.gate_id}" if waiting else report.reason if report else ""
            state = state or "it is not waiting for you"
            raise InputError(f"{run_id}: nothing waits at {gate_id}; {state}", hint=f"see `proofstone status {run_id}`")
        if waiting.option(option) is None:
            options = ", ".join(choice.id for choice in waiting.options)
            raise InputError(f"{gate_id}: {option!r} is no option", hint=f"there are {options}")
        journal = PipelineJournal.opened(ledger, run_id)
        journal.decide(waiting, option, said, by, RUNS.setup(run_id, home).mode, auto=False)
        return waiting


def amend_run(run_id: str, text: str, files: Sequence[str], by: str, home: Path | None = None) -> Added:
    """Record an addition to a run of `proofstone run` or `proofstone gate`. The agent at work receives it at its next
    turn; otherwise it is planned."""
    if not text.strip():
        raise InputError("the addition is empty", hint='say what else you want: proofstone amend last "limit the rate"')
    if len(text) > _MAX_AMENDMENT:
        raise InputError(
            f"the addition has {len(text):,} characters; {_MAX_AMENDMENT:,} at most", hint="say it in a paragraph"
        )
    with writing_ledger(private_home(home)) as ledger:
        _refuse_ended(ledger, run_id)
        return say(ledger, run_id, " ".join(text.split()), [path.removeprefix("./") for path in files], by)


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


def _refuse_dirty(repository: Repository) -> None:
    """Refuse uncommitted changes: work starts from the last commit, so they would be missing without notice."""
    listed = repository.git.records("diff", "--name-only", "-z", "HEAD")
    if listed:
        first = listed[0].decode("utf-8", "backslashreplace")
        more = f" and {len(listed) - 1} more files have" if len(listed) > 1 else " has"
        raise RepositoryError(
            f"{repository.root}: {first}{more} changes that are not committed",
            hint="commit or stash them: work starts from the last commit; --allow-dirty starts without them",
        )


def _build_setup(world: World, wanted: str, request: RunRequest, listen: Listen | None) -> RunSetup:
    repository, gate = world.repository, world.settings.gate
    lane, why = lane_for(request.files) if request.lane is None else (request.lane, "the person says so")
    # All of them in every lane: a change may leave a short lane, and then needs every agent.
    team = team_of(world, request.backends, (*AGENTS, *_PLAN_GATE_ROLES), "")
    if team is None:
        raise InputError(
            "no agent is configured to do the work",
            hint="--backend SPEC sets one for all roles, or set [backends]; see `proofstone backends`",
        )
    refuse_people_without_terminal(team, listen, "choose another backend")
    short = slug(wanted)
    branch = request.branch
    if branch is None:
        branch = free_branch(
            repository, f"proofstone/{short}", world.base_commit, promised=_reserved_branches(world.home)
        )
    else:
        refuse_bad_name(repository, branch)
        _refuse_other_tip(repository, branch, world.base_commit)
    return RunSetup(
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
        agents=dict(team.agents),
        minutes=request.minutes or gate.run_minutes,
        budget=budget_for(world.settings, request.budget),
        slots=request.slots or gate.slots,
        sign=request.sign and wants_signature(repository) and can_sign(world, identity(repository)),
        require_sandbox=request.require_sandbox,
        remembers=world.settings.run.memory,
        asks=world.settings.understanding.ask != "off",
        notes=(*world.notes, *team.notes),
    )


def _refuse_other_tip(repository: Repository, branch: str, base: str) -> None:
    """Refuse a branch that is not at the base: its commits would be lost."""
    tip = position(repository, branch)
    if tip is not None and tip != base:
        raise RepositoryError(
            f"the branch {branch} is at {tip[:12]}, and the work starts from {base[:12]}",
            hint="check it out first, or name a new branch",
        )


def _reserved_branches(home: Path) -> frozenset[str]:
    """Return the branches that runs under way will commit to."""
    return frozenset(RUNS.setup(run.run_id, home).branch for run in RUNS.known(home) if is_held(home, run.run_id))


def _build_run(
    world: World,
    setup: RunSetup,
    request: RunRequest,
    watching: Watching,
    ask: Ask,
    listen: Listen | None,
    stack: ExitStack,
    *,
    resumed: bool = False,
) -> PipelineRun:
    """Build a run with its agents, budget and child runs."""
    team = Team(setup.agents)
    board = Board(world.ledger, world.run_id, setup.request)
    journal = PipelineJournal.opened(world.ledger, world.run_id)
    budget = budget_now(world, setup.budget, request.budget if resumed else ())
    ends = Deadline.after(request.minutes or setup.minutes)
    dispatcher = dispatcher_for(world, budget, watching.spending)
    agents = PipelineAgents(
        world=world,
        slug=setup.slug,
        backends=made_ready(world, team, Path.cwd(), listen, stack),
        dispatcher=dispatcher,
        steps=journal.steps,
        watching=watching,
        seconds=lambda role: None if role in team.by_people else world.settings.gate.agent_seconds,
        documents=Documenting(own_folder(world.repository.root, world.run_id)),
        attending=Attending(board, limits_of(world.settings)) if setup.asks and setup.lane not in SHORT else None,
    )
    stack.callback(agents.close)
    memory = FileMemory(memory_path(world.home)) if setup.remembers else None
    return PipelineRun(
        world=world,
        setup=setup,
        journal=journal,
        agents=agents,
        learning=Learning(memory, dispatcher.bus, journal.steps, world.run_id),
        adding=Adding.opened(board, journal),
        parts=Children(world, setup, budget, ends, watching, listen),
        watching=watching,
        ask=ask,
        author=identity(world.repository),
        sign=setup.sign,
        by=request.by,
        resumed=resumed,
        ends=ends,
    )


@dataclass(frozen=True)
class Children:
    """Run the plan gate and the task gate as child runs. Implements `pipeline.run.Parts`."""

    world: World
    setup: RunSetup
    budget: Budget
    ends: Deadline
    watching: Watching
    listen: Listen | None

    def verify_plan(self, run_id: str, iteration: int, plan: Path, tip: str) -> PlanGateSummary | Waiting:
        live, home = self.watching.plan_gate(iteration), self.world.home
        self._renew_budget(run_id)
        context = (
            resumed_plan_gate(
                run_id,
                PlanGateRequest(minutes=self.ends.minutes_left),
                live,
                _answer_nothing,
                listen=self.listen,
                home=home,
            )
            if self._is_started(run_id)
            else plan_gate_run(
                self.world.repository.root,
                plan,
                PlanGateRequest(minutes=self.ends.minutes_left, within=self._parent_run(run_id, tip)),
                live,
                _answer_nothing,
                listen=self.listen,
                home=home,
            )
        )
        with context as run:
            report = run.run()
        if report.verdict is None:
            question = report.questions[0].question if report.questions else "the plan gate asks something"
            return Waiting(question, f"proofstone verify-plan --resume {run_id} --answer ID=TEXT")
        return _summarize_plan_gate(report, iteration)

    def implement(self, run_id: str, iteration: int, plan: Path, base: str, *, lane: str) -> GateSummary | Waiting:
        live, home = self.watching.gate(iteration), self.world.home
        self._renew_budget(run_id)
        context = (
            resumed_gate(run_id, ResumeRequest(minutes=self.ends.minutes_left), live, listen=self.listen, home=home)
            if self._is_started(run_id)
            else gate_run(
                self.world.repository.root,
                plan,
                GateRequest(
                    slots=self.setup.slots,
                    sign=False,
                    minutes=self.ends.minutes_left,
                    require_sandbox=self.setup.require_sandbox,
                    within=self._parent_run(run_id, base, short=lane in (Lane.DOCS, Lane.FIX)),
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
            return Waiting(report.reason, f"proofstone status {run_id}")
        return self._summarize_gate(report, iteration, base)

    def let_go(self) -> None:
        self.world.repository.git.run("update-ref", "-d", self.ref)

    def spent(self, run_ids: Sequence[str]) -> Spent:
        return sum((one for id in run_ids for _, _, one in spent_so_far(on_record(self.world.ledger, id))), Spent())

    def dispatches(self, run_ids: Sequence[str]) -> int:
        return sum(len(on_record(self.world.ledger, id)) for id in run_ids)

    @property
    def ref(self) -> str:
        """The ref that holds the commits of tasks until the whole is committed. It is not a branch of the person."""
        return f"refs/proofstone/runs/{self.world.run_id}"

    def _is_started(self, run_id: str) -> bool:
        return bool(self.world.ledger.read(EventRow, run_id=run_id, type="run.started", limit=1))

    def _parent_run(self, run_id: str, base: str, *, short: bool = False) -> Within:
        agents = dict(self.setup.agents)
        if short:
            agents["architect"] = ("rules",)
        return Within(
            parent=self.world.run_id,
            run_id=run_id,
            base_commit=base,
            settings_commit=self.world.base_commit,
            agents=agents,
            budget=self._remaining_budget(),
            asks=self.setup.asks and not short,
            ref=self.ref,
        )

    def _renew_budget(self, run_id: str) -> None:
        """Give a resumed child run what is left now: the person may have raised the budget."""
        if self._is_started(run_id):
            payload = {"budget": self._remaining_budget(run_id).model_dump(mode="json")}
            self.world.ledger.append(EventRow(run_id=run_id, type=BUDGET, payload=payload))

    def _remaining_budget(self, part: str = "") -> Budget:
        """Return what a child run may spend in total, including what it has spent. It cannot spend what other runs have
        spent."""
        journal = PipelineJournal.opened(self.world.ledger, self.world.run_id)
        spent = self.spent([id for id in (self.world.run_id, *journal.children()) if id != part])
        if why := over(self.budget.run, spent, "run"):
            raise OutOfBudgetError(why)
        return self.budget.model_copy(update={"run": left_of(self.budget.run, spent)})

    def _summarize_gate(self, report: GateReport, iteration: int, base: str) -> GateSummary:
        return GateSummary(
            iteration=iteration,
            run_id=report.run_id,
            outcome=report.outcome,
            reason=report.reason,
            tasks=report.tasks,
            tip=position(self.world.repository, self.ref) or base,
        )


def _answer_nothing(_questions: object) -> Mapping[str, str]:
    """Answer no question: the pipeline asks them itself."""
    return {}


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
        mitigations=tuple(challenge.mitigation for challenge in to_take_in(report.challenges) if challenge.mitigation),
    )

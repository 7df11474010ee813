"""The whole pipeline, put together: a feature request, whoever works on it, and the repository that it is for.

The plan gate and the task gate are entered as their own commands enter them, as parts of this run.
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
_AT_THE_PLAN_GATE: Final = ("challenger", "domain_expert", "devils_advocate", "researcher", "synthesizer")
_SEVERITY: Final = {
    PlanSeverity.BLOCKING: Severity.BLOCKER,
    PlanSeverity.SIGNIFICANT: Severity.MAJOR,
    PlanSeverity.MINOR: Severity.MINOR,
}
_LONGEST: Final = 40_000
"""Characters of a request."""
_LONGEST_ADDED: Final = 4_000


@dataclass(frozen=True)
class RunRequest:
    """What `proofstone run` was asked for; what is not said comes from the settings."""

    backends: Sequence[str] = ()
    """`ROLE=SPEC`, or `SPEC` for every role that has no line of its own."""
    files: Sequence[str] = ()
    """That the change is about, as far as the person knows: they choose the lane."""
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
    """A `proofstone run`, ready to run: its first row is written, nothing else has happened."""
    _refuse(wanted)
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
        setup = _setup(world, wanted, request, listen)
        identity(repository)  # that git does not know whom to commit as is found now
        if setup.remembers:
            FileMemory(memory_path(home)).entries()  # and so is a memory that cannot be read
        exclude(repository, (OWN_FILES,))
        world.ledger.append(EventRow(run_id=run_id, type="run.started", payload=setup.model_dump(mode="json")))
        yield _driven(world, setup, request, watching, ask, listen, stack)


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
    """A run of the pipeline that goes on from its record."""
    home = private_home(home)
    setup = RUNS.setup(run_id, home)
    with ExitStack() as stack:
        world = stack.enter_context(reopened(run_id, setup, home, require_sandbox=setup.require_sandbox))
        refuse_people_without_terminal(Team(setup.agents), listen, "go on at a terminal")
        run = _driven(world, setup, request, watching, ask, listen, stack, resumed=True)
        run.journal.event("run.resumed")
        yield run


RUNS: Final = Runs(RunSetup, last_report, lambda report: "waiting" if report.waiting else report.outcome)
"""Those of the whole pipeline."""


def approve_run(
    run_id: str, gate_id: str, option: str, said: str, by: str, home: Path | None = None
) -> ApprovalRequest:
    """Record what a person has decided at an approval gate; whoever goes on with the run hears it."""
    home = private_home(home)
    with writing_ledger(home) as ledger, held(home, run_id):
        found = last_report(ledger, run_id)
        waiting = found.waiting if found else None
        if waiting is None or waiting.gate_id != gate_id:
            asks = f"it asks at {waiting.gate_id}" if waiting else found.reason if found else ""
            asks = asks or "it asks nothing now"
            raise InputError(
                f"{run_id}: nobody is asked at {gate_id}; {asks}", hint=f"`proofstone status {run_id}` tells"
            )
        if waiting.option(option) is None:
            there = ", ".join(item.id for item in waiting.options)
            raise InputError(f"{gate_id}: {option!r} is no option", hint=f"there are {there}")
        journal = PipelineJournal.opened(ledger, run_id)
        journal.decide(waiting, option, said, by, RUNS.setup(run_id, home).mode, auto=False)
        return waiting


def amend_run(run_id: str, text: str, files: Sequence[str], by: str, home: Path | None = None) -> Added:
    """Record what a person adds to a run of `proofstone run` or `proofstone gate`. Whoever is at work hears it at
    their next turn
    boundary; what nobody there takes in is planned."""
    if not text.strip():
        raise InputError("nothing is added", hint='say what is wanted as well: proofstone amend last "limit the rate"')
    if len(text) > _LONGEST_ADDED:
        raise InputError(f"it has {len(text):,} characters; {_LONGEST_ADDED:,} at most", hint="say it in a paragraph")
    with writing_ledger(private_home(home)) as ledger:
        _refuse_over(ledger, run_id)
        return say(ledger, run_id, " ".join(text.split()), [path.removeprefix("./") for path in files], by)


def _refuse_over(ledger: Ledger, run_id: str) -> None:
    """What is added to a run that has ended would be heard by nobody."""
    events = [item.row for item in ledger.read(EventRow, run_id=run_id) if item.row.type.startswith("run.")]
    last = [row for row in events if row.type in ("run.started", "run.resumed", "run.interrupted", "run.finished")][-1]
    outcome = str(last.payload.get("outcome", "")) if last.type == "run.finished" else ""
    if outcome in (RunOutcome.PASSED, RunOutcome.FAILED, RunOutcome.HALTED):
        raise InputError(
            f"{run_id} is over ({outcome}): nothing can be added to it", hint='begin with proofstone run "…"'
        )


def _refuse(wanted: str) -> None:
    if not wanted.strip():
        raise InputError("the request is empty", hint='say what is wanted: proofstone run "greet people by their name"')
    if len(wanted) > _LONGEST:
        told = f"the request has {len(wanted):,} characters; {_LONGEST:,} at most"
        raise InputError(told, hint="put the rest into a file of the repository, and name it")


def _refuse_dirty(repository: Repository) -> None:
    """Work starts from the last commit: what is not committed would be missing, and nobody would see it."""
    listed = repository.git.records("diff", "--name-only", "-z", "HEAD")
    if listed:
        first = listed[0].decode("utf-8", "backslashreplace")
        more = f" and {len(listed) - 1} more files have" if len(listed) > 1 else " has"
        raise RepositoryError(
            f"{repository.root}: {first}{more} changes that are not committed",
            hint="commit or stash them: work starts from the last commit; --allow-dirty goes on without them",
        )


def _setup(world: World, wanted: str, request: RunRequest, listen: Listen | None) -> RunSetup:
    repository, gate = world.repository, world.settings.gate
    lane, why = lane_for(request.files) if request.lane is None else (request.lane, "the person says so")
    # All of them in every lane: a change that leaves a short one goes the long way, whoever is there or not.
    team = team_of(world, request.backends, (*AGENTS, *_AT_THE_PLAN_GATE), "")
    if team is None:
        raise InputError(
            "nobody is named who does the work",
            hint="--backend SPEC names one for all of them, or set [backends]; `proofstone backends` tells more",
        )
    refuse_people_without_terminal(team, listen, "name somebody else")
    short = slug(wanted)
    branch = request.branch
    if branch is None:
        branch = free_branch(repository, f"proofstone/{short}", world.base_commit, promised=_promised(world.home))
    else:
        refuse_bad_name(repository, branch)
        _refuse_elsewhere(repository, branch, world.base_commit)
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


def _refuse_elsewhere(repository: Repository, branch: str, base: str) -> None:
    """The one commit follows the base: a branch that is somewhere else would lose what it has."""
    found = position(repository, branch)
    if found is not None and found != base:
        raise RepositoryError(
            f"the branch {branch} is at {found[:12]}, and the work starts from {base[:12]}",
            hint="check it out first, or name a new branch",
        )


def _promised(home: Path) -> frozenset[str]:
    """Branches that runs under way will commit to."""
    return frozenset(RUNS.setup(run.run_id, home).branch for run in RUNS.known(home) if is_held(home, run.run_id))


def _driven(
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
    """Implements `pipeline.run.Parts`: the plan gate and the task gate, as their own commands enter them."""

    world: World
    setup: RunSetup
    budget: Budget
    ends: Deadline
    watching: Watching
    listen: Listen | None

    def verify_plan(self, run_id: str, iteration: int, plan: Path, tip: str) -> PlanGateSummary | Waiting:
        live, home = self.watching.plan_gate(iteration), self.world.home
        self._let_have_more(run_id)
        begun = (
            resumed_plan_gate(
                run_id, PlanGateRequest(minutes=self.ends.minutes_left), live, _nobody, listen=self.listen, home=home
            )
            if self._is_begun(run_id)
            else plan_gate_run(
                self.world.repository.root,
                plan,
                PlanGateRequest(minutes=self.ends.minutes_left, within=self._within(run_id, tip)),
                live,
                _nobody,
                listen=self.listen,
                home=home,
            )
        )
        with begun as run:
            report = run.run()
        if report.verdict is None:
            question = report.questions[0].question if report.questions else "the plan gate asks something"
            return Waiting(question, f"proofstone verify-plan --resume {run_id} --answer ID=TEXT")
        return _plan_summary(report, iteration)

    def implement(self, run_id: str, iteration: int, plan: Path, base: str, *, lane: str) -> GateSummary | Waiting:
        live, home = self.watching.gate(iteration), self.world.home
        self._let_have_more(run_id)
        begun = (
            resumed_gate(run_id, ResumeRequest(minutes=self.ends.minutes_left), live, listen=self.listen, home=home)
            if self._is_begun(run_id)
            else gate_run(
                self.world.repository.root,
                plan,
                GateRequest(
                    slots=self.setup.slots,
                    sign=False,
                    minutes=self.ends.minutes_left,
                    require_sandbox=self.setup.require_sandbox,
                    within=self._within(run_id, base, short=lane in (Lane.DOCS, Lane.FIX)),
                ),
                live,
                listen=self.listen,
                home=home,
            )
        )
        with begun as run:
            report = run.run()
        if report.outcome is RunOutcome.BUDGET_EXHAUSTED:  # it goes on from there with more
            raise OutOfBudgetError(report.reason)
        if report.outcome is RunOutcome.NEEDS_HUMAN:
            return Waiting(report.reason, f"proofstone status {run_id}")
        return self._gate_summary(report, iteration, base)

    def let_go(self) -> None:
        self.world.repository.git.run("update-ref", "-d", self.ref)

    def spent(self, run_ids: Sequence[str]) -> Spent:
        return sum((one for id in run_ids for _, _, one in spent_so_far(on_record(self.world.ledger, id))), Spent())

    def dispatches(self, run_ids: Sequence[str]) -> int:
        return sum(len(on_record(self.world.ledger, id)) for id in run_ids)

    @property
    def ref(self) -> str:
        """Where tasks are committed until the whole is: no branch of the person's."""
        return f"refs/proofstone/runs/{self.world.run_id}"

    def _is_begun(self, run_id: str) -> bool:
        return bool(self.world.ledger.read(EventRow, run_id=run_id, type="run.started", limit=1))

    def _within(self, run_id: str, base: str, *, short: bool = False) -> Within:
        agents = dict(self.setup.agents)
        if short:
            agents["architect"] = ("rules",)
        return Within(
            parent=self.world.run_id,
            run_id=run_id,
            base_commit=base,
            settings_commit=self.world.base_commit,
            agents=agents,
            budget=self._left(),
            asks=self.setup.asks and not short,
            ref=self.ref,
        )

    def _let_have_more(self, run_id: str) -> None:
        """A part that goes on has what is left now: the person may have given the run more since."""
        if self._is_begun(run_id):
            payload = {"budget": self._left(run_id).model_dump(mode="json")}
            self.world.ledger.append(EventRow(run_id=run_id, type=BUDGET, payload=payload))

    def _left(self, part: str = "") -> Budget:
        """What a part may spend, all that it has spent itself included; no part can spend what another has."""
        journal = PipelineJournal.opened(self.world.ledger, self.world.run_id)
        spent = self.spent([id for id in (self.world.run_id, *journal.children()) if id != part])
        if why := over(self.budget.run, spent, "run"):
            raise OutOfBudgetError(why)
        return self.budget.model_copy(update={"run": left_of(self.budget.run, spent)})

    def _gate_summary(self, report: GateReport, iteration: int, base: str) -> GateSummary:
        return GateSummary(
            iteration=iteration,
            run_id=report.run_id,
            outcome=report.outcome,
            reason=report.reason,
            tasks=report.tasks,
            tip=position(self.world.repository, self.ref) or base,
        )


def _nobody(_questions: object) -> Mapping[str, str]:
    return {}


def _plan_summary(report: PlanReport, iteration: int) -> PlanGateSummary:
    still = [
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
            KnownIssue(severity=_SEVERITY[item.severity], title=item.concern, source=f"plan gate {item.id}")
            for item in still
        ),
        mitigations=tuple(item.mitigation for item in to_take_in(report.challenges) if item.mitigation),
    )

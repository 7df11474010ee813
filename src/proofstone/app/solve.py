"""Build the runs of `proofstone solve`: a goal, the agents that pursue it, and the files that they work on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from proofstone import __version__
from proofstone.agents.executors.people import Listen
from proofstone.agents.memory.store import FileMemory, memory_path
from proofstone.agents.roles.registry import IN_THE_LOOP
from proofstone.app.agent_assignment import budget_for
from proofstone.app.context import new_run_id, opened_world, outside_of, private_home, resolve_base, settings_at
from proofstone.app.runs import Runs, reopened
from proofstone.app.team import Team, budget_now, dispatcher_for, made_ready, refuse_people_without_terminal, team_of
from proofstone.check.context import CheckRequest, Silent, World
from proofstone.config.settings import Settings
from proofstone.errors import InputError
from proofstone.git.pending import OWN_FILES, exclude
from proofstone.git.repository import open_repository
from proofstone.git.snapshot import snapshot
from proofstone.git.store import hold
from proofstone.ledger.models import EventRow
from proofstone.machine.locks import held
from proofstone.solve.agents import SolveAgents, Watching
from proofstone.solve.journal import SolveJournal, last_report
from proofstone.solve.models import SolveSetup
from proofstone.solve.rules.gradient import POLICIES
from proofstone.solve.run import SLOTS, Ask, SolveRun
from proofstone.solve.workspace import BEGINNING, Workspace

ROLES: Final = tuple(dict.fromkeys(role.name for role in IN_THE_LOOP.values()))
_MAX_GOAL: Final = 40_000
"""The most characters that a goal may have."""


@dataclass(frozen=True)
class SolveRequest:
    """The options of `proofstone solve`. The settings provide what is not given."""

    backends: Sequence[str] = ()
    """`ROLE=SPEC`, or `SPEC` for every role that has no choice of its own."""
    max_replans: int | None = None
    seconds: float | None = None
    policy: str | None = None
    remembers: bool = True
    budget: tuple[str, ...] = ()
    answer: str = ""
    """The answer to the perceiver's question, if it asks one."""
    by: str = "person"


@contextmanager
def solve_run(
    directory: Path,
    goal: str,
    request: SolveRequest,
    watching: Watching,
    ask: Ask,
    *,
    listen: Listen | None = None,
    home: Path | None = None,
) -> Iterator[SolveRun]:
    """Build a `proofstone solve`. Its first row is written; nothing else has happened."""
    _refuse_bad_request(goal, request)
    repository = open_repository(directory)
    home = outside_of(repository, home)
    base = resolve_base(repository, CheckRequest(base="HEAD"))
    settings = settings_at(repository, base[0])
    run_id = new_run_id()
    with ExitStack() as stack:
        stack.enter_context(held(home, run_id))
        world = stack.enter_context(
            opened_world(repository, base, settings, Silent(), home=home, run_id=run_id, require_sandbox=False)
        )
        exclude(repository, (OWN_FILES,))
        team = _choose_team(world, request, listen)
        setup = _build_setup(world, goal, request, team)
        hold(world.store, run_id, BEGINNING, setup.tree)
        world.ledger.append(EventRow(run_id=run_id, type="run.started", payload=setup.model_dump(mode="json")))
        yield _build_run(world, setup, request, watching, ask, listen, stack)


@contextmanager
def resumed_solve(
    run_id: str,
    request: SolveRequest,
    watching: Watching,
    ask: Ask,
    *,
    listen: Listen | None = None,
    home: Path | None = None,
) -> Iterator[SolveRun]:
    """Resume a run of the control loop from its record."""
    home = private_home(home)
    setup, report = RUNS.setup(run_id, home), RUNS.report(run_id, home)
    if report is not None and report.result is not None:
        raise InputError(
            f"{run_id}: has ended: {report.result.status}",
            hint=f"`proofstone solve --show {run_id}` shows its result",
        )
    with ExitStack() as stack:
        world = stack.enter_context(reopened(run_id, setup, home))
        refuse_people_without_terminal(Team(setup.agents), listen, "resume it at a terminal")
        run = _build_run(world, setup, request, watching, ask, listen, stack, resumed=True)
        run.journal.note("run.resumed")
        yield run


RUNS: Final = Runs(SolveSetup, last_report, lambda report: report.result.status if report.result else "waiting")
"""The runs of the control loop."""


def _refuse_bad_request(goal: str, request: SolveRequest) -> None:
    """Refuse an empty or overlong goal and an unknown policy."""
    if not goal.strip():
        raise InputError(
            "the goal is empty", hint='say what you want: proofstone solve "find out why the tests are slow"'
        )
    if len(goal) > _MAX_GOAL:
        raise InputError(
            f"the goal has {len(goal):,} characters; {_MAX_GOAL:,} at most", hint="put the rest into a file"
        )
    if request.policy is not None and request.policy not in POLICIES:
        raise InputError(f"there is no policy {request.policy!r}", hint=f"there are {', '.join(POLICIES)}")


def _choose_team(world: World, request: SolveRequest, listen: Listen | None) -> Team:
    team = team_of(world, request.backends, ROLES, "")
    if team is None:
        raise InputError(
            "no agent is configured to pursue the goal",
            hint="--backend SPEC sets one for all roles, or set [backends]; see `proofstone backends`",
        )
    refuse_people_without_terminal(team, listen, "choose another backend")
    return team


def _build_setup(world: World, goal: str, request: SolveRequest, team: Team) -> SolveSetup:
    settings: Settings = world.settings
    notes = list(team.notes)
    if "executor" in team.own_tools:
        notes.append("the executor has its own tools: it is told which are blocked, but they are not kept from it")
    seconds = settings.solve.seconds if request.seconds is None else request.seconds
    return SolveSetup(
        version=__version__,
        repository=str(world.repository.root),
        goal=goal,
        base_commit=world.base_commit,
        tree=snapshot(world.store, world.base_tree).tree,
        agents=dict(team.agents),
        policy=request.policy or settings.solve.policy,
        max_replans=settings.solve.max_replans if request.max_replans is None else request.max_replans,
        time_budget_ms=round(1000 * seconds),
        remembers=request.remembers and settings.solve.memory,
        budget=budget_for(settings, request.budget),
        notes=(*world.notes, *notes),
    )


def _build_run(
    world: World,
    setup: SolveSetup,
    request: SolveRequest,
    watching: Watching,
    ask: Ask,
    listen: Listen | None,
    stack: ExitStack,
    *,
    resumed: bool = False,
) -> SolveRun:
    """Build a run with its agents, budget and workspace."""
    team = Team(setup.agents)
    budget = budget_now(world, setup.budget, request.budget if resumed else ())
    dispatcher = dispatcher_for(world, budget, watching.spending)
    workspace = Workspace(world, setup.tree, setup.tree)
    stack.callback(workspace.close)
    agents = SolveAgents(
        workspace=workspace,
        backends=made_ready(world, team, Path.cwd(), listen, stack),
        dispatcher=dispatcher,
        doing=watching.doing,
        said=watching.said,
        seconds=lambda role: None if role in team.by_people else world.settings.gate.agent_seconds,
        own_tools=team.own_tools,
        coding_agents=team.coding_agents,
    )
    (started,) = world.ledger.read(EventRow, run_id=world.run_id, type="run.started")
    return SolveRun(
        run_id=world.run_id,
        setup=setup,
        journal=SolveJournal.opened(world.ledger, world.run_id),
        agents=agents,
        bus=dispatcher.bus,
        watching=watching,
        ask=ask,
        memory=FileMemory(memory_path(world.home)) if setup.remembers else None,
        began_at=started.ts,
        answer=request.answer,
        by=request.by,
        at_once=1 if team.by_people else SLOTS,
        resumed=resumed,
    )

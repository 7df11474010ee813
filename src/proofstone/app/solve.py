"""The control loop, put together: a goal, whoever pursues it, and the files that they work on."""

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
_LONGEST: Final = 40_000
"""Characters of a goal."""


@dataclass(frozen=True)
class SolveRequest:
    """What `proofstone solve` was asked for; what is not said comes from the settings."""

    backends: Sequence[str] = ()
    """`ROLE=SPEC`, or `SPEC` for every role that has no line of its own."""
    max_replans: int | None = None
    seconds: float | None = None
    policy: str | None = None
    remembers: bool = True
    budget: tuple[str, ...] = ()
    answer: str = ""
    """To the question of the perceiver, should it ask one."""
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
    """A `proofstone solve`, ready to run: its first row is written, nothing else has happened."""
    _refuse(goal, request)
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
        team = _team(world, request, listen)
        setup = _setup(world, goal, request, team)
        hold(world.store, run_id, BEGINNING, setup.tree)
        world.ledger.append(EventRow(run_id=run_id, type="run.started", payload=setup.model_dump(mode="json")))
        yield _driven(world, setup, request, watching, ask, listen, stack)


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
    """A run of the control loop that goes on from its record."""
    home = private_home(home)
    setup, report = RUNS.setup(run_id, home), RUNS.report(run_id, home)
    if report is not None and report.result is not None:
        raise InputError(
            f"{run_id}: has ended: {report.result.status}",
            hint=f"`proofstone solve --show {run_id}` shows what came of it",
        )
    with ExitStack() as stack:
        world = stack.enter_context(reopened(run_id, setup, home))
        refuse_people_without_terminal(Team(setup.agents), listen, "go on at a terminal")
        run = _driven(world, setup, request, watching, ask, listen, stack, resumed=True)
        run.journal.note("run.resumed")
        yield run


RUNS: Final = Runs(SolveSetup, last_report, lambda report: report.result.status if report.result else "waiting")
"""Those of the control loop."""


def _refuse(goal: str, request: SolveRequest) -> None:
    if not goal.strip():
        raise InputError(
            "the goal is empty", hint='say what is wanted: proofstone solve "find out why the tests are slow"'
        )
    if len(goal) > _LONGEST:
        raise InputError(
            f"the goal has {len(goal):,} characters; {_LONGEST:,} at most", hint="put the rest into a file"
        )
    if request.policy is not None and request.policy not in POLICIES:
        raise InputError(f"there is no policy {request.policy!r}", hint=f"there are {', '.join(POLICIES)}")


def _team(world: World, request: SolveRequest, listen: Listen | None) -> Team:
    team = team_of(world, request.backends, ROLES, "")
    if team is None:
        raise InputError(
            "nobody is named who could pursue it",
            hint="--backend SPEC names one for all of them, or set [backends]; `proofstone backends` tells more",
        )
    refuse_people_without_terminal(team, listen, "name somebody else")
    return team


def _setup(world: World, goal: str, request: SolveRequest, team: Team) -> SolveSetup:
    own: Settings = world.settings
    notes = list(team.notes)
    if "executor" in team.own_tools:
        notes.append("the executor brings tools of its own: blocked ones are told to it, not kept from it")
    seconds = own.solve.seconds if request.seconds is None else request.seconds
    return SolveSetup(
        version=__version__,
        repository=str(world.repository.root),
        goal=goal,
        base_commit=world.base_commit,
        tree=snapshot(world.store, world.base_tree).tree,
        agents=dict(team.agents),
        policy=request.policy or own.solve.policy,
        max_replans=own.solve.max_replans if request.max_replans is None else request.max_replans,
        time_budget_ms=round(1000 * seconds),
        remembers=request.remembers and own.solve.memory,
        budget=budget_for(own, request.budget),
        notes=(*world.notes, *notes),
    )


def _driven(
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
    (begun,) = world.ledger.read(EventRow, run_id=world.run_id, type="run.started")
    return SolveRun(
        run_id=world.run_id,
        setup=setup,
        journal=SolveJournal.opened(world.ledger, world.run_id),
        agents=agents,
        bus=dispatcher.bus,
        watching=watching,
        ask=ask,
        memory=FileMemory(memory_path(world.home)) if setup.remembers else None,
        began_at=begun.ts,
        answer=request.answer,
        by=request.by,
        at_once=1 if team.by_people else SLOTS,
        resumed=resumed,
    )

"""Build the runs of `proofstone solve`: a goal, the agents that pursue it, and the files that they work on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from proofstone import __version__
from proofstone.agents.executors.people import ReadLine
from proofstone.agents.roles.registry import LOOP_ROLES
from proofstone.app.agent_assignment import determine_budget
from proofstone.app.check_base import read_settings_at
from proofstone.app.context import ensure_private_home, new_run_id, open_run_context, require_outside_home
from proofstone.app.runs import RunCatalog, reopen_run
from proofstone.app.team import (
    Team,
    build_dispatcher,
    open_backends,
    open_memory,
    refuse_people_without_terminal,
    select_team,
    update_budget,
)
from proofstone.check.context import NullProgress, RunContext
from proofstone.config.settings import Settings
from proofstone.errors import InputError
from proofstone.git.pending_commit import OWN_FOLDER_PATTERN, exclude_from_git
from proofstone.git.repository import open_repository
from proofstone.git.snapshot import take_snapshot
from proofstone.git.store import pin
from proofstone.ledger.models import EventRow
from proofstone.machine.locks import lock_run
from proofstone.solve.agents import SolveAgents, SolveObserver
from proofstone.solve.journal import SolveJournal, read_solve_report
from proofstone.solve.models import SolveRunConfig
from proofstone.solve.rules.gradient import POLICIES
from proofstone.solve.run import SOLVE_JOBS, AskUser, SolveRun
from proofstone.solve.workspace import START_PIN, SolveWorkspace

SOLVE_ROLES: Final = tuple(dict.fromkeys(role.name for role in LOOP_ROLES.values()))
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
    uses_memory: bool = True
    budget: tuple[str, ...] = ()
    answer: str = ""
    """The answer to the perceiver's question, if it asks one."""
    by: str = "person"


@contextmanager
def build_solve_run(
    directory: Path,
    goal: str,
    request: SolveRequest,
    watching: SolveObserver,
    ask: AskUser,
    *,
    listen: ReadLine | None = None,
    home: Path | None = None,
) -> Iterator[SolveRun]:
    """Build a `proofstone solve`. Its first row is written; nothing else has happened."""
    _refuse_bad_request(goal, request)
    repository = open_repository(directory)
    home = require_outside_home(repository, home)
    base = repository.resolve_base("HEAD")
    settings = read_settings_at(repository, base[0])
    run_id = new_run_id()
    with ExitStack() as stack:
        stack.enter_context(lock_run(home, run_id))
        world = stack.enter_context(
            open_run_context(
                repository, base, settings, NullProgress(), home=home, run_id=run_id, require_sandbox=False
            )
        )
        exclude_from_git(repository, (OWN_FOLDER_PATTERN,))
        team = _choose_team(world, request, listen)
        setup = _build_setup(world, goal, request, team)
        pin(world.store, run_id, START_PIN, setup.tree)
        world.ledger.append(EventRow(run_id=run_id, type="run.started", payload=setup.model_dump(mode="json")))
        yield _build_run(world, setup, request, watching, ask, listen, stack)


@contextmanager
def resume_solve_run(
    run_id: str,
    request: SolveRequest,
    watching: SolveObserver,
    ask: AskUser,
    *,
    listen: ReadLine | None = None,
    home: Path | None = None,
) -> Iterator[SolveRun]:
    """Resume a run of the control loop from its record."""
    home = ensure_private_home(home)
    setup, report = SOLVE_RUNS.read_setup(run_id, home), SOLVE_RUNS.read_report(run_id, home)
    if report is not None and report.result is not None:
        raise InputError(
            f"{run_id}: has ended: {report.result.status}",
            hint=f"`proofstone solve --show {run_id}` shows its result",
        )
    with ExitStack() as stack:
        world = stack.enter_context(reopen_run(run_id, setup, home))
        refuse_people_without_terminal(Team(setup.agents), listen, "resume it at a terminal")
        run = _build_run(world, setup, request, watching, ask, listen, stack, resumed=True)
        run.journal.record_event("run.resumed")
        yield run


SOLVE_RUNS: Final = RunCatalog(
    SolveRunConfig, read_solve_report, lambda report: report.result.status if report.result else "waiting"
)
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


def _choose_team(world: RunContext, request: SolveRequest, listen: ReadLine | None) -> Team:
    team = select_team(world, request.backends, SOLVE_ROLES, "")
    if team is None:
        raise InputError(
            "no agent is configured to pursue the goal",
            hint="--backend SPEC sets one for all roles, or set [backends]; see `proofstone backends`",
        )
    refuse_people_without_terminal(team, listen, "choose another backend")
    return team


def _build_setup(world: RunContext, goal: str, request: SolveRequest, team: Team) -> SolveRunConfig:
    settings: Settings = world.settings
    notes = list(team.notes)
    if "executor" in team.own_tool_roles:
        notes.append("the executor has its own tools: it is told which are blocked, but they are not kept from it")
    seconds = settings.solve.seconds if request.seconds is None else request.seconds
    return SolveRunConfig(
        version=__version__,
        repository=str(world.repository.root),
        goal=goal,
        base_commit=world.base_commit,
        tree=take_snapshot(world.store, world.base_tree).tree,
        agents=dict(team.agents),
        policy=request.policy or settings.solve.policy,
        max_replans=settings.solve.max_replans if request.max_replans is None else request.max_replans,
        time_budget_ms=round(1000 * seconds),
        weights=settings.controller.weights,
        remembers=request.uses_memory and settings.solve.memory,
        budget=determine_budget(settings, request.budget),
        notes=(*world.notes, *notes),
    )


def _find_time_limit(team: Team, settings: Settings, role: str) -> float | None:
    """Return how long an agent may take; None for a person."""
    if role in team.human_roles:
        return None
    return settings.solve.subtask_seconds if role == "executor" else settings.gate.agent_seconds


def _build_run(
    world: RunContext,
    setup: SolveRunConfig,
    request: SolveRequest,
    watching: SolveObserver,
    ask: AskUser,
    listen: ReadLine | None,
    stack: ExitStack,
    *,
    resumed: bool = False,
) -> SolveRun:
    """Build a run with its agents, budget and workspace."""
    team = Team(setup.agents)
    budget = update_budget(world, setup.budget, request.budget if resumed else ())
    dispatcher = build_dispatcher(world, budget, watching.on_spending)
    workspace = SolveWorkspace(world, setup.tree, setup.tree)
    stack.callback(workspace.close)
    agents = SolveAgents(
        workspace=workspace,
        backends=open_backends(world, team, Path.cwd(), listen, stack),
        dispatcher=dispatcher,
        on_activity=watching.on_activity,
        on_message=watching.on_message,
        time_limit_of=partial(_find_time_limit, team, world.settings),
        roles_with_own_tools=team.own_tool_roles,
        coding_agent_roles=team.coding_agent_roles,
    )
    (started,) = world.ledger.read(EventRow, run_id=world.run_id, type="run.started")
    return SolveRun(
        run_id=world.run_id,
        setup=setup,
        journal=SolveJournal.load(world.ledger, world.run_id),
        agents=agents,
        bus=dispatcher.bus,
        observer=watching,
        ask=ask,
        memory=open_memory(world) if setup.remembers else None,
        started_at=started.ts,
        answer=request.answer,
        answered_by=request.by,
        jobs=1 if team.human_roles else SOLVE_JOBS,
        resumed=resumed,
    )

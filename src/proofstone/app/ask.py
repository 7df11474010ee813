"""`proofstone ask`, put together: a role, whoever serves it, and the repository to look at."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from proofstone.agents.backends.choosing import backend_from
from proofstone.agents.executors.context import ShellJob, Site
from proofstone.agents.executors.people import Listen
from proofstone.agents.read_only_agents import Asked, AskingAsking, ask
from proofstone.agents.roles.registry import AT_THE_PLAN_GATE, ROLES
from proofstone.agents.roles.requests import request_in
from proofstone.agents.roles.role import Role
from proofstone.agents.spending import on_record, spent_so_far
from proofstone.app.agent_assignment import budget_for
from proofstone.app.agents import Words, agents, refuse_commands_of_repositories
from proofstone.app.context import new_run_id, opened_world, outside_of, resolve_base, settings_at
from proofstone.check.context import CheckRequest, Silent, World
from proofstone.common.models import Spent
from proofstone.config.backends import RULES, Choice, works_alone
from proofstone.config.person import load_person
from proofstone.errors import InputError, InternalError
from proofstone.git.repository import open_repository
from proofstone.sandbox.job import Execution

_WORKS_AT_THE_GATE = "executor"


@dataclass(frozen=True)
class Question:
    """What `proofstone ask` was asked for."""

    agent: str
    """A role, or one of several agents of it: `reviewer:security`."""
    text: str
    """The request as YAML or JSON; or, for a role that needs but one text, that text."""
    source: str = "REQUEST"
    """Where the text stands: the name of its file."""
    backends: Sequence[str] = ()
    budget: tuple[str, ...] = ()
    seconds: float | None = None


@dataclass(frozen=True)
class Answer:
    run_id: str
    asked: Asked


Interrupted = Callable[[str, Spent], None]
"""Told of the run that the person breaks off, and of what it has cost, before anything is cleared away."""


def asked_role(agent: str) -> tuple[Role, str]:
    """The role that can be asked under that name, and the focus that the name says."""
    name, _, focus = agent.partition(":")
    if name == _WORKS_AT_THE_GATE:
        raise InputError(
            "an executor changes files, so it works at the gate", hint="`proofstone gate PLAN.md --executor …`"
        )
    if agent in AT_THE_PLAN_GATE:
        raise InputError(
            f"{agent} works at the plan gate, on what others have brought against a plan",
            hint="`proofstone verify-plan PLAN.md`",
        )
    if name not in ROLES:
        there = ", ".join(item for item in ROLES if item != _WORKS_AT_THE_GATE)
        raise InputError(f"{agent}: there is no such role", hint=f"there are: {there}")
    return ROLES[name], focus


def asked_once(
    directory: Path, question: Question, site: Site, interrupted: Interrupted, *, listen: Listen | None = None
) -> Answer:
    role, focus = asked_role(question.agent)
    request = request_in(role, question.text, focus=focus, source=question.source)
    focus = getattr(request, "focus", "")
    agent = f"{role.name}:{focus}" if focus else role.name
    repository = open_repository(directory)
    base = resolve_base(repository, CheckRequest())
    settings = settings_at(repository, base[0])
    said = Words.spoken(repository.root, settings, load_person(), _named(question.backends, role.name))
    choice = _chosen(said, agent)
    folder, root = said.folder(choice.origin), repository.root
    backend = backend_from(choice.specs, folder=folder, root=root, listen=listen, person=said.person)
    with (
        closing(backend),
        opened_world(
            repository,
            base,
            settings,
            Silent(),
            home=outside_of(repository, None),
            run_id=new_run_id(),
            require_sandbox=False,
        ) as world,
    ):
        budget = budget_for(settings, question.budget)
        asking = AskingAsking(role, focus or None, request, backend, budget, question.seconds)
        try:
            return Answer(world.run_id, ask(world, asking, site))
        except KeyboardInterrupt:
            world.cancel.set()
            interrupted(world.run_id, _spent(world))
            raise


def _chosen(said: Words, agent: str) -> Choice:
    """Who serves the agent, if somebody can."""
    (known,) = agents(said, [agent]).agents
    choice = known.choice
    if not choice.specs or choice.specs == (RULES,):
        raise InputError(
            f"nobody is named who serves {agent}",
            hint=f"--backend api:<provider>:<model>, or {agent.partition(':')[0]} under [backends]; "
            "`proofstone backends` shows them",
        )
    refuse_commands_of_repositories(choice)
    for standing in known.standings:
        if standing.missing and (standing.spec.startswith("api:") or works_alone(standing.spec)):
            raise InputError(standing.missing, hint=standing.hint)
    return choice


def _spent(world: World) -> Spent:
    """By the record, which holds every turn that has come back."""
    amounts = (amount for _, _, amount in spent_so_far(on_record(world.ledger, world.run_id)))
    return sum(amounts, Spent())


def _named(backends: Sequence[str], role: str) -> list[str]:
    """`SPEC` alone is about the role that is asked."""
    known = (f"{role}=", "default=")
    return [word if word.startswith(known) else f"{role}={word}" for word in backends]


def nobody_runs_here(job: ShellJob) -> Execution:
    raise InternalError(f"{job.command}: there is no place to run it yet")

"""Run `proofstone ask`: find the role and its backend, open the repository, and ask once."""

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

_GATE_ROLE = "executor"


@dataclass(frozen=True)
class Question:
    """The request of `proofstone ask`."""

    agent: str
    """A role, or one of its agents: `reviewer:security`."""
    text: str
    """The request as YAML or JSON, or plain text for a role that needs only one text."""
    source: str = "REQUEST"
    """The name of the file that holds the text."""
    backends: Sequence[str] = ()
    budget: tuple[str, ...] = ()
    seconds: float | None = None


@dataclass(frozen=True)
class Answer:
    """The id of the run, and what the agent answered."""

    run_id: str
    asked: Asked


Interrupted = Callable[[str, Spent], None]
"""Called with the run and its cost when the person interrupts it, before anything is cleaned up."""


def asked_role(agent: str) -> tuple[Role, str]:
    """Return the role of that name, and the focus that the name gives."""
    name, _, focus = agent.partition(":")
    if name == _GATE_ROLE:
        raise InputError(
            "an executor changes files, so it works only at the gate", hint="`proofstone gate PLAN.md --executor …`"
        )
    if agent in AT_THE_PLAN_GATE:
        raise InputError(
            f"{agent} works only at the plan gate, on the challenges to a plan",
            hint="`proofstone verify-plan PLAN.md`",
        )
    if name not in ROLES:
        names = ", ".join(role for role in ROLES if role != _GATE_ROLE)
        raise InputError(f"{agent}: there is no such role", hint=f"there are: {names}")
    return ROLES[name], focus


def asked_once(
    directory: Path, question: Question, site: Site, interrupted: Interrupted, *, listen: Listen | None = None
) -> Answer:
    """Ask an agent once, and record the run."""
    role, focus = asked_role(question.agent)
    request = request_in(role, question.text, focus=focus, source=question.source)
    focus = getattr(request, "focus", "")
    agent = f"{role.name}:{focus}" if focus else role.name
    repository = open_repository(directory)
    base = resolve_base(repository, CheckRequest())
    settings = settings_at(repository, base[0])
    choices = Words.spoken(repository.root, settings, load_person(), _with_role(question.backends, role.name))
    choice = _choose_backend(choices, agent)
    folder, root = choices.folder(choice.origin), repository.root
    backend = backend_from(choice.specs, folder=folder, root=root, listen=listen, person=choices.person)
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
            interrupted(world.run_id, _total_spent(world))
            raise


def _choose_backend(choices: Words, agent: str) -> Choice:
    """Return the backends of the agent, if they can serve it."""
    (resolved,) = agents(choices, [agent]).agents
    choice = resolved.choice
    if not choice.specs or choice.specs == (RULES,):
        raise InputError(
            f"no agent is configured for {agent}",
            hint=f"--backend api:<provider>:<model>, or {agent.partition(':')[0]} under [backends]; "
            "`proofstone backends` lists them",
        )
    refuse_commands_of_repositories(choice)
    for standing in resolved.standings:
        if standing.missing and (standing.spec.startswith("api:") or works_alone(standing.spec)):
            raise InputError(standing.missing, hint=standing.hint)
    return choice


def _total_spent(world: World) -> Spent:
    """Return the cost of the run by its record, which holds every finished turn."""
    amounts = (amount for _, _, amount in spent_so_far(on_record(world.ledger, world.run_id)))
    return sum(amounts, Spent())


def _with_role(backends: Sequence[str], role: str) -> list[str]:
    """Turn a `SPEC` without a role into one for the role that is asked."""
    prefixes = (f"{role}=", "default=")
    return [option if option.startswith(prefixes) else f"{role}={option}" for option in backends]


def nobody_runs_here(job: ShellJob) -> Execution:
    """Refuse to run a job: this command has no place for it."""
    raise InternalError(f"{job.command}: there is no place to run it")

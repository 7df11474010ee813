"""Run `proofstone ask`: find the role and its backend, open the repository, and ask once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from proofstone.agents.backends.explanation import PromptPart, build_opening, explain_prompt
from proofstone.agents.backends.factory import build_backend
from proofstone.agents.executors.context import ExecutionContext, ShellCommand
from proofstone.agents.executors.people import ReadLine
from proofstone.agents.read_only_agents import SingleRequest, SingleResult, ask_agent
from proofstone.agents.roles.registry import PLAN_GATE_ROLES, ROLES
from proofstone.agents.roles.requests import parse_request
from proofstone.agents.roles.role import Role
from proofstone.agents.spending import list_spending, read_dispatch_records
from proofstone.app.agent_assignment import determine_budget
from proofstone.app.agents import BackendChoices, refuse_repository_commands, resolve_agents
from proofstone.app.check_base import read_settings_at
from proofstone.app.context import new_run_id, open_run_context, require_outside_home
from proofstone.check.context import NullProgress, RunContext
from proofstone.common.models import BudgetUsage
from proofstone.config.backends import RULES_ONLY, BackendSelection, is_coding_agent
from proofstone.config.user import load_user_config
from proofstone.errors import InputError, InternalError
from proofstone.git.repository import open_repository
from proofstone.sandbox.job import SandboxResult

_GATE_ROLE = "executor"


@dataclass(frozen=True)
class AskRequest:
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
class AskResult:
    """The id of the run, and what the agent answered."""

    run_id: str
    reply: SingleResult


OnInterrupt = Callable[[str, BudgetUsage], None]
"""Called with the run and its cost when the person interrupts it, before anything is cleaned up."""


def find_role(agent: str) -> tuple[Role, str]:
    """Return the role of that name, and the focus that the name gives."""
    name, _, focus = agent.partition(":")
    if name == _GATE_ROLE:
        raise InputError(
            "an executor changes files, so it works only at the gate", hint="`proofstone gate PLAN.md --executor …`"
        )
    if agent in PLAN_GATE_ROLES:
        raise InputError(
            f"{agent} works only at the plan gate, on the challenges to a plan",
            hint="`proofstone verify-plan PLAN.md`",
        )
    if name not in ROLES:
        names = ", ".join(role for role in ROLES if role != _GATE_ROLE)
        raise InputError(f"{agent}: there is no such role", hint=f"there are: {names}")
    return ROLES[name], focus


def ask_once(
    directory: Path,
    question: AskRequest,
    site: ExecutionContext,
    interrupted: OnInterrupt,
    *,
    listen: ReadLine | None = None,
) -> AskResult:
    """Ask an agent once, and record the run."""
    role, focus = find_role(question.agent)
    request = parse_request(role, question.text, focus=focus, source=question.source)
    focus = getattr(request, "focus", "")
    agent = f"{role.name}:{focus}" if focus else role.name
    repository = open_repository(directory)
    base = repository.resolve_base("HEAD")
    settings = read_settings_at(repository, base[0])
    choices = BackendChoices.from_options(
        repository.root, settings, load_user_config(), _with_role(question.backends, role.name)
    )
    choice = _choose_backend(choices, agent)
    folder, root = choices.folder_of(choice.origin), repository.root
    backend = build_backend(choice.specs, folder=folder, root=root, listen=listen, person=choices.person)
    with (
        closing(backend),
        open_run_context(
            repository,
            base,
            settings,
            NullProgress(),
            home=require_outside_home(repository, None),
            run_id=new_run_id(),
            require_sandbox=False,
        ) as world,
    ):
        budget = determine_budget(settings, question.budget)
        asking = SingleRequest(role, focus or None, request, backend, budget, question.seconds)
        try:
            return AskResult(world.run_id, ask_agent(world, asking, site))
        except KeyboardInterrupt:
            world.cancel.set()
            interrupted(world.run_id, _total_spent(world))
            raise


@dataclass(frozen=True)
class Explanation:
    """What an agent would be sent, and by which backend it is served."""

    agent: str
    backend: str
    """Empty if none is configured: the parts are then those of a program."""
    parts: tuple[PromptPart, ...]


def explain_question(directory: Path, question: AskRequest) -> Explanation:
    """Return what the agent would be sent. Nobody is asked, and nothing is recorded."""
    role, focus = find_role(question.agent)
    request = parse_request(role, question.text, focus=focus, source=question.source)
    agent = f"{role.name}:{focus}" if (focus := getattr(request, "focus", "")) else role.name
    repository = open_repository(directory)
    settings = read_settings_at(repository, repository.resolve_base("HEAD")[0])
    options = _with_role(question.backends, role.name)
    choices = BackendChoices.from_options(repository.root, settings, load_user_config(), options)
    selection = choices.choice(agent)
    opening = build_opening(role, request)
    if not selection.specs or selection.specs == (RULES_ONLY,):
        return Explanation(agent, "", explain_prompt(opening, None))
    folder = choices.folder_of(selection.origin)
    backend = build_backend(selection.specs[:1], folder=folder, root=repository.root, person=choices.person)
    with closing(backend):
        return Explanation(agent, selection.specs[0], explain_prompt(opening, backend))


def _choose_backend(choices: BackendChoices, agent: str) -> BackendSelection:
    """Return the backends of the agent, if they can serve it."""
    (resolved,) = resolve_agents(choices, [agent]).agents
    choice = resolved.choice
    if not choice.specs or choice.specs == (RULES_ONLY,):
        raise InputError(
            f"no agent is configured for {agent}",
            hint=f"--backend api:<provider>:<model>, or {agent.partition(':')[0]} under [backends]; "
            "`proofstone backends` lists them",
        )
    refuse_repository_commands(choice)
    for standing in resolved.backends:
        if standing.missing and (standing.spec.startswith("api:") or is_coding_agent(standing.spec)):
            raise InputError(standing.missing, hint=standing.hint)
    return choice


def _total_spent(world: RunContext) -> BudgetUsage:
    """Return the cost of the run by its record, which holds every finished turn."""
    amounts = (amount for _, _, amount in list_spending(read_dispatch_records(world.ledger, world.run_id)))
    return sum(amounts, BudgetUsage())


def _with_role(backends: Sequence[str], role: str) -> list[str]:
    """Turn a `SPEC` without a role into one for the role that is asked."""
    prefixes = (f"{role}=", "default=")
    return [option if option.startswith(prefixes) else f"{role}={option}" for option in backends]


def refuse_to_run(job: ShellCommand) -> SandboxResult:
    """Refuse to run a job: this command has no place for it."""
    raise InternalError(f"{job.command}: there is no place to run it")

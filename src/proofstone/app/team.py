"""Choose the agents of a run, open their backends, and set what they may spend."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from proofstone.agents.backends import Backend
from proofstone.agents.backends.factory import build_backend
from proofstone.agents.bus import MessageBus
from proofstone.agents.dispatch import Dispatcher
from proofstone.agents.executors.people import ReadLine
from proofstone.agents.memory.store import FileMemory, ScopedMemory, memory_path
from proofstone.agents.spending import SpendingMeter, list_spending, read_dispatch_records
from proofstone.app.agent_assignment import absolute_script, raise_budget
from proofstone.app.agents import BackendChoices, refuse_repository_commands, resolve_agents
from proofstone.check.context import RunContext
from proofstone.common.models import Budget, BudgetUsage
from proofstone.config.backends import BACKEND_KEYS, RULES_ONLY, BackendOrigin, BackendSelection, is_coding_agent
from proofstone.config.user import load_user_config
from proofstone.errors import InputError
from proofstone.ledger.models import EventRow

HUMAN: Final = "human"
_COMMAND: Final = "cmd:"
BUDGET_EVENT: Final = "run.budget"
"""The type of the event that changes the budget of a run."""


@dataclass(frozen=True)
class Team:
    """The specs that serve each role, fallbacks last."""

    agents: Mapping[str, tuple[str, ...]]
    notes: tuple[str, ...] = ()
    """Notes for the person about the choice."""

    @property
    def human_roles(self) -> frozenset[str]:
        """The roles that a person may serve."""
        return frozenset(role for role, specs in self.agents.items() if HUMAN in specs)

    @property
    def coding_agent_roles(self) -> frozenset[str]:
        """The roles that a coding agent may serve."""
        return frozenset(role for role, specs in self.agents.items() if any(map(is_coding_agent, specs)))

    @property
    def own_tool_roles(self) -> frozenset[str]:
        """The roles that a program with its own tools may serve: a coding agent or a command."""
        commanded = (role for role, specs in self.agents.items() if any(spec.startswith(_COMMAND) for spec in specs))
        return self.coding_agent_roles.union(commanded)


def select_team(world: RunContext, backends: Sequence[str], roles: Sequence[str], without: str) -> Team | None:
    """Return the agents of all roles; None if no role has one. Raise an InputError if only some roles have one;
    `without` ends its hint."""
    backend_choices = BackendChoices.from_options(
        world.repository.root, world.settings, load_user_config(), _with_default(backends)
    )
    choices = [backend_choices.choice(role) for role in roles]
    if not any(choice.specs for choice in choices if choice.specs != (RULES_ONLY,)):  # the rules are always there
        return None
    missing = [choice.agent for choice in choices if not choice.specs]
    if missing:
        raise InputError(
            f"no agent is configured for {', '.join(missing)}",
            hint=f"--backend SPEC sets one for all roles, or set them under [backends]{without}",
        )
    for choice in choices:
        refuse_repository_commands(choice)
        _refuse_repository_script(choice)
    resolved = resolve_agents(backend_choices, [choice.agent for choice in choices])
    for status in (standing for agent in resolved.agents for standing in agent.backends):
        if status.missing:
            raise InputError(status.missing, hint=status.hint or None)
    if refused := [problem.text for problem in resolved.problems if problem.is_refused]:
        raise InputError("; ".join(refused), hint="`proofstone backends` shows which agent serves each role")
    specs_by_role = {
        choice.agent: tuple(absolute_script(spec, backend_choices.folder_of(choice.origin)) for spec in choice.specs)
        for choice in choices
    }
    return Team(specs_by_role, tuple(problem.text for problem in resolved.problems))


def refuse_people_without_terminal(team: Team, listen: ReadLine | None, otherwise: str) -> None:
    """Refuse a team with a person if there is no terminal."""
    if listen is None and team.human_roles:
        raise InputError("`human` needs a terminal, and there is none", hint=otherwise)


def open_backends(
    world: RunContext, team: Team, folder: Path, listen: ReadLine | None, stack: ExitStack
) -> Mapping[str, Backend]:
    """Open the backends of the team and return them by role. `stack` closes them."""
    person = load_user_config()
    opened: dict[tuple[str, ...], Backend] = {}
    for specs in team.agents.values():
        if specs not in opened:
            opened[specs] = build_backend(
                specs, folder=folder, root=world.repository.root, listen=listen, person=person
            )
            stack.callback(opened[specs].close)
    return {role: opened[specs] for role, specs in team.agents.items()}


def build_dispatcher(world: RunContext, budget: Budget, spending: Callable[[BudgetUsage], None]) -> Dispatcher:
    """Build the dispatcher of a run, with everything recorded so far."""
    recorded = read_dispatch_records(world.ledger, world.run_id)
    meter = SpendingMeter(budget, list_spending(recorded))
    return Dispatcher(MessageBus(world.ledger, world.run_id), meter, recorded, spending)


def update_budget(world: RunContext, budget: Budget, words: tuple[str, ...]) -> Budget:
    """Return what agents may spend: the first budget, with recorded changes and those that the person makes now."""
    for stored in world.ledger.read(EventRow, run_id=world.run_id, type=BUDGET_EVENT):
        budget = Budget.model_validate(stored.row.payload["budget"])
    if words:
        budget = raise_budget(world, budget, words)
        payload = {"budget": budget.model_dump(mode="json")}
        world.ledger.append(EventRow(run_id=world.run_id, type=BUDGET_EVENT, payload=payload))
    return budget


def _refuse_repository_script(choice: BackendSelection) -> None:
    """Refuse prepared answers that the repository names: it would be its own judge. A model is allowed."""
    prepared = [spec for spec in choice.specs if spec.startswith("script:")]
    if choice.origin is BackendOrigin.REPOSITORY and prepared:
        raise InputError(
            f"the repository names prepared answers as its {choice.agent}: {prepared[0]}",
            hint="if you trust them, name them yourself: on the command line, or in your own file, under [backends]",
        )


def _with_default(backends: Sequence[str]) -> list[str]:
    """Turn a `SPEC` without a role into one for all roles."""
    return [
        word if word.startswith(tuple(f"{key}=" for key in BACKEND_KEYS)) else f"default={word}" for word in backends
    ]


def open_memory(world: RunContext) -> ScopedMemory:
    """Return the memory as a run in this repository uses it."""
    memory = FileMemory(memory_path(world.home))
    return ScopedMemory(memory, str(world.repository.root), world.settings.memory.shared)

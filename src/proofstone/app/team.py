"""A team of agents for one run: who serves whom, made ready, and what they may spend."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from proofstone.agents.backends import Backend
from proofstone.agents.backends.choosing import backend_from
from proofstone.agents.bus import Bus
from proofstone.agents.dispatch import Dispatcher
from proofstone.agents.executors.people import Listen
from proofstone.agents.spending import Meter, on_record, spent_so_far
from proofstone.app.agent_assignment import lasting, more
from proofstone.app.agents import Words, agents, refuse_commands_of_repositories
from proofstone.check.context import World
from proofstone.common.models import Budget, Spent
from proofstone.config.backends import KEYS, RULES, Choice, Origin, works_alone
from proofstone.config.person import load_person
from proofstone.errors import InputError
from proofstone.ledger.models import EventRow

PERSON: Final = "human"
_COMMAND: Final = "cmd:"
BUDGET: Final = "run.budget"
"""Type of the event that says what a run may spend from now on."""


@dataclass(frozen=True)
class Team:
    """Who serves each role, the fallbacks behind the first."""

    agents: Mapping[str, tuple[str, ...]]
    notes: tuple[str, ...] = ()
    """What is to be said about them."""

    @property
    def by_people(self) -> frozenset[str]:
        return frozenset(role for role, specs in self.agents.items() if PERSON in specs)

    @property
    def coding_agents(self) -> frozenset[str]:
        """Roles that a coding agent may serve."""
        return frozenset(role for role, specs in self.agents.items() if any(map(works_alone, specs)))

    @property
    def own_tools(self) -> frozenset[str]:
        """Roles that a program with tools of its own may serve: a coding agent, or a command."""
        commanded = (role for role, specs in self.agents.items() if any(spec.startswith(_COMMAND) for spec in specs))
        return self.coding_agents.union(commanded)


def team_of(world: World, backends: Sequence[str], roles: Sequence[str], without: str) -> Team | None:
    """Everybody who is needed, or nobody at all (None). Some and not others is an error; `without` says how to do
    without any of them."""
    said = Words.spoken(world.repository.root, world.settings, load_person(), _named(backends))
    choices = [said.choice(role) for role in roles]
    if not any(choice.specs for choice in choices if choice.specs != (RULES,)):  # they are always there
        return None
    missing = [choice.agent for choice in choices if not choice.specs]
    if missing:
        raise InputError(
            f"nobody is named who serves {', '.join(missing)}",
            hint=f"--backend SPEC names one for all, or set them under [backends]{without}",
        )
    for choice in choices:
        refuse_commands_of_repositories(choice)
        _refuse_judges_of_its_own(choice)
    known = agents(said, [choice.agent for choice in choices])
    for item in (standing for agent in known.agents for standing in agent.standings):
        if item.missing:
            raise InputError(item.missing, hint=item.hint or None)
    if refused := [problem.text for problem in known.problems if problem.refuse]:
        raise InputError("; ".join(refused), hint="`proofstone backends` shows who serves whom")
    cast = {entry.agent: tuple(lasting(spec, said.folder(entry.origin)) for spec in entry.specs) for entry in choices}
    return Team(cast, tuple(problem.text for problem in known.problems))


def refuse_people_without_terminal(team: Team, listen: Listen | None, otherwise: str) -> None:
    if listen is None and team.by_people:
        raise InputError("`human` is asked at a terminal, and here is none", hint=otherwise)


def made_ready(
    world: World, team: Team, folder: Path, listen: Listen | None, stack: ExitStack
) -> Mapping[str, Backend]:
    """Their backends, by role; the stack lets go of them."""
    person = load_person()
    made: dict[tuple[str, ...], Backend] = {}
    for specs in team.agents.values():
        if specs not in made:
            made[specs] = backend_from(specs, folder=folder, root=world.repository.root, listen=listen, person=person)
            stack.callback(made[specs].close)
    return {role: made[specs] for role, specs in team.agents.items()}


def dispatcher_for(world: World, budget: Budget, spending: Callable[[Spent], None]) -> Dispatcher:
    """With all that is on record of the run."""
    recorded = on_record(world.ledger, world.run_id)
    meter = Meter(budget, spent_so_far(recorded))
    return Dispatcher(Bus(world.ledger, world.run_id), meter, recorded, spending)


def budget_now(world: World, budget: Budget, words: tuple[str, ...]) -> Budget:
    """What agents may spend: as at the beginning, as amended since, as the person says now."""
    for stored in world.ledger.read(EventRow, run_id=world.run_id, type=BUDGET):
        budget = Budget.model_validate(stored.row.payload["budget"])
    if words:
        budget = more(world, budget, words)
        payload = {"budget": budget.model_dump(mode="json")}
        world.ledger.append(EventRow(run_id=world.run_id, type=BUDGET, payload=payload))
    return budget


def _refuse_judges_of_its_own(choice: Choice) -> None:
    """A repository may name a model. Prepared answers of its own would be its own judge."""
    prepared = [spec for spec in choice.specs if spec.startswith("script:")]
    if choice.origin is Origin.REPOSITORY and prepared:
        raise InputError(
            f"the repository has named prepared answers as its {choice.agent}: {prepared[0]}",
            hint="if you trust them, name them yourself: on the command line, or in your own file, under [backends]",
        )


def _named(backends: Sequence[str]) -> list[str]:
    """`SPEC` alone is about all of them."""
    return [word if word.startswith(tuple(f"{key}=" for key in KEYS)) else f"default={word}" for word in backends]

"""Who works at the gate, and what they may spend: what a person said, here and in their settings, put together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

from proofstone.agents.backends import Backend
from proofstone.agents.backends.choosing import backend_from
from proofstone.agents.executors.people import Listen
from proofstone.agents.gate_agents import is_agent
from proofstone.agents.rules.budget import amended
from proofstone.agents.spending import Meter, on_record, spent_so_far
from proofstone.app.agents import Words, agents, refuse_login_for_repositories
from proofstone.check.context import World
from proofstone.common.models import Budget
from proofstone.config.backends import limits
from proofstone.config.person import budget, load_person
from proofstone.config.settings import Settings
from proofstone.errors import InputError
from proofstone.gate.context import Journal
from proofstone.gate.models import GateSetup
from proofstone.gate.request import GateRequest
from proofstone.gate.view import budget_of
from proofstone.plans.models import Plan
from proofstone.supervision.rules.monitor_state import Limits


def backends_for(
    setup: GateSetup, root: Path, listen: Listen | None, stack: ExitStack
) -> Callable[[Sequence[str]], Backend]:
    """How backends are made for the run in the repository at `root`; the stack lets go of them."""
    person = load_person()

    def backend(specs: Sequence[str]) -> Backend:
        made = backend_from(specs, folder=Path(setup.plan_path).parent, root=root, listen=listen, person=person)
        stack.callback(made.close)
        return made

    return backend


def amend_budget(world: World, setup: GateSetup, plan: Plan, words: tuple[str, ...]) -> None:
    """What agents may spend from now on, if the person says so: more than they have spent, or nothing would follow."""
    if not words:
        return
    journal = Journal.opened(world.ledger, world.run_id, plan)
    budget = more(world, budget_of(setup, journal), words)
    journal.note("run.budget", budget=budget.model_dump(mode="json"))


def more(world: World, budget: Budget, words: tuple[str, ...]) -> Budget:
    """What a run may spend from now on: more than it has spent, or nothing would follow."""
    budget = _amended(budget, words)
    recorded = on_record(world.ledger, world.run_id)
    meter = Meter(budget, spent_so_far(recorded))
    for item in recorded.values():
        if item.occasion and (why := meter.exhausted(item.occasion.role, item.occasion.task)):
            raise InputError(why, hint="a budget counts from the beginning of the run: give more than was spent")
    return budget


def budget_for(settings: Settings, words: tuple[str, ...]) -> Budget:
    """What the agents of a run may spend: as the person says now, as they have set it, as the repository has."""
    return _amended(limits(budget(load_person().settings, settings)), words)


def _amended(budget: Budget, words: tuple[str, ...]) -> Budget:
    try:
        return amended(budget, words)
    except ValueError as error:
        raise InputError(
            f"--budget {error}", hint="for instance --budget tokens=500000 or --budget task.usd=2"
        ) from error


def served(world: World, request: GateRequest) -> tuple[dict[str, tuple[str, ...]], list[str]]:
    """Who executes and who reviews, by role, the fallbacks behind the first; and what is to be said about them."""
    asked = {"executor": request.executor, "architect": request.architect}
    line: dict[str, tuple[str, ...]] = (
        {role: request.within.agents[role] for role in asked}
        if request.within is not None
        else {role: (spec,) for role, spec in asked.items() if spec}
    )
    said = Words(world.repository.root, world.settings, load_person(), line)
    choices = [said.choice(role) for role in asked]
    for choice in choices:
        refuse_login_for_repositories(choice)
    cast = {entry.agent: tuple(lasting(spec, said.folder(entry.origin)) for spec in entry.specs) for entry in choices}
    if not cast["executor"]:
        raise InputError(
            "nobody is named who does the work",
            hint="--executor cli:<preset>, acp:<preset>, api:<provider>:<model>, 'cmd:<shell command>', human or "
            "script:<file>; or gate.executor",
        )
    known = agents(said, asked)
    for item in (standing for agent in known.agents for standing in agent.standings):
        if item.missing and is_agent(item.spec):
            raise InputError(item.missing, hint=item.hint)
    problems = known.problems
    if refused := [problem.text for problem in problems if problem.refuse]:
        raise InputError("; ".join(refused), hint="`proofstone backends` shows who serves whom")
    return cast, [problem.text for problem in problems]


def limits_of(settings: Settings) -> Limits:
    """How often agents may be asked whether they know what they are doing."""
    said = settings.understanding
    return Limits(
        silence_seconds=said.silence_seconds,
        question_apart_seconds=said.question_apart_seconds,
        milestones=said.milestones,
    )


def lasting(spec: str, folder: Path) -> str:
    """The spec as it will be meant wherever the run is resumed: a script by its whole path."""
    kind, _, rest = spec.partition(":")
    return f"script:{folder / rest}" if kind == "script" and not Path(rest).is_absolute() else spec

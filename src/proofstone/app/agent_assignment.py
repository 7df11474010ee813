"""Decide which agents work at the gate and what they may spend, from the command line and the settings."""

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
    """Return a function that opens backends for a run in the repository at `root`. `stack` closes them."""
    person = load_person()

    def backend(specs: Sequence[str]) -> Backend:
        opened = backend_from(specs, folder=Path(setup.plan_path).parent, root=root, listen=listen, person=person)
        stack.callback(opened.close)
        return opened

    return backend


def amend_budget(world: World, setup: GateSetup, plan: Plan, words: tuple[str, ...]) -> None:
    """Record a new budget for the agents of a run, if the person gives one. It must exceed what was spent: a smaller
    budget would end the run at once."""
    if not words:
        return
    journal = Journal.opened(world.ledger, world.run_id, plan)
    budget = more(world, budget_of(setup, journal), words)
    journal.note("run.budget", budget=budget.model_dump(mode="json"))


def more(world: World, budget: Budget, words: tuple[str, ...]) -> Budget:
    """Return the budget with the person's changes. Raise an InputError if the run has already spent that much."""
    budget = _amend_budget(budget, words)
    recorded = on_record(world.ledger, world.run_id)
    meter = Meter(budget, spent_so_far(recorded))
    for dispatch in recorded.values():
        if dispatch.occasion and (why := meter.exhausted(dispatch.occasion.role, dispatch.occasion.task)):
            raise InputError(why, hint="a budget counts from the beginning of the run: give more than was spent")
    return budget


def budget_for(settings: Settings, words: tuple[str, ...]) -> Budget:
    """Return what the agents of a run may spend. The command line overrides the person's settings, which override the
    repository's."""
    return _amend_budget(limits(budget(load_person().settings, settings)), words)


def _amend_budget(budget: Budget, words: tuple[str, ...]) -> Budget:
    try:
        return amended(budget, words)
    except ValueError as error:
        raise InputError(
            f"--budget {error}", hint="for instance --budget tokens=500000 or --budget task.usd=2"
        ) from error


def served(world: World, request: GateRequest) -> tuple[dict[str, tuple[str, ...]], list[str]]:
    """Return the specs of the executor and the architect by role, fallbacks last, and notes for the person."""
    requested = {"executor": request.executor, "architect": request.architect}
    command_line: dict[str, tuple[str, ...]] = (
        {role: request.within.agents[role] for role in requested}
        if request.within is not None
        else {role: (spec,) for role, spec in requested.items() if spec}
    )
    backend_choices = Words(world.repository.root, world.settings, load_person(), command_line)
    choices = [backend_choices.choice(role) for role in requested]
    for choice in choices:
        refuse_login_for_repositories(choice)
    specs_by_role = {
        choice.agent: tuple(lasting(spec, backend_choices.folder(choice.origin)) for spec in choice.specs)
        for choice in choices
    }
    if not specs_by_role["executor"]:
        raise InputError(
            "no agent is configured to do the work",
            hint="--executor cli:<preset>, acp:<preset>, api:<provider>:<model>, 'cmd:<shell command>', human or "
            "script:<file>; or gate.executor",
        )
    resolved = agents(backend_choices, requested)
    for status in (standing for agent in resolved.agents for standing in agent.standings):
        if status.missing and is_agent(status.spec):
            raise InputError(status.missing, hint=status.hint)
    problems = resolved.problems
    if refused := [problem.text for problem in problems if problem.refuse]:
        raise InputError("; ".join(refused), hint="`proofstone backends` shows which agent serves each role")
    return specs_by_role, [problem.text for problem in problems]


def limits_of(settings: Settings) -> Limits:
    """Return how often agents may be asked to confirm that they understand their task."""
    understanding = settings.understanding
    return Limits(
        silence_seconds=understanding.silence_seconds,
        question_apart_seconds=understanding.question_apart_seconds,
        milestones=understanding.milestones,
    )


def lasting(spec: str, folder: Path) -> str:
    """Return the spec with the absolute path of a script, so that it means the same wherever the run is resumed."""
    kind, _, rest = spec.partition(":")
    return f"script:{folder / rest}" if kind == "script" and not Path(rest).is_absolute() else spec

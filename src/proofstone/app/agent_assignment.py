"""Decide which agents work at the gate and what they may spend, from the command line and the settings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

from proofstone.agents.backends import Backend
from proofstone.agents.backends.factory import build_backend
from proofstone.agents.executors.people import ReadLine
from proofstone.agents.gate_agents import is_agent_spec
from proofstone.agents.rules import budget as budget_rules
from proofstone.agents.spending import SpendingMeter, list_spending, read_dispatch_records
from proofstone.app.agents import BackendChoices, refuse_repository_login, resolve_agents
from proofstone.check.context import RunContext
from proofstone.common.models import Budget
from proofstone.config.backends import to_budget
from proofstone.config.settings import Settings
from proofstone.config.user import load_user_config, merge_budgets
from proofstone.errors import InputError
from proofstone.gate.context import GateJournal
from proofstone.gate.models import GateSetup
from proofstone.gate.request import GateRequest
from proofstone.gate.view import find_run_budget
from proofstone.plans.models import Plan
from proofstone.supervision.rules.monitor_state import SupervisionLimits


def make_backend_opener(
    setup: GateSetup, root: Path, listen: ReadLine | None, stack: ExitStack
) -> Callable[[Sequence[str]], Backend]:
    """Return a function that opens backends for a run in the repository at `root`. `stack` closes them."""
    person = load_user_config()

    def backend(specs: Sequence[str]) -> Backend:
        opened = build_backend(specs, folder=Path(setup.plan_path).parent, root=root, listen=listen, person=person)
        stack.callback(opened.close)
        return opened

    return backend


def amend_budget(world: RunContext, setup: GateSetup, plan: Plan, words: tuple[str, ...]) -> None:
    """Record a new budget for the agents of a run, if the person gives one. It must exceed what was spent: a smaller
    budget would end the run at once."""
    if not words:
        return
    journal = GateJournal.open(world.ledger, world.run_id, plan)
    budget = raise_budget(world, find_run_budget(setup, journal), words)
    journal.note("run.budget", budget=budget.model_dump(mode="json"))


def raise_budget(world: RunContext, budget: Budget, words: tuple[str, ...]) -> Budget:
    """Return the budget with the person's changes. Raise an InputError if the run has already spent that much."""
    budget = _apply_budget_options(budget, words)
    recorded = read_dispatch_records(world.ledger, world.run_id)
    meter = SpendingMeter(budget, list_spending(recorded))
    for dispatch in recorded.values():
        if dispatch.occasion and (why := meter.explain_spent_budget(dispatch.occasion.role, dispatch.occasion.task)):
            raise InputError(why, hint="a budget counts from the beginning of the run: give more than was spent")
    return budget


def determine_budget(settings: Settings, words: tuple[str, ...]) -> Budget:
    """Return what the agents of a run may spend. The command line overrides the person's settings, which override the
    repository's."""
    return _apply_budget_options(to_budget(merge_budgets(load_user_config().settings, settings)), words)


def _apply_budget_options(budget: Budget, words: tuple[str, ...]) -> Budget:
    try:
        return budget_rules.amend_budget(budget, words)
    except ValueError as error:
        raise InputError(
            f"--budget {error}", hint="for instance --budget tokens=500000 or --budget task.usd=2"
        ) from error


def assign_agents(world: RunContext, request: GateRequest) -> tuple[dict[str, tuple[str, ...]], list[str]]:
    """Return the specs of the executor and the architect by role, fallbacks last, and notes for the person."""
    requested = {"executor": request.executor, "architect": request.architect}
    command_line: dict[str, tuple[str, ...]] = (
        {role: request.parent_run.agents[role] for role in requested}
        if request.parent_run is not None
        else {role: (spec,) for role, spec in requested.items() if spec}
    )
    backend_choices = BackendChoices(world.repository.root, world.settings, load_user_config(), command_line)
    choices = [backend_choices.choice(role) for role in requested]
    for choice in choices:
        refuse_repository_login(choice)
    specs_by_role = {
        choice.agent: tuple(absolute_script(spec, backend_choices.folder_of(choice.origin)) for spec in choice.specs)
        for choice in choices
    }
    if not specs_by_role["executor"]:
        raise InputError(
            "no agent is configured to do the work",
            hint="--executor cli:<preset>, acp:<preset>, api:<provider>:<model>, 'cmd:<shell command>', human or "
            "script:<file>; or gate.executor",
        )
    resolved = resolve_agents(backend_choices, requested)
    for status in (standing for agent in resolved.agents for standing in agent.backends):
        if status.missing and is_agent_spec(status.spec):
            raise InputError(status.missing, hint=status.hint)
    problems = resolved.problems
    if refused := [problem.text for problem in problems if problem.is_refused]:
        raise InputError("; ".join(refused), hint="`proofstone backends` shows which agent serves each role")
    return specs_by_role, [problem.text for problem in problems]


def read_monitor_limits(settings: Settings) -> SupervisionLimits:
    """Return how often agents may be asked to confirm that they understand their task."""
    understanding = settings.understanding
    return SupervisionLimits(
        silence_seconds=understanding.silence_seconds,
        question_apart_seconds=understanding.question_apart_seconds,
    )


def absolute_script(spec: str, folder: Path) -> str:
    """Return the spec with the absolute path of a script, so that it means the same wherever the run is resumed."""
    kind, _, rest = spec.partition(":")
    return f"script:{folder / rest}" if kind == "script" and not Path(rest).is_absolute() else spec

"""Build the runs of `proofstone gate` and answer questions about them. This module chooses the implementations.

Everything that can be wrong with the input is found here, before anything is written.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

from proofstone import __version__
from proofstone.agents.bus import MessageBus
from proofstone.agents.dispatch import Dispatcher
from proofstone.agents.executors.context import Executor
from proofstone.agents.executors.people import ReadLine
from proofstone.agents.gate_agents import AgentExecutor, AskJudge, GateAgentFactory
from proofstone.agents.spending import SpendingMeter, list_spending, read_dispatch_records
from proofstone.app.agent_assignment import (
    amend_budget,
    assign_agents,
    determine_budget,
    make_backend_opener,
    read_monitor_limits,
)
from proofstone.app.check_base import read_settings_at
from proofstone.app.context import (
    ensure_private_home,
    new_run_id,
    open_run_context,
    open_writable_ledger,
    require_outside_home,
)
from proofstone.app.runs import RunCatalog, refuse_cancelled, reopen_run
from proofstone.check.context import NullProgress, RunContext
from proofstone.check.held_out import find_held_out_paths, read_held_out_files
from proofstone.config.loader import load_settings
from proofstone.config.settings import GateSettings
from proofstone.errors import InputError
from proofstone.gate.commands import apply_commands, validate_command
from proofstone.gate.context import GateContext, GateJournal
from proofstone.gate.finish import write_state_page
from proofstone.gate.models import CriteriaJudgement, GateSetup, RunView
from proofstone.gate.preflight import (
    can_sign,
    choose_branch_and_base,
    is_tracked,
    list_own_files,
    list_skipped_hooks,
    list_untracked,
    refuse_dirty,
    refuse_foreign_pages,
    refuse_unfinished_plans,
    validate_agents,
)
from proofstone.gate.request import GateObserver, GateRequest, ResumeRequest, UserCommand, UserCommandKind
from proofstone.gate.rules.deadlines import find_raised_deadlines
from proofstone.gate.rules.progress import count_tasks
from proofstone.gate.run import GateRun
from proofstone.gate.supervisor_factory import NOT_APPLICABLE_EVENT, SupervisorFactory
from proofstone.gate.view import DEADLINES_RAISED, build_run_view, find_run_budget, load_gate_plan, read_gate_setup
from proofstone.git.commit import read_identity
from proofstone.git.pending_commit import exclude_from_git, signs_commits
from proofstone.git.repository import open_repository
from proofstone.ledger import Ledger
from proofstone.ledger.artifacts import ArtifactStore
from proofstone.ledger.connection import artifacts_path
from proofstone.ledger.models import EventRow
from proofstone.ledger.opening import open_ledger
from proofstone.machine.files import read_plan_file
from proofstone.machine.locks import RunLockedError, is_run_locked, lock_run
from proofstone.plan_gate.journal import explain_not_verified
from proofstone.plans.lint import find_lint_problems, select_errors
from proofstone.plans.models import Plan
from proofstone.plans.parser import read_plan
from proofstone.runtime.run_index import RunSummary
from proofstone.supervision.agent_supervision import REQUIREMENT_ADDED, ContextBoard, explain_not_supervised


@contextmanager
def build_gate_run(
    directory: Path,
    plan_path: Path,
    request: GateRequest,
    watching: GateObserver,
    *,
    listen: ReadLine | None = None,
    home: Path | None = None,
) -> Iterator[GateRun]:
    """Build a `proofstone gate`. Its first row is written; nothing else has happened."""
    raw, text = read_plan_file(plan_path)
    plan = validate_plan(text, str(plan_path))
    plan_path = plan_path.parent.resolve() / plan_path.name
    refuse_foreign_pages(plan_path, plan)
    refuse_unfinished_plans(plan, plan_path)
    repository = open_repository(directory)
    home = require_outside_home(repository, home)
    within = request.parent_run
    if within is None:
        branch, base = choose_branch_and_base(repository, plan, plan_path, request.branch, _reserved_branches(home))
        refuse_dirty(repository, branch, plan_path, allowed=request.allow_dirty)
    else:
        branch, base = within.ref, within.base_commit
    settings = read_settings_at(repository, within.settings_commit if within else base)
    run_id = within.run_id if within else new_run_id()
    tree = repository.git.find_tree(base)
    with ExitStack() as stack:
        stack.enter_context(lock_run(home, run_id))
        world = stack.enter_context(
            open_run_context(
                repository,
                (base, tree),
                settings,
                NullProgress(),
                home=home,
                run_id=run_id,
                require_sandbox=request.require_sandbox,
                settings_commit=within.settings_commit if within else base,
            )
        )
        held_out = any(task.heldout for task in plan.tasks)
        setup = _build_setup(world, request, plan_path, hashlib.sha256(raw).hexdigest(), branch, held_out=held_out)
        read_held_out_files(request.heldout_files)  # fails now if they are invalid
        if request.requires_verified_plan or settings.gate.verified_plan:
            _refuse_unverified(world, plan_path, setup.plan_artifact)
        validate_agents(setup)
        artifact = world.artifacts.put(raw)
        exclude_from_git(repository, list_own_files(repository, plan_path))
        world.ledger.append(
            artifact.to_row("text/markdown; charset=utf-8"),
            EventRow(run_id=run_id, type="run.started", payload=setup.model_dump(mode="json")),
        )
        minutes = request.minutes or settings.gate.run_minutes
        yield stack.enter_context(
            _build_run(world, setup, plan, watching, listen, wait=request.waits_for_person, minutes=minutes)
        )


@contextmanager
def resume_gate(
    run_id: str,
    request: ResumeRequest,
    watching: GateObserver,
    *,
    listen: ReadLine | None = None,
    home: Path | None = None,
) -> Iterator[GateRun]:
    """Resume a run of the gate from its journal."""
    home = ensure_private_home(home)
    with closing(open_ledger(home, "read")) as ledger:
        setup = read_gate_setup(ledger, run_id)
    with ExitStack() as stack:
        world = stack.enter_context(reopen_run(run_id, setup, home, require_sandbox=setup.require_sandbox))
        plan = load_gate_plan(setup, world.artifacts)
        minutes = request.minutes or setup.minutes
        amend_budget(world, setup, plan, request.budget)
        raised = find_raised_deadlines(world.settings.gate, load_settings(world.repository.root).gate)
        if raised:
            world.ledger.append(EventRow(run_id=run_id, type=DEADLINES_RAISED, payload=dict(raised)))
        deadlines = world.settings.gate.model_copy(update=raised)
        run = stack.enter_context(
            _build_run(
                world,
                setup,
                plan,
                watching,
                listen,
                wait=request.waits_for_person,
                minutes=minutes,
                deadlines=deadlines,
            )
        )
        for task_id in _tasks_to_retry(run.view(), request.retry):
            command = UserCommand(UserCommandKind.RETRY, by=request.by, text=request.note, seconds=request.seconds)
            validate_command(run.journal, task_id, command, world.repository, setup)
            run.journal.record_command(task_id, command)
        run.journal.note("run.resumed")
        yield run


def validate_plan(text: str, path: str) -> Plan:
    """Return the plan if it can run. Otherwise raise an InputError that lists every problem."""
    plan, problems = read_plan(text, path)
    blocking = select_errors((*problems, *(find_lint_problems(plan, text) if plan else ())))
    if plan is not None and not blocking:
        return plan
    lines = [f"{path}:{problem.line}: {problem.message}\n  {problem.hint}" for problem in blocking]
    raise InputError("\n".join(lines), hint=f"`proofstone plan lint {path}` shows these errors and further suggestions")


def _refuse_unverified(world: RunContext, plan_path: Path, digest: str) -> None:
    """Refuse a plan that has not passed the plan gate exactly as it is."""
    if why := explain_not_verified(world.ledger, digest, str(world.repository.root)):
        hint = (
            f"`{why.next_command}`"
            if why.next_command
            else f"`proofstone verify-plan {plan_path}` verifies it and says what it lacks"
        )
        raise InputError(f"{plan_path}: {why.why}", hint=hint)


def _reserved_branches(home: Path) -> frozenset[str]:
    """Return the branches that runs under way will commit to."""
    under_way = [run.run_id for run in GATE_RUNS.list_started(home) if is_run_locked(home, run.run_id)]
    if not under_way:
        return frozenset()
    with closing(open_ledger(home, "read")) as ledger:
        return frozenset(read_gate_setup(ledger, run_id).branch for run_id in under_way)


def find_run(text: str, home: Path | None = None) -> str:
    """Return the id of the run that `text` means: a whole id, a unique beginning or end of one, or `last`. `last` is
    the last run of the current repository, or of all if there is none."""
    return GATE_RUNS.find(text, home)


def read_run_view(run_id: str, home: Path | None = None) -> RunView:
    """Return the current state of a run."""
    home = ensure_private_home(home)
    with closing(open_ledger(home, "read")) as ledger:
        return _read_view(ledger, home, run_id)


class GateRunCatalog(RunCatalog[GateSetup, RunView]):
    """The runs of the task gate. Their state follows from the states of their tasks."""

    def _load_view(self, run_id: str, home: Path) -> RunSummary[GateSetup]:
        view = read_run_view(run_id, home)
        counts = count_tasks(view)
        details = {
            "title": view.plan.title,
            "outcome": view.outcome.value if view.outcome else None,
            "tasks": counts.total,
            "passed": counts.passed,
            "failed": counts.failed,
        }
        setup = self.read_setup(run_id, home)
        return RunSummary(run_id, setup, view.state, view.reason, view.started_at, view.updated_at, details)

    def _load_report(self, run_id: str, home: Path) -> RunView | None:
        return read_run_view(run_id, home)


GATE_RUNS: Final = GateRunCatalog(GateSetup, lambda _ledger, _run_id: None, lambda view: view.state)
"""The runs of the task gate."""


def find_task(view: RunView, text: str) -> str:
    """Return the id of the task that `text` means: `task-03`, `3`, or a unique part of its name."""
    tasks = view.plan.tasks
    exact = [task.id for number, task in enumerate(tasks, start=1) if text in (task.id, str(number), task.name)]
    matches = exact or [task.id for task in tasks if text.lower() in task.name.lower()]
    if len(matches) == 1:
        return matches[0]
    available = ", ".join(f"{task.id} ({task.name})" for task in tasks)
    raise InputError(
        f"{text}: names {'several tasks' if matches else 'no task'} of {view.run_id}", hint=f"it has: {available}"
    )


def record_command(run_id: str, task_id: str, word: UserCommand, home: Path | None = None) -> str:
    """Record a command of the person and return what happens next. The command takes effect at once, unless another
    process runs the run: that process applies it."""
    home = ensure_private_home(home)
    with open_writable_ledger(home) as ledger:
        setup = read_gate_setup(ledger, run_id)
        refuse_cancelled(setup.parent or run_id, home)
        artifacts = ArtifactStore(artifacts_path(home))
        repository, plan = open_repository(Path(setup.repository)), load_gate_plan(setup, artifacts)
        with ExitStack() as stack:
            try:
                stack.enter_context(lock_run(home, run_id))
            except RunLockedError:
                journal = GateJournal.open(ledger, run_id, plan)
                validate_command(journal, task_id, word, repository, setup)
                journal.record_command(task_id, word)
                return "recorded; the run is under way and will apply it"
            # Read the journal only now: nobody else can add to it while the lock is held.
            journal = GateJournal.open(ledger, run_id, plan)
            validate_command(journal, task_id, word, repository, setup)
            journal.record_command(task_id, word)
            apply_commands(journal, lambda _: True, repository, setup)
            write_state_page(Path(setup.plan_path), build_run_view(setup, journal, home=home, running=False))
            return f"recorded; `proofstone resume {setup.parent or run_id}` continues the run"


def judge_criteria(run_id: str, holds: bool, note: str, by: str, home: Path | None = None) -> str:
    """Record what a person says about the criteria that nobody has judged, and return what happens next."""
    home = ensure_private_home(home)
    with open_writable_ledger(home) as ledger, lock_run(home, run_id):
        setup = read_gate_setup(ledger, run_id)
        refuse_cancelled(setup.parent or run_id, home)
        journal = GateJournal.open(ledger, run_id, load_gate_plan(setup, ArtifactStore(artifacts_path(home))))
        unjudged = journal.find_unjudged()
        if not unjudged:
            raise InputError(
                f"{run_id}: no criterion waits for your word", hint=f"`proofstone status {run_id}` shows what does"
            )
        journal.record_judgement(CriteriaJudgement(judged_by=by, holds=holds, note=note, criteria=unjudged))
        write_state_page(Path(setup.plan_path), build_run_view(setup, journal, home=home, running=False))
        return f"recorded; `proofstone resume {setup.parent or run_id}` ends the run"


def _read_view(ledger: Ledger, home: Path, run_id: str) -> RunView:
    setup = read_gate_setup(ledger, run_id)
    journal = GateJournal.open(ledger, run_id, load_gate_plan(setup, ArtifactStore(artifacts_path(home))))
    return build_run_view(setup, journal, home=home, running=is_run_locked(home, run_id))


def _tasks_to_retry(view: RunView, wanted: tuple[str, ...]) -> list[str]:
    """Return the ids of the tasks to retry. `all` means the failed and blocked tasks."""
    if "all" in wanted:
        return [task.record.id for task in view.tasks if task.record.state.value in ("FAILED", "BLOCKED")]
    return [find_task(view, text) for text in wanted]


@contextmanager
def _build_run(
    world: RunContext,
    setup: GateSetup,
    plan: Plan,
    watching: GateObserver,
    listen: ReadLine | None,
    *,
    wait: bool,
    minutes: float,
    deadlines: GateSettings | None = None,
) -> Iterator[GateRun]:
    """Build a run with its journal, budget and agents."""
    journal = GateJournal.open(world.ledger, world.run_id, plan)
    recorded = read_dispatch_records(world.ledger, world.run_id)
    meter = SpendingMeter(find_run_budget(setup, journal), list_spending(recorded))
    dispatcher = Dispatcher(MessageBus(world.ledger, world.run_id), meter, recorded, watching.on_spending)
    with ExitStack() as stack:
        agents = GateAgentFactory(
            make_backend_opener(setup, world.repository.root, listen, stack),
            dispatcher,
            listen,
            world.store.git(),
            world.settings.tools.secret,
        )
        executor = agents.build_executor((setup.executor, *setup.fallbacks.get("executor", ())))
        architect = agents.build_architect((setup.architect, *setup.fallbacks.get("architect", ())))
        yield GateRun(
            GateContext(
                context=replace(world, held_out=_find_held_out(world, setup, plan)),
                setup=setup,
                plan_file=Path(setup.plan_path),
                journal=journal,
                executor=_supervise(world, setup, plan, journal, executor, agents.build_judge(architect)),
                architect=architect,
                observer=watching,
                terminal=threading.Lock() if listen is not None else None,
                waits_for_person=wait,
                minutes=minutes,
                deadlines=deadlines,
                meter=meter,
            )
        )


def _find_held_out(world: RunContext, setup: GateSetup, plan: Plan) -> tuple[Path, ...]:
    """Return the plan and what its held-out checks consist of; nothing if the plan has none."""
    commands = [command for task in plan.tasks for command in task.heldout]
    if not commands:
        return ()
    files = Path(setup.heldout_files) if setup.heldout_files else None
    return (Path(setup.plan_path), *find_held_out_paths(world.repository, commands, files, os.environ))


def _supervise(
    world: RunContext, setup: GateSetup, plan: Plan, journal: GateJournal, executor: Executor, judge: AskJudge | None
) -> Executor:
    """Return the executor, supervised if the run asks agents to confirm their understanding. Record the reason if it
    cannot be supervised."""
    if not setup.asks:
        return executor
    why = explain_not_supervised("executor", executor.backend) if isinstance(executor, AgentExecutor) else ""
    if not isinstance(executor, AgentExecutor) or why:
        kind = setup.executor.partition(":")[0]
        if not world.ledger.read(EventRow, run_id=world.run_id, type=NOT_APPLICABLE_EVENT, limit=1):
            journal.note(NOT_APPLICABLE_EVENT, why=why or f"not applicable: {kind} cannot be asked")
        return executor
    parent_id = setup.parent or world.run_id
    (first_seq,) = [row.seq for row in world.ledger.read(EventRow, run_id=world.run_id, type="run.started", limit=1)]
    amendments = [
        row for row in world.ledger.read(EventRow, run_id=parent_id, type=REQUIREMENT_ADDED) if row.seq < first_seq
    ]
    attending = SupervisorFactory(
        journal=journal,
        board=ContextBoard(world.ledger, parent_id, plan.objective or plan.title),
        backend=executor.backend,
        spec=setup.executor,
        limits=read_monitor_limits(world.settings),
        text=world.artifacts.read(setup.plan_artifact).decode("utf-8"),
        original_plan=plan,
        base_tree=world.base_tree,
        git=world.store.git(),
        secret_patterns=world.settings.tools.secret,
        context_version=1 + len(amendments),
        judge=judge,
    )
    return replace(executor, create_supervisor=attending)


def _build_setup(
    world: RunContext, request: GateRequest, plan_path: Path, plan_artifact: str, branch: str, *, held_out: bool
) -> GateSetup:
    gate, repository = world.settings.gate, world.repository
    author = read_identity(repository)
    specs_by_role, concerns = assign_agents(world, request)
    signed = signs_commits(repository)
    sign = signed and request.sign
    notes = [*world.notes]
    if signed and not sign:
        notes.append("git is configured to sign commits; these are not signed (--no-sign)")
    if held_out and is_tracked(repository, plan_path):
        notes.append(f"{plan_path.name} is committed, so executors can find its held-out commands in the history")
    if ignored := list_untracked(repository, plan_path):
        notes.append(f"uncommitted files are not part of the run: {', '.join(ignored[:5])}")
    hooks = request.hooks or gate.hooks
    skipped, hook_notes = list_skipped_hooks(repository, hooks)
    return GateSetup.model_validate(
        {
            "version": __version__,
            "repository": str(repository.root),
            "plan_path": str(plan_path),
            "plan_artifact": plan_artifact,
            "base_commit": world.base_commit,
            "branch": branch,
            "executor": specs_by_role["executor"][0],
            "architect": specs_by_role["architect"][0],
            "fallbacks": {role: specs[1:] for role, specs in specs_by_role.items() if specs[1:]},
            "budget": request.parent_run.budget
            if request.parent_run
            else determine_budget(world.settings, request.budget),
            "slots": request.slots or gate.slots,
            "minutes": request.minutes or gate.run_minutes,
            "weights": world.settings.controller.weights,
            "hooks": hooks,
            "skipped_hooks": skipped,
            "sign": sign and can_sign(world, author),
            "author_name": author.name,
            "author_email": author.email,
            "require_sandbox": request.require_sandbox,
            "asks": request.parent_run.checks_understanding
            if request.parent_run
            else world.settings.understanding.ask == "always",
            "heldout_files": str(request.heldout_files.absolute()) if request.heldout_files else None,
            "sandbox": world.sandbox.level.value,
            "notes": (*notes, *concerns, *hook_notes),
            "parent": request.parent_run.parent if request.parent_run else "",
            "defers_criteria": request.parent_run.judges_criteria if request.parent_run else False,
            "settings_commit": request.parent_run.settings_commit if request.parent_run else "",
        }
    )

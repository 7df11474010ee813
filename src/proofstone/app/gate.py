"""Build the runs of `proofstone gate` and answer questions about them. This module chooses the implementations.

Everything that can be wrong with the input is found here, before anything is written.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from pathlib import Path

from proofstone import __version__
from proofstone.agents.bus import Bus
from proofstone.agents.dispatch import Dispatcher
from proofstone.agents.executors.context import Executor
from proofstone.agents.executors.people import Listen
from proofstone.agents.gate_agents import AgentExecutor, Casting, JudgeAt
from proofstone.agents.spending import Meter, on_record, spent_so_far
from proofstone.app.agent_assignment import amend_budget, backends_for, budget_for, limits_of, served
from proofstone.app.context import new_run_id, opened_world, outside_of, private_home, settings_at, writing_ledger
from proofstone.app.runs import on_their_own, reopened, run_of
from proofstone.check.context import Silent, World
from proofstone.check.setup import held_out_files
from proofstone.errors import InputError
from proofstone.gate.attending import NOT_ASKED, Attending
from proofstone.gate.commands import heed, refuse_senseless
from proofstone.gate.context import GateWorld, Journal
from proofstone.gate.finishing import write_state
from proofstone.gate.models import GateSetup, RunView
from proofstone.gate.preflight import (
    branch_and_base,
    can_sign,
    hooks_left_out,
    is_tracked,
    own_files,
    refuse_dirty,
    refuse_foreign_pages,
    refuse_unfinished_plans,
    refuse_unusable,
    untracked,
)
from proofstone.gate.request import GateRequest, ResumeRequest, Watching, Word, WordKind
from proofstone.gate.run import GateRun
from proofstone.gate.view import budget_of, plan_of, setup_of, view_of
from proofstone.git.commit import identity
from proofstone.git.pending import exclude, wants_signature
from proofstone.git.repository import open_repository
from proofstone.ledger import Ledger
from proofstone.ledger.artifacts import ArtifactStore
from proofstone.ledger.connection import artifacts_path, ledger_path
from proofstone.ledger.models import EventRow
from proofstone.ledger.opening import open_ledger
from proofstone.ledger.query import KnownRun, started_runs
from proofstone.machine.files import load_plan
from proofstone.machine.locks import RunHeldError, held, is_held
from proofstone.plan_gate.journal import why_not_verified
from proofstone.plans.lint import errors, lint
from proofstone.plans.models import Plan
from proofstone.plans.reading import read_plan
from proofstone.supervision.attended import ADDED, Board, why_not_asked


@contextmanager
def gate_run(
    directory: Path,
    plan_path: Path,
    request: GateRequest,
    watching: Watching,
    *,
    listen: Listen | None = None,
    home: Path | None = None,
) -> Iterator[GateRun]:
    """Build a `proofstone gate`. Its first row is written; nothing else has happened."""
    raw, text = load_plan(plan_path)
    plan = sound_plan(text, str(plan_path))
    plan_path = plan_path.parent.resolve() / plan_path.name
    refuse_foreign_pages(plan_path, plan)
    refuse_unfinished_plans(plan, plan_path)
    repository = open_repository(directory)
    home = outside_of(repository, home)
    within = request.within
    if within is None:
        branch, base = branch_and_base(repository, plan, plan_path, request.branch, _reserved_branches(home))
        refuse_dirty(repository, branch, plan_path, allowed=request.allow_dirty)
    else:
        branch, base = within.ref, within.base_commit
    settings = settings_at(repository, within.settings_commit if within else base)
    run_id = within.run_id if within else new_run_id()
    tree = repository.git.tree_of(base)
    with ExitStack() as stack:
        stack.enter_context(held(home, run_id))
        world = stack.enter_context(
            opened_world(
                repository,
                (base, tree),
                settings,
                Silent(),
                home=home,
                run_id=run_id,
                require_sandbox=request.require_sandbox,
                settings_commit=within.settings_commit if within else base,
            )
        )
        held_out = any(task.heldout for task in plan.tasks)
        setup = _build_setup(world, request, plan_path, hashlib.sha256(raw).hexdigest(), branch, held_out=held_out)
        held_out_files(request.heldout_files)  # fails now if they are invalid
        if request.verified or settings.gate.verified_plan:
            _refuse_unverified(world, plan_path, setup.plan_artifact)
        refuse_unusable(setup)
        artifact = world.artifacts.put(raw)
        exclude(repository, own_files(repository, plan_path))
        world.ledger.append(
            artifact.row("text/markdown; charset=utf-8"),
            EventRow(run_id=run_id, type="run.started", payload=setup.model_dump(mode="json")),
        )
        minutes = request.minutes or settings.gate.run_minutes
        yield stack.enter_context(_build_run(world, setup, plan, watching, listen, wait=request.wait, minutes=minutes))


@contextmanager
def resumed_gate(
    run_id: str,
    request: ResumeRequest,
    watching: Watching,
    *,
    listen: Listen | None = None,
    home: Path | None = None,
) -> Iterator[GateRun]:
    """Resume a run of the gate from its journal."""
    home = private_home(home)
    with closing(open_ledger(home, "read")) as ledger:
        setup = setup_of(ledger, run_id)
    with ExitStack() as stack:
        world = stack.enter_context(reopened(run_id, setup, home, require_sandbox=setup.require_sandbox))
        plan = plan_of(setup, world.artifacts)
        minutes = request.minutes or setup.minutes
        amend_budget(world, setup, plan, request.budget)
        run = stack.enter_context(_build_run(world, setup, plan, watching, listen, wait=request.wait, minutes=minutes))
        for task_id in _tasks_to_retry(run.view(), request.retry):
            command = Word(WordKind.RETRY, by=request.by, text=request.note)
            refuse_senseless(run.journal, task_id, command, world.repository, setup)
            run.journal.say(task_id, command)
        run.journal.note("run.resumed")
        yield run


def sound_plan(text: str, path: str) -> Plan:
    """Return the plan if it can run. Otherwise raise an InputError that lists every problem."""
    plan, problems = read_plan(text, path)
    blocking = errors((*problems, *(lint(plan, text) if plan else ())))
    if plan is not None and not blocking:
        return plan
    lines = [f"{path}:{problem.line}: {problem.message}\n  {problem.hint}" for problem in blocking]
    raise InputError("\n".join(lines), hint=f"`proofstone plan lint {path}` shows these errors and further suggestions")


def list_runs(home: Path | None = None, *, limit: int | None = None) -> list[RunView]:
    """Return the runs of the gate, newest first, at most `limit`."""
    home = private_home(home)
    run_ids = [run.run_id for run in _started_runs(home) if not run.parent][:limit]
    if not run_ids:
        return []
    with closing(open_ledger(home, "read")) as ledger:
        return [_read_view(ledger, home, run_id) for run_id in run_ids]


def _refuse_unverified(world: World, plan_path: Path, digest: str) -> None:
    """Refuse a plan that has not passed the plan gate exactly as it is."""
    if why := why_not_verified(world.ledger, digest, str(world.repository.root)):
        hint = (
            f"`{why.next}`" if why.next else f"`proofstone verify-plan {plan_path}` verifies it and says what it lacks"
        )
        raise InputError(f"{plan_path}: {why.why}", hint=hint)


def _started_runs(home: Path) -> tuple[KnownRun, ...]:
    """Return every run of the gate, newest first."""
    path = ledger_path(home)
    return started_runs(path, "gate") if path.is_file() else ()


def _reserved_branches(home: Path) -> frozenset[str]:
    """Return the branches that runs under way will commit to."""
    under_way = [run.run_id for run in _started_runs(home) if is_held(home, run.run_id)]
    if not under_way:
        return frozenset()
    with closing(open_ledger(home, "read")) as ledger:
        return frozenset(setup_of(ledger, run_id).branch for run_id in under_way)


def find_run(text: str, home: Path | None = None) -> str:
    """Return the id of the run that `text` means: a whole id, a unique beginning or end of one, or `last`. `last` is
    the last run of the current repository, or of all if there is none."""
    return run_of("gate", text, on_their_own(text, _started_runs(private_home(home))))


def view_run(run_id: str, home: Path | None = None) -> RunView:
    """Return the current state of a run."""
    home = private_home(home)
    with closing(open_ledger(home, "read")) as ledger:
        return _read_view(ledger, home, run_id)


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


def say(run_id: str, task_id: str, word: Word, home: Path | None = None) -> str:
    """Record a command of the person and return what happens next. The command takes effect at once, unless another
    process runs the run: that process applies it."""
    home = private_home(home)
    with writing_ledger(home) as ledger:
        setup = setup_of(ledger, run_id)
        artifacts = ArtifactStore(artifacts_path(home))
        repository, plan = open_repository(Path(setup.repository)), plan_of(setup, artifacts)
        with ExitStack() as stack:
            try:
                stack.enter_context(held(home, run_id))
            except RunHeldError:
                journal = Journal.opened(ledger, run_id, plan)
                refuse_senseless(journal, task_id, word, repository, setup)
                journal.say(task_id, word)
                return "recorded; the run is under way and will apply it"
            # Read the journal only now: nobody else can add to it while the lock is held.
            journal = Journal.opened(ledger, run_id, plan)
            refuse_senseless(journal, task_id, word, repository, setup)
            journal.say(task_id, word)
            heed(journal, lambda _: True, repository, setup)
            write_state(Path(setup.plan_path), view_of(setup, journal, home=home, running=False))
            return f"recorded; `proofstone resume {setup.parent or run_id}` continues the run"


def whole_of(run_id: str, home: Path | None = None) -> str:
    """Return the id of the run that this run is a part of, or its own id."""
    with closing(open_ledger(private_home(home), "read")) as ledger:
        return setup_of(ledger, run_id).parent or run_id


def _read_view(ledger: Ledger, home: Path, run_id: str) -> RunView:
    setup = setup_of(ledger, run_id)
    journal = Journal.opened(ledger, run_id, plan_of(setup, ArtifactStore(artifacts_path(home))))
    return view_of(setup, journal, home=home, running=is_held(home, run_id))


def _tasks_to_retry(view: RunView, wanted: tuple[str, ...]) -> list[str]:
    """Return the ids of the tasks to retry. `all` means the failed and blocked tasks."""
    if "all" in wanted:
        return [task.record.id for task in view.tasks if task.record.state.value in ("FAILED", "BLOCKED")]
    return [find_task(view, text) for text in wanted]


@contextmanager
def _build_run(
    world: World,
    setup: GateSetup,
    plan: Plan,
    watching: Watching,
    listen: Listen | None,
    *,
    wait: bool,
    minutes: float,
) -> Iterator[GateRun]:
    """Build a run with its journal, budget and agents."""
    journal = Journal.opened(world.ledger, world.run_id, plan)
    recorded = on_record(world.ledger, world.run_id)
    meter = Meter(budget_of(setup, journal), spent_so_far(recorded))
    dispatcher = Dispatcher(Bus(world.ledger, world.run_id), meter, recorded, watching.spending)
    with ExitStack() as stack:
        agents = Casting(
            backends_for(setup, world.repository.root, listen, stack),
            dispatcher,
            listen,
            world.store.git(),
            world.settings.tools.secret,
        )
        executor = agents.executor((setup.executor, *setup.fallbacks.get("executor", ())))
        architect = agents.architect((setup.architect, *setup.fallbacks.get("architect", ())))
        yield GateRun(
            GateWorld(
                world=world,
                setup=setup,
                plan_file=Path(setup.plan_path),
                journal=journal,
                executor=_supervise(world, setup, plan, journal, executor, agents.judge(architect)),
                architect=architect,
                watching=watching,
                terminal=threading.Lock() if listen is not None else None,
                wait=wait,
                minutes=minutes,
                meter=meter,
            )
        )


def _supervise(
    world: World, setup: GateSetup, plan: Plan, journal: Journal, executor: Executor, judge: JudgeAt | None
) -> Executor:
    """Return the executor, supervised if the run asks agents to confirm their understanding. Record the reason if it
    cannot be supervised."""
    if not setup.asks:
        return executor
    why = why_not_asked("executor", executor.backend) if isinstance(executor, AgentExecutor) else ""
    if not isinstance(executor, AgentExecutor) or why:
        kind = setup.executor.partition(":")[0]
        if not world.ledger.read(EventRow, run_id=world.run_id, type=NOT_ASKED, limit=1):
            journal.note(NOT_ASKED, why=why or f"not applicable: {kind} cannot be asked")
        return executor
    parent_id = setup.parent or world.run_id
    (first_seq,) = [row.seq for row in world.ledger.read(EventRow, run_id=world.run_id, type="run.started", limit=1)]
    amendments = [row for row in world.ledger.read(EventRow, run_id=parent_id, type=ADDED) if row.seq < first_seq]
    attending = Attending(
        journal=journal,
        board=Board(world.ledger, parent_id, plan.objective or plan.title),
        backend=executor.backend,
        spec=setup.executor,
        limits=limits_of(world.settings),
        text=world.artifacts.read(setup.plan_artifact).decode("utf-8"),
        original=plan,
        base_tree=world.base_tree,
        git=world.store.git(),
        secret=world.settings.tools.secret,
        knows=1 + len(amendments),
        judge=judge,
    )
    return replace(executor, attends=attending)


def _build_setup(
    world: World, request: GateRequest, plan_path: Path, plan_artifact: str, branch: str, *, held_out: bool
) -> GateSetup:
    gate, repository = world.settings.gate, world.repository
    author = identity(repository)
    specs_by_role, concerns = served(world, request)
    signed = wants_signature(repository)
    sign = signed and request.sign
    notes = [*world.notes]
    if signed and not sign:
        notes.append("git is configured to sign commits; these are not signed (--no-sign)")
    if held_out and is_tracked(repository, plan_path):
        notes.append(f"{plan_path.name} is committed, so executors can find its held-out commands in the history")
    if ignored := untracked(repository, plan_path):
        notes.append(f"uncommitted files are not part of the run: {', '.join(ignored[:5])}")
    hooks = request.hooks or gate.hooks
    skipped, hook_notes = hooks_left_out(repository, hooks)
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
            "budget": request.within.budget if request.within else budget_for(world.settings, request.budget),
            "slots": request.slots or gate.slots,
            "minutes": request.minutes or gate.run_minutes,
            "hooks": hooks,
            "skipped_hooks": skipped,
            "sign": sign and can_sign(world, author),
            "author_name": author.name,
            "author_email": author.email,
            "require_sandbox": request.require_sandbox,
            "asks": request.within.asks if request.within else world.settings.understanding.ask == "always",
            "heldout_files": str(request.heldout_files.absolute()) if request.heldout_files else None,
            "sandbox": world.sandbox.level.value,
            "notes": (*notes, *concerns, *hook_notes),
            "parent": request.within.parent if request.within else "",
            "settings_commit": request.within.settings_commit if request.within else "",
        }
    )

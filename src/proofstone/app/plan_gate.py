"""Build the runs of `proofstone verify-plan`: a plan, the agents that challenge it, and its repository."""

from __future__ import annotations

import hashlib
import os
from codecs import BOM_UTF8
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from proofstone import __version__
from proofstone.agents.executors.people import ReadLine
from proofstone.agents.memory.store import memory_path
from proofstone.agents.roles.models.plan_gate_records import ConvergenceStatus
from proofstone.agents.tools.models import Tool
from proofstone.agents.web.providers import build_web, describe_web
from proofstone.app.agent_assignment import determine_budget
from proofstone.app.check_base import read_settings_at
from proofstone.app.context import (
    ensure_private_home,
    new_run_id,
    open_run_context,
    open_writable_ledger,
    require_outside_home,
)
from proofstone.app.runs import RunCatalog, reopen_run
from proofstone.app.team import (
    Team,
    build_dispatcher,
    open_backends,
    open_memory,
    refuse_people_without_terminal,
    select_team,
    update_budget,
)
from proofstone.check.context import NullProgress, RunContext
from proofstone.common.models import Budget
from proofstone.config.user import load_user_config
from proofstone.errors import InputError
from proofstone.git.repository import open_repository
from proofstone.ledger.models import EventRow
from proofstone.machine.files import read_plan_file, write_atomic
from proofstone.machine.locks import lock_run
from proofstone.plan_gate.agents import PlanAgents
from proofstone.plan_gate.examination import PlanExamination, examine_plan
from proofstone.plan_gate.journal import MITIGATED, PlanJournal, find_last_report, read_plan_report
from proofstone.plan_gate.models import PlanGateSetup, PlanReport, PlanVerdict
from proofstone.plan_gate.rules.admission import add_mitigations, is_same_plan, select_mitigations, select_unmitigated
from proofstone.plan_gate.run import MAX_PLAN_AGENTS, AskPlanUser, PlanGateObserver, PlanGateRun
from proofstone.runtime.context import Deadline, ParentRun

_RESEARCHER = "researcher"


@dataclass(frozen=True)
class PlanGateRequest:
    """The options of `proofstone verify-plan`. The settings provide what is not given."""

    backends: Sequence[str] = ()
    """`ROLE=SPEC`, or `SPEC` for every role that has no choice of its own."""
    rules_only: bool = False
    budget: tuple[str, ...] = ()
    minutes: float | None = None
    answers: Mapping[str, str] = field(default_factory=dict)
    by: str = "person"
    parent_run: ParentRun | None = None


@contextmanager
def build_plan_gate_run(
    directory: Path,
    plan_path: Path,
    request: PlanGateRequest,
    watching: PlanGateObserver,
    ask: AskPlanUser,
    *,
    listen: ReadLine | None = None,
    home: Path | None = None,
) -> Iterator[PlanGateRun]:
    """Build a `proofstone verify-plan`. Its first row is written; nothing else has happened."""
    raw, text = read_plan_file(plan_path)
    plan_path = plan_path.parent.resolve() / plan_path.name
    repository = open_repository(directory)
    home = require_outside_home(repository, home)
    within = request.parent_run
    base = repository.resolve_base(within.base_commit if within else "HEAD")
    settings = read_settings_at(repository, within.settings_commit if within else base[0])
    run_id = within.run_id if within else new_run_id()
    with ExitStack() as stack:
        stack.enter_context(lock_run(home, run_id))
        world = stack.enter_context(
            open_run_context(
                repository,
                base,
                settings,
                NullProgress(),
                home=home,
                run_id=run_id,
                require_sandbox=False,
                settings_commit=within.settings_commit if within else "",
            )
        )
        examined = examine_plan(world, text, str(plan_path), hashlib.sha256(raw).hexdigest())
        agents, why_rules_only, notes = _choose_agents(world, request, examined)
        refuse_people_without_terminal(Team(agents), listen, "choose another backend, or use --rules")
        setup = PlanGateSetup(
            version=__version__,
            repository=str(repository.root),
            plan_path=str(plan_path),
            plan_artifact=examined.about.plan_digest,
            base_commit=base[0],
            agents=agents,
            alone=why_rules_only,
            beyond=_available_tools(world) if agents else (),
            minutes=request.minutes or settings.gate.run_minutes,
            budget=within.budget if within else determine_budget(settings, request.budget),
            answers=dict(request.answers) if not agents else {},
            notes=(*world.notes, *notes),
            parent=within.parent if within else "",
            settings_commit=within.settings_commit if within else "",
        )
        artifact = world.artifacts.put(raw)
        world.ledger.append(
            artifact.to_row("text/markdown; charset=utf-8"),
            EventRow(run_id=run_id, type="run.started", payload=setup.model_dump(mode="json")),
        )
        yield _build_run(world, setup, setup.budget, examined, request, watching, ask, listen, stack)


@contextmanager
def resume_plan_gate(
    run_id: str,
    request: PlanGateRequest,
    watching: PlanGateObserver,
    ask: AskPlanUser,
    *,
    listen: ReadLine | None = None,
    home: Path | None = None,
) -> Iterator[PlanGateRun]:
    """Resume a run of the plan gate from its record."""
    home = ensure_private_home(home)
    setup = PLAN_GATE_RUNS.read_setup(run_id, home)
    with ExitStack() as stack:
        world = stack.enter_context(reopen_run(run_id, setup, home))
        text = world.artifacts.read(setup.plan_artifact).decode("utf-8-sig")
        examined = examine_plan(world, text, setup.plan_path, setup.plan_artifact)
        budget = update_budget(world, setup.budget, request.budget)
        run = _build_run(world, setup, budget, examined, request, watching, ask, listen, stack)
        run.journal.note("run.resumed")
        yield run


PLAN_GATE_RUNS: Final = RunCatalog(PlanGateSetup, find_last_report, lambda report: report.verdict or "waiting")
"""The runs of the plan gate."""


def apply_mitigations(run_id: str, by: str, home: Path | None = None) -> tuple[Path, tuple[str, ...]]:
    """Write the mitigations of a verdict into its plan, and record the new plan. Return the plan's path and the ids of
    the challenges that the mitigations answer."""
    home = ensure_private_home(home)
    with open_writable_ledger(home) as ledger:
        report = read_plan_report(ledger, run_id)
        path = Path(report.plan_path).resolve()  # the target of a link, not the link
        to_apply = select_mitigations(report.challenges)
        _refuse_inapplicable(report, path)
        raw, text = read_plan_file(path)
        digest_now = hashlib.sha256(raw).hexdigest()
        applied_digests = [
            row.row.payload.get("digest") for row in ledger.read(EventRow, run_id=run_id, type=MITIGATED)
        ]
        if digest_now in applied_digests:
            raise InputError(f"{path}: already contains the mitigations and has passed the plan gate")
        if digest_now != report.plan_digest:
            raise InputError(
                f"{path}: has changed since {run_id} verified it",
                hint=f"verify it again: proofstone verify-plan {path}",
            )
        revised = add_mitigations(text, to_apply, run_id)
        if not is_same_plan(text, revised):
            raise InputError(
                f"{path}: cannot add to its context without changing its tasks",
                hint="add the mitigations by hand, and verify the plan again",
            )
        data = _encode_like(revised, raw)
        if _encode_like(text, raw) != raw:
            raise InputError(
                f"{path}: has mixed line endings", hint="make them all the same, and verify the plan again"
            )
        ids: list[str] = [challenge.id for challenge in to_apply]
        write_atomic(path, data)
        # Write the file first: the record must not claim a change that did not happen.
        digest = hashlib.sha256(data).hexdigest()
        payload = {"digest": digest, "challenges": [*ids], "by": by}
        ledger.append(EventRow(run_id=run_id, type=MITIGATED, payload=payload))
    return path, tuple(ids)


def _encode_like(text: str, raw: bytes) -> bytes:
    """Encode the text with the line endings and the byte order mark of the file."""
    mark = BOM_UTF8 if raw.startswith(BOM_UTF8) else b""
    return mark + (text.replace("\n", "\r\n") if b"\r\n" in raw else text).encode()


def _refuse_inapplicable(report: PlanReport, path: Path) -> None:
    """Refuse a report whose mitigations cannot be applied."""
    if report.verdict not in (PlanVerdict.PROCEED, PlanVerdict.REVISE):
        verdict = report.verdict or "a question is waiting"
        raise InputError(
            f"{report.run_id}: the verdict is {verdict}; mitigations can be applied only after REVISE or PROCEED",
            hint=report.next_step or None,
        )
    if report.status is ConvergenceStatus.FORCED_EXIT:
        raise InputError(
            f"{report.run_id}: the run ended before it converged, so its mitigations cannot be applied",
            hint=report.next_step or None,
        )
    if not select_mitigations(report.challenges):
        raise InputError(f"{report.run_id}: there is no mitigation to apply", hint=report.next_step or None)
    if unanswered := select_unmitigated(report.challenges):
        ids = ", ".join(challenge.id for challenge in unanswered)
        raise InputError(
            f"{report.run_id}: there is no mitigation for {ids}",
            hint=f"revise {path} to answer it, and verify the plan again",
        )


def _choose_agents(
    world: RunContext, request: PlanGateRequest, examined: PlanExamination
) -> tuple[dict[str, tuple[str, ...]], str, list[str]]:
    """Return the specs by role, the reason why only the rules decide, and notes for the person."""
    if request.rules_only:
        return {}, "no agent is asked (--rules): the rules decide alone", []
    if why := examined.skip_reason:
        return {}, why, []
    if request.parent_run is not None:
        team: Team | None = Team({role: request.parent_run.agents[role] for role in examined.team.roles})
    else:
        team = select_team(world, request.backends, examined.team.roles, "; --rules asks no agent")
    if team is None:
        return {}, "no agent is configured, so the rules decide alone; see `proofstone backends`", []
    notes = [describe_web(load_user_config().settings.web), *team.notes]
    if _RESEARCHER in team.own_tool_roles:
        notes.append("the researcher has its own tools: it is told its tool budgets, but they are not enforced")
    return dict(team.agents), "", notes


def _available_tools(world: RunContext) -> tuple[str, ...]:
    """Return the tools that look beyond the tree and have something to search."""
    web = build_web(load_user_config().settings.web, os.environ)  # starts nothing before its first use
    availability = {
        Tool.MEMORY_SEARCH: memory_path(world.home).is_file(),
        Tool.WEB_SEARCH: web is not None and web.search is not None,
        Tool.WEB_FETCH: web is not None and web.fetch is not None,
    }
    return tuple(tool.value for tool, is_available in availability.items() if is_available)


def _build_run(
    world: RunContext,
    setup: PlanGateSetup,
    budget: Budget,
    examined: PlanExamination,
    request: PlanGateRequest,
    watching: PlanGateObserver,
    ask: AskPlanUser,
    listen: ReadLine | None,
    stack: ExitStack,
) -> PlanGateRun:
    """Build a run with its agents, budget and tools."""
    team, person = Team(setup.agents), load_user_config()
    backends = open_backends(world, team, Path(setup.plan_path).parent, listen, stack)
    beyond = frozenset(map(Tool, setup.beyond))
    web = build_web(person.settings.web, os.environ) if beyond & {Tool.WEB_SEARCH, Tool.WEB_FETCH} else None
    if web is not None:
        stack.callback(web.close)
    memory = open_memory(world) if Tool.MEMORY_SEARCH in beyond else None
    seconds = world.settings.gate.agent_seconds
    agents_at_work = PlanAgents(
        world=world,
        tree=world.base_tree,
        commit=world.base_commit,
        backends=backends,
        dispatcher=build_dispatcher(world, budget, watching.on_spending),
        on_progress=watching.on_activity,
        on_message=watching.on_message,
        seconds=lambda role: None if role in team.human_roles else seconds,
        memory=memory,
        web=web,
        external_tools=beyond,
    )
    stack.callback(agents_at_work.close)
    spec_names = {role: " or ".join(specs) for role, specs in setup.agents.items()}
    return PlanGateRun(
        about=replace(examined.about, agents=spec_names),
        subject=examined.subject(asked=bool(setup.agents), answers=setup.answers, notes=setup.notes),
        discussion=examined.discussion(world.run_id),
        journal=PlanJournal.open(world.ledger, world.run_id),
        agents=agents_at_work,
        observer=watching,
        ask=ask,
        answered_by=request.by,
        note=setup.alone,
        unused_answers=dict(request.answers) if setup.agents else {},  # otherwise they were applied at the start
        max_parallel=1 if team.human_roles else MAX_PLAN_AGENTS,
        deadline=Deadline.after(request.minutes or setup.minutes),
    )

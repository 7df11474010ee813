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
from proofstone.agents.executors.people import Listen
from proofstone.agents.memory.store import FileMemory, memory_path
from proofstone.agents.roles.models.plan_gate_records import ConvergenceStatus
from proofstone.agents.tools.models import Tool
from proofstone.agents.web.providers import web_from, web_in_words
from proofstone.app.agent_assignment import budget_for
from proofstone.app.context import (
    new_run_id,
    opened_world,
    outside_of,
    private_home,
    resolve_base,
    settings_at,
    writing_ledger,
)
from proofstone.app.runs import Runs, reopened
from proofstone.app.team import Team, budget_now, dispatcher_for, made_ready, refuse_people_without_terminal, team_of
from proofstone.check.context import CheckRequest, Silent, World
from proofstone.common.models import Budget
from proofstone.config.person import load_person
from proofstone.errors import InputError
from proofstone.git.repository import open_repository
from proofstone.ledger.models import EventRow
from proofstone.machine.files import load_plan, write_whole
from proofstone.machine.locks import held
from proofstone.plan_gate.agents import PlanAgents
from proofstone.plan_gate.examining import Examined, examine
from proofstone.plan_gate.journal import MITIGATED, PlanJournal, last_report, report_of_run
from proofstone.plan_gate.models import PlanGateSetup, PlanReport, PlanVerdict
from proofstone.plan_gate.rules.admission import is_same_plan, to_take_in, with_mitigations, without_mitigation
from proofstone.plan_gate.run import SLOTS, Ask, PlanGateRun, Watching
from proofstone.runtime.context import Deadline, Within

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
    within: Within | None = None


@contextmanager
def plan_gate_run(
    directory: Path,
    plan_path: Path,
    request: PlanGateRequest,
    watching: Watching,
    ask: Ask,
    *,
    listen: Listen | None = None,
    home: Path | None = None,
) -> Iterator[PlanGateRun]:
    """Build a `proofstone verify-plan`. Its first row is written; nothing else has happened."""
    raw, text = load_plan(plan_path)
    plan_path = plan_path.parent.resolve() / plan_path.name
    repository = open_repository(directory)
    home = outside_of(repository, home)
    within = request.within
    base = resolve_base(repository, CheckRequest(base=within.base_commit if within else None))
    settings = settings_at(repository, within.settings_commit if within else base[0])
    run_id = within.run_id if within else new_run_id()
    with ExitStack() as stack:
        stack.enter_context(held(home, run_id))
        world = stack.enter_context(
            opened_world(
                repository,
                base,
                settings,
                Silent(),
                home=home,
                run_id=run_id,
                require_sandbox=False,
                settings_commit=within.settings_commit if within else "",
            )
        )
        examined = examine(world, text, str(plan_path), hashlib.sha256(raw).hexdigest())
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
            budget=within.budget if within else budget_for(settings, request.budget),
            answers=dict(request.answers) if not agents else {},
            notes=(*world.notes, *notes),
            parent=within.parent if within else "",
            settings_commit=within.settings_commit if within else "",
        )
        artifact = world.artifacts.put(raw)
        world.ledger.append(
            artifact.row("text/markdown; charset=utf-8"),
            EventRow(run_id=run_id, type="run.started", payload=setup.model_dump(mode="json")),
        )
        yield _build_run(world, setup, setup.budget, examined, request, watching, ask, listen, stack)


@contextmanager
def resumed_plan_gate(
    run_id: str,
    request: PlanGateRequest,
    watching: Watching,
    ask: Ask,
    *,
    listen: Listen | None = None,
    home: Path | None = None,
) -> Iterator[PlanGateRun]:
    """Resume a run of the plan gate from its record."""
    home = private_home(home)
    setup = RUNS.setup(run_id, home)
    with ExitStack() as stack:
        world = stack.enter_context(reopened(run_id, setup, home))
        text = world.artifacts.read(setup.plan_artifact).decode("utf-8-sig")
        examined = examine(world, text, setup.plan_path, setup.plan_artifact)
        budget = budget_now(world, setup.budget, request.budget)
        run = _build_run(world, setup, budget, examined, request, watching, ask, listen, stack)
        run.journal.note("run.resumed")
        yield run


RUNS: Final = Runs(PlanGateSetup, last_report, lambda report: report.verdict or "waiting")
"""The runs of the plan gate."""


def take_in(run_id: str, by: str, home: Path | None = None) -> tuple[Path, tuple[str, ...]]:
    """Write the mitigations of a verdict into its plan, and record the new plan. Return the plan's path and the ids of
    the challenges that the mitigations answer."""
    home = private_home(home)
    with writing_ledger(home) as ledger:
        report = report_of_run(ledger, run_id)
        path = Path(report.plan_path).resolve()  # the target of a link, not the link
        to_apply = to_take_in(report.challenges)
        _refuse_inapplicable(report, path)
        raw, text = load_plan(path)
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
        revised = with_mitigations(text, to_apply, run_id)
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
        write_whole(path, data)
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
    if not to_take_in(report.challenges):
        raise InputError(f"{report.run_id}: there is no mitigation to apply", hint=report.next_step or None)
    if unanswered := without_mitigation(report.challenges):
        ids = ", ".join(challenge.id for challenge in unanswered)
        raise InputError(
            f"{report.run_id}: there is no mitigation for {ids}",
            hint=f"revise {path} to answer it, and verify the plan again",
        )


def _choose_agents(
    world: World, request: PlanGateRequest, examined: Examined
) -> tuple[dict[str, tuple[str, ...]], str, list[str]]:
    """Return the specs by role, the reason why only the rules decide, and notes for the person."""
    if request.rules_only:
        return {}, "no agent is asked (--rules): the rules decide alone", []
    if why := examined.alone:
        return {}, why, []
    if request.within is not None:
        team: Team | None = Team({role: request.within.agents[role] for role in examined.team.roles})
    else:
        team = team_of(world, request.backends, examined.team.roles, "; --rules asks no agent")
    if team is None:
        return {}, "no agent is configured, so the rules decide alone; see `proofstone backends`", []
    notes = [web_in_words(load_person().settings.web), *team.notes]
    if _RESEARCHER in team.own_tools:
        notes.append("the researcher has its own tools: it is told its tool budgets, but they are not enforced")
    return dict(team.agents), "", notes


def _available_tools(world: World) -> tuple[str, ...]:
    """Return the tools that look beyond the tree and have something to search."""
    web = web_from(load_person().settings.web, os.environ)  # starts nothing before its first use
    availability = {
        Tool.MEMORY_SEARCH: memory_path(world.home).is_file(),
        Tool.WEB_SEARCH: web is not None and web.search is not None,
        Tool.WEB_FETCH: web is not None and web.fetch is not None,
    }
    return tuple(tool.value for tool, is_available in availability.items() if is_available)


def _build_run(
    world: World,
    setup: PlanGateSetup,
    budget: Budget,
    examined: Examined,
    request: PlanGateRequest,
    watching: Watching,
    ask: Ask,
    listen: Listen | None,
    stack: ExitStack,
) -> PlanGateRun:
    """Build a run with its agents, budget and tools."""
    team, person = Team(setup.agents), load_person()
    backends = made_ready(world, team, Path(setup.plan_path).parent, listen, stack)
    beyond = frozenset(map(Tool, setup.beyond))
    web = web_from(person.settings.web, os.environ) if beyond & {Tool.WEB_SEARCH, Tool.WEB_FETCH} else None
    if web is not None:
        stack.callback(web.close)
    memory = FileMemory(memory_path(world.home)) if Tool.MEMORY_SEARCH in beyond else None
    seconds = world.settings.gate.agent_seconds
    agents_at_work = PlanAgents(
        world=world,
        tree=world.base_tree,
        commit=world.base_commit,
        backends=backends,
        dispatcher=dispatcher_for(world, budget, watching.spending),
        doing=watching.doing,
        said=watching.said,
        seconds=lambda role: None if role in team.by_people else seconds,
        memory=memory,
        web=web,
        beyond=beyond,
    )
    stack.callback(agents_at_work.close)
    spec_names = {role: " or ".join(specs) for role, specs in setup.agents.items()}
    return PlanGateRun(
        about=replace(examined.about, agents=spec_names),
        subject=examined.subject(asked=bool(setup.agents), answers=setup.answers, notes=setup.notes),
        discussion=examined.discussion(world.run_id),
        journal=PlanJournal.opened(world.ledger, world.run_id),
        agents=agents_at_work,
        watching=watching,
        ask=ask,
        by=request.by,
        note=setup.alone,
        given=dict(request.answers) if setup.agents else {},  # otherwise they were applied at the start
        at_once=1 if team.by_people else SLOTS,
        ends=Deadline.after(request.minutes or setup.minutes),
    )

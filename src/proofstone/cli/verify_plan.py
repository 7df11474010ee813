"""`proofstone verify-plan`: challenge a plan before work starts, until it converges or is sent back."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from proofstone.agents.executors.people import ReadLine
from proofstone.app.plan_gate import (
    PLAN_GATE_RUNS,
    PlanGateRequest,
    apply_mitigations,
    build_plan_gate_run,
    resume_plan_gate,
)
from proofstone.cli.options import (
    BudgetOption,
    ResumeOption,
    ShowOption,
    TokensOption,
    UsdOption,
    collect_backend_specs,
    collect_budget_limits,
)
from proofstone.cli.output import JsonOption, NoColorOption, Output, QuietOption, RepoOption
from proofstone.cli.plan_questions import ask_plan_questions
from proofstone.cli.render.plan_gate import LivePlanGate, print_plan_report
from proofstone.cli.session import AgentRunSession, refuse_missing_folder
from proofstone.cli.task_commands import login_name, refuse_executors, require_text
from proofstone.common.text import escape_control
from proofstone.errors import InputError
from proofstone.git.repository import find_repository_root
from proofstone.machine.files import write_atomic
from proofstone.plan_gate.models import OpenQuestion, PlanReport, PlanVerdict
from proofstone.plan_gate.rules.record_documents import PlanRecord, build_schemas, write_yaml
from proofstone.plan_gate.rules.report import render_report
from proofstone.plan_gate.run import AskPlanUser, PlanGateObserver, PlanGateRun

if TYPE_CHECKING:
    pass


app = typer.Typer(add_completion=False)

PLAN_EXIT_CODES: Final = {PlanVerdict.PROCEED: 0, PlanVerdict.REVISE: 1, PlanVerdict.RETHINK: 1, None: 3}
_ANSWER: Final = re.compile(r"\s*(C[1-9][0-9]*)\s*=(.*)", re.DOTALL | re.IGNORECASE)

PlanGateRunFactory = Callable[[PlanGateObserver, AskPlanUser, ReadLine | None], AbstractContextManager[PlanGateRun]]


@app.command("verify-plan")
def verify_plan(
    plan: Annotated[
        Path | None,
        typer.Argument(
            metavar="FILE",
            help="The plan: a PLAN.md, a design, the text of an issue; any Markdown.",
            show_default=False,
        ),
    ] = None,
    backend: Annotated[
        list[str] | None,
        typer.Option(
            "--backend",
            metavar="[ROLE=]SPEC",
            help="The backend; overrides the settings: `api:openai:gpt-5` for all roles, or `challenger=…` for one. "
            "Can be repeated.",
            show_default=False,
        ),
    ] = None,
    rules: Annotated[bool, typer.Option("--rules", help="Ask no agent: use only the rules.")] = False,
    answer: Annotated[
        list[str] | None,
        typer.Option(
            "--answer",
            metavar='"C3=TEXT"',
            help="Your answer to a question about a challenge, asked now or later. Can be repeated.",
            show_default=False,
        ),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(
            "--report",
            metavar="FILE",
            help="Write the full report to this file: Markdown, JSON (.json), or the records alone (.yaml).",
            show_default=False,
        ),
    ] = None,
    resume: ResumeOption = None,
    show: ShowOption = None,
    taking_in: Annotated[
        str | None,
        typer.Option(
            "--apply-mitigations",
            metavar="RUN",
            help="After REVISE or PROCEED: write the mitigations into the plan, which can then be implemented.",
            show_default=False,
        ),
    ] = None,
    schema: Annotated[
        bool, typer.Option("--schema", help="Print the JSON Schemas of the records and the report; ask no agent.")
    ] = False,
    budget: BudgetOption = None,
    budget_tokens: TokensOption = None,
    budget_usd: UsdOption = None,
    repo: RepoOption = Path(),
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    no_color: NoColorOption = False,
) -> int:
    """Challenge a plan before work starts, until it converges or is sent back.

    Rules come first: structure, verification that proves nothing, missing files, files that two tasks would change at
    once, cycles, open unknowns. Then, if agents are configured, a challenger attacks the plan (for complex plans with
    a domain expert and a devil's advocate), researchers investigate open points, and a synthesizer decides; at most
    three times. Code decides the state of each challenge, and verifies every claim of an agent about the repository
    before it counts.

    \b
      proofstone verify-plan PLAN.md                                the rules and the configured agents
      proofstone verify-plan PLAN.md --backend cli:claude           with one of your coding agents
      proofstone verify-plan --resume last --answer "C3=keep both"  when a question is waiting
      proofstone verify-plan --apply-mitigations last               after REVISE: add the mitigations to the plan
      proofstone gate PLAN.md --verified                            refuses a plan that has not passed

    Exit code: 0 PROCEED; 1 REVISE or RETHINK; 2 bad input; 3 a question is waiting; 4 the budget is exhausted;
    130 interrupted. Nothing is lost: --resume continues, even after a crash.
    """
    output = Output(json=as_json, quiet=quiet, no_color=no_color)
    _refuse_several(plan, resume, show, taking_in, schema=schema)
    if schema:
        output.print_document(build_schemas())
        return 0
    if taking_in is not None:
        return _apply_mitigations(output, taking_in)
    if show is not None:
        return _show(output, PLAN_GATE_RUNS.find(require_text("--show", show)), report)
    request = PlanGateRequest(
        backends=collect_backend_specs(backend),
        rules_only=rules,
        budget=collect_budget_limits(budget, budget_tokens, budget_usd),
        answers=_parse_answers(answer or ()),
        by=login_name(),
    )
    if resume is None:
        path = plan or Path()  # refused above if there is none
        if report is not None:
            _refuse_overwriting(report, path)
            refuse_missing_folder("--report", report)
        place = repo if repo != Path() or not find_repository_root(path.parent) else path.parent
        return _follow(
            output,
            report,
            lambda live, ask, listen: build_plan_gate_run(place, path, request, live, ask, listen=listen),
        )
    if rules or backend:
        raise InputError("--resume keeps the agents of the run", hint="leave --backend and --rules out")
    return resume_plan_command(output, PLAN_GATE_RUNS.find(require_text("--resume", resume)), request, report)


def resume_plan_command(output: Output, run_id: str, request: PlanGateRequest, into: Path | None = None) -> int:
    """Resume a run. If it has ended, print its result."""
    ended = PLAN_GATE_RUNS.read_report(run_id)
    if ended is not None and ended.verdict is not None:
        if request.answers:
            raise InputError(f"{run_id} has ended: {ended.verdict}", hint=ended.next_step)
        return _print_result(output, ended, into)
    return _follow(output, into, lambda live, ask, listen: resume_plan_gate(run_id, request, live, ask, listen=listen))


def _follow(output: Output, into: Path | None, begin: PlanGateRunFactory) -> int:
    session = AgentRunSession(output, "verify-plan")
    console = output.progress_console()
    live = LivePlanGate(console, interactive=console.is_terminal)
    ask = partial(ask_plan_questions, session.question_console()) if session.can_ask else _answer_nothing

    def tell(result: tuple[PlanReport, Sequence[str]]) -> int:
        report, unused = result
        if unused:
            session.warn(f"there was no question about {', '.join(unused)}: your answer was not used")
        return _print_result(output, report, into)

    return session.follow(
        begin(live, ask, session.listen),
        live,
        run_id=lambda run: run.about.run_id,
        through=lambda run: (run.run(), tuple(run.unused_answers)),
        tell=tell,
    )


def _answer_nothing(_questions: Sequence[OpenQuestion]) -> Mapping[str, str]:
    return {}


def _refuse_several(
    plan: Path | None, resume: str | None, show: str | None, taking_in: str | None, *, schema: bool
) -> None:
    names = [
        name
        for name, given in (
            ("FILE", plan is not None),
            ("--resume", resume is not None),
            ("--show", show is not None),
            ("--apply-mitigations", taking_in is not None),
            ("--schema", schema),
        )
        if given
    ]
    if not names:
        raise InputError(
            "FILE is missing: name the plan",
            hint="proofstone verify-plan PLAN.md; or --resume, --show, --apply-mitigations",
        )
    if len(names) > 1:
        raise InputError(f"{' and '.join(names)} cannot be combined", hint="give only one of them")


def _parse_answers(options: Sequence[str]) -> dict[str, str]:
    if options:
        refuse_executors()
    answers: dict[str, str] = {}
    for option in options:
        match = _ANSWER.fullmatch(require_text("--answer", option))
        if match is None or not match[2].strip():
            raise InputError(
                f"--answer {option!r}: says nothing about a challenge", hint='for instance --answer "C3=keep both"'
            )
        answers[match[1].upper()] = match[2].strip()
    return answers


def _apply_mitigations(output: Output, run: str) -> int:
    refuse_executors()
    path, ids = apply_mitigations(PLAN_GATE_RUNS.find(require_text("--apply-mitigations", run)), login_name())
    if output.json:
        output.print_document({"plan": str(path), "taken_in": list(ids)})
    else:
        change = f"{path}: added the mitigations for {', '.join(ids)}"
        output.result_console().print(
            escape_control(f"{change}; the plan has now passed the plan gate"), soft_wrap=True
        )
    return 0


def _show(output: Output, run_id: str, into: Path | None) -> int:
    report = PLAN_GATE_RUNS.read_report(run_id)
    if report is None:
        raise InputError(
            f"{run_id}: has no verdict and no question yet", hint=f"`{_resume_command(run_id)}` continues it"
        )
    return _print_result(output, report, into)


def _print_result(output: Output, report: PlanReport, into: Path | None) -> int:
    if output.json:
        output.print_document(report.model_dump(mode="json"))
    else:
        sys.stderr.flush()
        print_plan_report(output.result_console(), report, into)
    if into is not None:  # last: if that fails, the result has been printed already
        _refuse_overwriting(into, Path(report.plan_path))
        again = f"name another file: proofstone verify-plan --show {report.run_id} --report FILE"
        write_atomic(into, _format_report(report, into.suffix.lower()).encode(), hint=again)
    return PLAN_EXIT_CODES[report.verdict]


def _refuse_overwriting(into: Path, plan: Path) -> None:
    if into.resolve() == plan.resolve():
        raise InputError(f"--report {into}: is the plan itself", hint="name another file")


def _format_report(report: PlanReport, suffix: str) -> str:
    """Return the report in the format of the file; as YAML only the records, one document each."""
    if suffix == ".json":
        return json.dumps(report.model_dump(mode="json"), indent=2, ensure_ascii=False) + "\n"
    if suffix in (".yaml", ".yml"):
        records: list[PlanRecord] = [*report.challenges, *report.unknowns, *report.surfaced, *report.risks]
        return "---\n".join(map(write_yaml, [*records, *report.iterations]))
    return render_report(report)


def _resume_command(run_id: str) -> str:
    return f"proofstone verify-plan --resume {run_id}"

"""`proofstone verify-plan`: a plan is attacked, before work starts, until it converges or is sent back."""

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

from proofstone.agents.executors.people import Listen
from proofstone.app.plan_gate import RUNS, PlanGateRequest, plan_gate_run, resumed_plan_gate, take_in
from proofstone.cli.gate_session import typed_line
from proofstone.cli.options import (
    BudgetOption,
    ResumeOption,
    ShowOption,
    TokensOption,
    UsdOption,
    backend_words,
    budget_words,
)
from proofstone.cli.output import JsonOption, NoColorOption, Output, QuietOption, RepoOption
from proofstone.cli.render.plan_gate import LivePlanGate, print_report
from proofstone.cli.session import AgentSitting, refuse_no_folder
from proofstone.cli.task_commands import plain, refuse_executors, speaker
from proofstone.common.text import printable
from proofstone.errors import InputError
from proofstone.git.repository import repository_around
from proofstone.machine.files import write_whole
from proofstone.plan_gate.models import OpenQuestion, PlanReport, PlanVerdict
from proofstone.plan_gate.rules.decision import chosen
from proofstone.plan_gate.rules.documents import Record, schemas, to_yaml
from proofstone.plan_gate.rules.report import page
from proofstone.plan_gate.run import Ask, PlanGateRun, Watching

if TYPE_CHECKING:
    from rich.console import Console


app = typer.Typer(add_completion=False)

EXIT: Final = {PlanVerdict.PROCEED: 0, PlanVerdict.REVISE: 1, PlanVerdict.RETHINK: 1, None: 3}
_ANSWER: Final = re.compile(r"\s*(C[1-9][0-9]*)\s*=(.*)", re.DOTALL | re.IGNORECASE)

Begin = Callable[[Watching, Ask, Listen | None], AbstractContextManager[PlanGateRun]]


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
            help="Who is asked, before the settings: `api:openai:gpt-5` for all, or `challenger=…` for one; may be "
            "given several times.",
            show_default=False,
        ),
    ] = None,
    rules: Annotated[bool, typer.Option("--rules", help="Ask nobody: what code alone can say.")] = False,
    answer: Annotated[
        list[str] | None,
        typer.Option(
            "--answer",
            metavar='"C3=TEXT"',
            help="Your answer to what is asked about a challenge, now or later; may be given several times.",
            show_default=False,
        ),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(
            "--report",
            metavar="FILE",
            help="Write the whole report there: Markdown; JSON if it ends in .json; the records if it ends in .yaml.",
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
            help="After REVISE, or PROCEED: write the mitigations into the plan's context. It may be implemented then.",
            show_default=False,
        ),
    ] = None,
    schema: Annotated[
        bool, typer.Option("--schema", help="Print the JSON Schemas of the records and the report; ask nobody.")
    ] = False,
    budget: BudgetOption = None,
    budget_tokens: TokensOption = None,
    budget_usd: UsdOption = None,
    repo: RepoOption = Path(),
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    no_color: NoColorOption = False,
) -> int:
    """Have a plan attacked before work starts, until it converges or is sent back.

    Code looks first: structure, verification that proves nothing, files that are not there, files that two tasks would
    change at once, cycles, what is marked as unknown. Then, if you have named somebody who can be asked, a challenger
    attacks it (for complex plans with a domain expert and a devil's advocate), researchers look into what is open, and
    a synthesizer rules; at most three times. What becomes of each challenge is decided by code, and whatever an agent
    claims about the repository is looked up before it counts.

    \b
      proofstone verify-plan PLAN.md                                what code can say, and whoever is set up
      proofstone verify-plan PLAN.md --backend cli:claude           asked of a coding agent of yours
      proofstone verify-plan --resume last --answer "C3=keep both"  when a question is waiting
      proofstone verify-plan --apply-mitigations last               after REVISE: the mitigations into the plan
      proofstone gate PLAN.md --verified                            refuses a plan that is not through

    Exit code: 0 PROCEED; 1 REVISE or RETHINK; 2 bad input; 3 a question is waiting; 4 the budget is spent;
    130 interrupted. Everything is kept: --resume goes on, also after a crash.
    """
    output = Output(json=as_json, quiet=quiet, no_color=no_color)
    _refuse_several(plan, resume, show, taking_in, schema=schema)
    if schema:
        output.document(schemas())
        return 0
    if taking_in is not None:
        return _take_in(output, taking_in)
    if show is not None:
        return _show(output, RUNS.find(plain("--show", show)), report)
    request = PlanGateRequest(
        backends=backend_words(backend),
        rules_only=rules,
        budget=budget_words(budget, budget_tokens, budget_usd),
        answers=_answers(answer or ()),
        by=speaker(),
    )
    if resume is None:
        path = plan or Path()  # refused above if there is none
        if report is not None:
            _refuse_overwriting(report, path)
            refuse_no_folder("--report", report)
        place = repo if repo != Path() or not repository_around(path.parent) else path.parent
        return _follow(
            output, report, lambda live, ask, listen: plan_gate_run(place, path, request, live, ask, listen=listen)
        )
    if rules or backend:
        raise InputError("--resume goes on with whoever was asked before", hint="leave --backend and --rules out")
    return resume_plan(output, RUNS.find(plain("--resume", resume)), request, report)


def resume_plan(output: Output, run_id: str, request: PlanGateRequest, into: Path | None = None) -> int:
    """Go on with a run; of one that has ended, tell how."""
    ended = RUNS.report(run_id)
    if ended is not None and ended.verdict is not None:
        if request.answers:
            raise InputError(f"{run_id} has ended: {ended.verdict}", hint=ended.next_step)
        return _tell(output, ended, into)
    return _follow(output, into, lambda live, ask, listen: resumed_plan_gate(run_id, request, live, ask, listen=listen))


def _follow(output: Output, into: Path | None, begin: Begin) -> int:
    sitting = AgentSitting(output, "verify-plan")
    console = output.progress()
    live = LivePlanGate(console, interactive=console.is_terminal)
    ask = partial(_ask, sitting.loud()) if sitting.asks else _nobody

    def tell(came: tuple[PlanReport, Sequence[str]]) -> int:
        report, unused = came
        if unused:
            sitting.complain(f"nobody has asked about {', '.join(unused)}: that answer was not used")
        return _tell(output, report, into)

    return sitting.follow(
        begin(live, ask, sitting.listen),
        live,
        run_id=lambda run: run.about.run_id,
        through=lambda run: (run.run(), tuple(run.given)),
        tell=tell,
    )


def _ask(console: Console, questions: Sequence[OpenQuestion]) -> Mapping[str, str]:
    """At this terminal; an empty line leaves a question."""
    answers = {}
    for question in questions:
        console.print(printable(f"\n{question.challenge}: {question.question}"), style="bold yellow", soft_wrap=True)
        console.print(printable(f"  {question.why}"), style="dim", soft_wrap=True)
        for number, option in enumerate(question.options, start=1):
            console.print(printable(f"  {number}. {option}"), soft_wrap=True)
        choice = "a number, or your own words" if question.options else "in your own words"
        console.print(f"{choice}; an empty line leaves it", style="dim")
        while (said := chosen(plain("your answer", typed_line() or ""), question.options)) is None:
            console.print(f"there are {len(question.options)} of them; {choice}", style="yellow")
        if said in question.options:
            console.print(printable(f"{question.challenge}: {said}"), style="dim")
        answers[question.challenge] = said
    return answers


def _nobody(_questions: Sequence[OpenQuestion]) -> Mapping[str, str]:
    return {}


def _refuse_several(
    plan: Path | None, resume: str | None, show: str | None, taking_in: str | None, *, schema: bool
) -> None:
    asked = [
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
    if not asked:
        raise InputError(
            "FILE is missing: which plan",
            hint="proofstone verify-plan PLAN.md; or --resume, --show, --apply-mitigations",
        )
    if len(asked) > 1:
        raise InputError(f"{' and '.join(asked)} are different things to ask for", hint="say one of them")


def _answers(options: Sequence[str]) -> dict[str, str]:
    if options:
        refuse_executors()
    answers: dict[str, str] = {}
    for option in options:
        found = _ANSWER.fullmatch(plain("--answer", option))
        if found is None or not found[2].strip():
            raise InputError(
                f"--answer {option!r}: says nothing about a challenge", hint='for instance --answer "C3=keep both"'
            )
        answers[found[1].upper()] = found[2].strip()
    return answers


def _take_in(output: Output, run: str) -> int:
    refuse_executors()
    path, ids = take_in(RUNS.find(plain("--apply-mitigations", run)), speaker())
    if output.json:
        output.document({"plan": str(path), "taken_in": list(ids)})
    else:
        taken = f"{path}: took in what answers {', '.join(ids)}"
        output.results().print(printable(f"{taken}; as it is now it is through the plan gate"), soft_wrap=True)
    return 0


def _show(output: Output, run_id: str, into: Path | None) -> int:
    report = RUNS.report(run_id)
    if report is None:
        raise InputError(f"{run_id}: has no verdict yet, and asks nothing", hint=f"`{_go_on(run_id)}` goes on")
    return _tell(output, report, into)


def _tell(output: Output, report: PlanReport, into: Path | None) -> int:
    if output.json:
        output.document(report.model_dump(mode="json"))
    else:
        sys.stderr.flush()
        print_report(output.results(), report, into)
    if into is not None:  # last: if it cannot be written, what came of it is known all the same
        _refuse_overwriting(into, Path(report.plan_path))
        again = f"name another file: proofstone verify-plan --show {report.run_id} --report FILE"
        write_whole(into, _written(report, into.suffix.lower()).encode(), hint=again)
    return EXIT[report.verdict]


def _refuse_overwriting(into: Path, plan: Path) -> None:
    if into.resolve() == plan.resolve():
        raise InputError(f"--report {into}: is the plan itself", hint="name another file")


def _written(report: PlanReport, suffix: str) -> str:
    """The report in the form that the file's name asks for; as YAML the records alone, one document each."""
    if suffix == ".json":
        return json.dumps(report.model_dump(mode="json"), indent=2, ensure_ascii=False) + "\n"
    if suffix in (".yaml", ".yml"):
        records: list[Record] = [*report.challenges, *report.unknowns, *report.surfaced, *report.risks]
        return "---\n".join(map(to_yaml, [*records, *report.iterations]))
    return page(report)


def _go_on(run_id: str) -> str:
    return f"proofstone verify-plan --resume {run_id}"

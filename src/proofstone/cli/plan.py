"""`proofstone plan lint`: find the mistakes in a plan. It runs nothing and writes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from proofstone.cli.output import JsonOption, NoColorOption, Output, RepoOption, find_project_root
from proofstone.common.text import escape_control, pluralize
from proofstone.errors import InputError
from proofstone.machine.files import read_plan_file
from proofstone.plans.lint import find_lint_problems, select_errors
from proofstone.plans.models import Plan, PlanProblem, ProblemSeverity
from proofstone.plans.parser import read_plan

app = typer.Typer(add_completion=False, help="Find the mistakes in a plan without running anything.")

_STYLES = {ProblemSeverity.ERROR: "red", ProblemSeverity.WARNING: "yellow"}


@app.callback()
def plan() -> None:
    """Find the mistakes in a plan without running anything."""


@app.command("lint")
def lint_plan(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The plan: Markdown with <task> elements.")],
    repo: RepoOption = Path(),
    as_json: JsonOption = False,
    no_color: NoColorOption = False,
) -> int:
    """Report the mistakes in a plan with file, line and a correction. The exit code is 2 if the plan cannot run.

    It looks for incomplete tasks, verify commands that prove nothing, done criteria that cannot be checked, unknown or
    circular dependencies, and files that two tasks would change at once.
    """
    if not repo.is_dir():
        raise InputError(f"--repo {repo}: there is no such directory")
    _, text = read_plan_file(file)
    parsed, problems = read_plan(text, str(file))
    if parsed is not None:
        problems += find_lint_problems(parsed, text, str(find_project_root(repo)))
    problems = tuple(sorted(problems, key=lambda problem: problem.line))
    output = Output(json=as_json, no_color=no_color)
    if as_json:
        output.print_document(_document(str(file), parsed, problems))
    else:
        _print_problems(output, str(file), parsed, problems)
    return 2 if select_errors(problems) else 0


def _document(path: str, parsed: Plan | None, problems: Sequence[PlanProblem]) -> dict[str, object]:
    return {
        "path": path,
        "tasks": [task.model_dump(mode="json") for task in parsed.tasks] if parsed else [],
        "waves": _count_waves(parsed),
        "problems": [problem.model_dump(mode="json") for problem in problems],
    }


def _print_problems(output: Output, path: str, parsed: Plan | None, problems: Sequence[PlanProblem]) -> None:
    console = output.result_console()
    for problem in problems:
        line = f"{path}:{problem.line}: {problem.severity}: {problem.message}"
        console.print(escape_control(line), style=_STYLES[problem.severity], soft_wrap=True)
        console.print(escape_control(f"  hint: {problem.hint}"), soft_wrap=True)
    error_count = len(select_errors(problems))
    counts = (
        pluralize(len(parsed.tasks) if parsed else 0, "task"),
        pluralize(_count_waves(parsed), "wave"),
        pluralize(error_count, "error"),
        pluralize(len(problems) - error_count, "warning"),
    )
    console.print(", ".join(counts), soft_wrap=True)


def _count_waves(parsed: Plan | None) -> int:
    return len({task.wave for task in parsed.tasks}) if parsed else 0

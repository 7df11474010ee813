"""`proofstone plan lint`: what is wrong with a plan, before anything is run. Nothing is executed and nothing is
written.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from proofstone.cli.output import JsonOption, NoColorOption, Output, RepoOption, repository_root
from proofstone.common.text import counted, printable
from proofstone.errors import InputError
from proofstone.machine.files import load_plan
from proofstone.plans.lint import errors, lint
from proofstone.plans.models import Plan, PlanProblem, ProblemSeverity
from proofstone.plans.reading import read_plan

app = typer.Typer(add_completion=False, help="Read a plan and say what is wrong with it, running nothing.")

_STYLES = {ProblemSeverity.ERROR: "red", ProblemSeverity.WARNING: "yellow"}


@app.callback()
def plan() -> None:
    """Read a plan and say what is wrong with it, running nothing."""


@app.command("lint")
def lint_plan(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The plan: Markdown with <task> elements.")],
    repo: RepoOption = Path(),
    as_json: JsonOption = False,
    no_color: NoColorOption = False,
) -> int:
    """Say what is wrong with a plan, with file, line and what would be right; exit 2 if it cannot be run.

    Looks for tasks that miss something, verify commands that prove nothing, done criteria nobody can check,
    dependencies that lead nowhere or in a circle, and files that two tasks would change at once.
    """
    if not repo.is_dir():
        raise InputError(f"--repo {repo}: there is no such directory")
    _, text = load_plan(file)
    found, problems = read_plan(text, str(file))
    if found is not None:
        problems += lint(found, text, str(repository_root(repo)))
    problems = tuple(sorted(problems, key=lambda problem: problem.line))
    output = Output(json=as_json, no_color=no_color)
    if as_json:
        output.document(_document(str(file), found, problems))
    else:
        _show(output, str(file), found, problems)
    return 2 if errors(problems) else 0


def _document(path: str, found: Plan | None, problems: Sequence[PlanProblem]) -> dict[str, object]:
    return {
        "path": path,
        "tasks": [task.model_dump(mode="json") for task in found.tasks] if found else [],
        "waves": _waves(found),
        "problems": [problem.model_dump(mode="json") for problem in problems],
    }


def _show(output: Output, path: str, found: Plan | None, problems: Sequence[PlanProblem]) -> None:
    console = output.results()
    for problem in problems:
        said = f"{path}:{problem.line}: {problem.severity}: {problem.message}"
        console.print(printable(said), style=_STYLES[problem.severity], soft_wrap=True)
        console.print(printable(f"  hint: {problem.hint}"), soft_wrap=True)
    wrong = len(errors(problems))
    counts = (
        counted(len(found.tasks) if found else 0, "task"),
        counted(_waves(found), "wave"),
        counted(wrong, "error"),
        counted(len(problems) - wrong, "warning"),
    )
    console.print(", ".join(counts), soft_wrap=True)


def _waves(found: Plan | None) -> int:
    return len({task.wave for task in found.tasks}) if found else 0

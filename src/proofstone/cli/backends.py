"""`proofstone backends`: show the backend of each role, whether it is ready, and with `--probe` how it answers. Also
list the coding agents on this machine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from proofstone.agents.backends.probing import ProbeResult
from proofstone.agents.backends.programs.status import ProgramStatus, read_program_statuses
from proofstone.agents.rules.tiers import TierProblem
from proofstone.app.agents import (
    BackendStatus,
    ResolvedAgent,
    ResolvedAgents,
    list_agent_names,
    probe_backends,
    read_backend_choices,
    resolve_agents,
)
from proofstone.cli.options import BackendOption, collect_backend_specs
from proofstone.cli.output import JsonOption, NoColorOption, Output, RepoOption, find_project_root
from proofstone.common.models import Usage
from proofstone.common.text import escape_control
from proofstone.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console


def print_programs(console: Console, programs: Sequence[ProgramStatus]) -> None:
    """Print the coding agents on this machine."""
    if not programs:
        return
    console.print("\nCoding agents on this machine", style="bold")
    for program in programs:
        if program.path:
            console.print(escape_control(f"  {' or '.join(program.specs)}"), soft_wrap=True)
            style = "yellow" if program.is_outdated or not program.login else None
            console.print(escape_control(f"    {_describe_program(program)}"), style=style, soft_wrap=True)
            console.print(escape_control(f"    limits itself: {program.limit_description}"), soft_wrap=True)
    if absent := [program.name for program in programs if not program.path]:
        line = f"  not installed: {', '.join(absent)} (--json says how to install them, and their known problems)"
        console.print(escape_control(line), soft_wrap=True)


def _describe_program(program: ProgramStatus) -> str:
    version = f"version {program.version}" if program.version else "unknown version"
    old = (
        f", older than {program.minimum}, the oldest that is known to work: {program.install}"
        if program.is_outdated
        else ""
    )
    login = f"login by {program.login}" if program.login else "no login found"
    adapter = f"; acp: needs {program.missing_adapter} too" if program.missing_adapter else ""
    return f"{version}{old}, {login}{adapter} ({program.path})"


app = typer.Typer(add_completion=False)


_UNVERIFIED = " cannot be verified: "
"""Separates the subject of a problem from the reason why it cannot be verified."""


@app.command()
def backends(
    roles: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="ROLE",
            help="Show only these: planner, reviewer, reviewer:security … Each must have a backend.",
            show_default=False,
        ),
    ] = None,
    repo: RepoOption = Path(),
    backend: BackendOption = None,
    ask: Annotated[
        bool,
        typer.Option(
            "--probe",
            help="Ask each backend a short question, and record how each model answers. This costs a few tokens.",
        ),
    ] = False,
    as_json: JsonOption = False,
    no_color: NoColorOption = False,
) -> int:
    """Show the backend of each role, where it was set, and whether it is ready; with --probe, whether it answers.

    \b
    A backend is one of:
      api:openai:gpt-5          a model, by provider and name
      cli:claude                one of your coding agents, without its user interface
      acp:goose                 the same, over the Agent Client Protocol: it asks before it writes
      cmd:./agent.sh            any other program
      human                     you
      script:answers.yaml       prepared answers, for demonstrations

    \b
    Set roles under [backends], in your own ~/.config/proofstone/proofstone.toml or in the repository's
    proofstone.toml. Your file overrides the repository's, and --backend overrides both. After the roles come the
    coding agents on this machine: whether a login was found, and how far each limits itself to the files of a task.
    In any case they work in the sandbox, and Proofstone judges what they changed by the diff.

    Exit code: 0 every configured backend is ready, and has answered with --probe; 1 one is not ready or did not
    answer, or a ROLE that you named has no backend.
    """
    if not repo.is_dir():
        raise InputError(f"--repo {repo}: there is no such directory")
    names = list_agent_names(roles or ())
    output = Output(json=as_json, no_color=no_color)
    choices = read_backend_choices(find_project_root(repo), collect_backend_specs(backend))
    resolved = resolve_agents(choices, names)
    answers = list(_report_probes(output.progress_console(), probe_backends(choices, resolved))) if ask else []
    resolved = resolved.with_probe_results(answers)
    programs = () if roles else read_program_statuses(choices.person.settings.programs, choices.root)
    is_ok = resolved.is_ready and not (roles and any(not agent.backends for agent in resolved.agents))
    if as_json:
        document = _document(is_ok, str(choices.person.file), resolved, answers if ask else None)
        output.print_document(document | {"programs": [asdict(program) for program in programs]})
    else:
        _print_agents(output.result_console(), resolved, {answer.spec: answer for answer in answers})
        _print_notes(output.result_console(), resolved, choices.person.file)
        print_programs(output.result_console(), programs)
    return 0 if is_ok else 1


def _report_probes(console: Console, answers: Iterable[ProbeResult]) -> Iterator[ProbeResult]:
    """Pass the answers on, and report each as it arrives, because a probe takes a while."""
    for answer in answers:
        state = "does not answer" if answer.fault else "answers"
        console.print(escape_control(f"{answer.spec} {state}"), style="dim", soft_wrap=True)
        yield answer


def _print_agents(console: Console, resolved: ResolvedAgents, answers: Mapping[str, ProbeResult]) -> None:
    """Print the agents. Adjacent roles with the same backends share a row."""
    for _, group in groupby(resolved.agents, key=lambda agent: (agent.choice.origin, agent.choice.key, agent.backends)):
        same = list(group)
        console.print(", ".join(agent.name for agent in same), style="bold", soft_wrap=True)
        for standing in same[0].backends:
            console.print(escape_control(f"  {standing.spec}"), soft_wrap=True)
            is_ready = not (standing.missing or standing.fault)
            facts = escape_control(f"    {_describe_backend(same[0], standing, answers.get(standing.spec))}")
            console.print(facts, style=None if is_ready else "red", soft_wrap=True)
        if not same[0].backends:
            console.print("  no agent is configured", style="yellow")


def _print_notes(console: Console, resolved: ResolvedAgents, file: Path) -> None:
    if any(not agent.backends for agent in resolved.agents):
        console.print(
            "\nnote: set a backend for all roles that have none with `default` under [backends], or with "
            "--backend default=SPEC",
            soft_wrap=True,
        )
    for refuse, text in _group_problems(resolved.problems):
        word = "refused" if refuse else "note"
        console.print(escape_control(f"\n{word}: {text}"), style="red" if refuse else None, soft_wrap=True)
    if any(_UNVERIFIED in problem.text for problem in resolved.problems) and (models := _models_without_tier(resolved)):
        console.print(escape_control(f"Set a tier, from 1 (small) to 3 (strong), in {file}:"), soft_wrap=True)
        for model in models:
            console.print(escape_control(f'  [models."{model}"]\n  tier = 2'), soft_wrap=True)


def _group_problems(problems: Sequence[TierProblem]) -> Iterator[tuple[bool, str]]:
    """Yield one note for each cause. Problems with the same cause are combined."""
    subjects_by_cause: dict[tuple[bool, str], list[str]] = {}
    for problem in problems:
        subject, _, cause = problem.text.partition(_UNVERIFIED)
        subjects_by_cause.setdefault((problem.is_refused, cause or subject), []).append(subject)
    for (refuse, cause), subjects in subjects_by_cause.items():
        yield refuse, cause if subjects == [cause] else f"{cause}, so it cannot be verified {'; '.join(subjects)}"


def _models_without_tier(resolved: ResolvedAgents) -> list[str]:
    """Return the models without a tier, by their names in the settings."""
    standings = [standing for agent in resolved.agents for standing in agent.backends]
    return list(
        dict.fromkeys(
            standing.spec.removeprefix("api:") for standing in standings if standing.model and standing.tier is None
        )
    )


def _describe_backend(agent: ResolvedAgent, status: BackendStatus, answer: ProbeResult | None) -> str:
    model = f"{status.vendor or 'vendor unknown'}, {_tier(status)}, " if status.model else ""
    price = {True: "price known, ", False: "price unknown, ", None: ""}[status.priced]
    key = f" ({agent.choice.key})" if agent.choice.key else ""
    return f"{model}{price}set by {agent.choice.origin}{key}: {_describe_state(status, answer)}"


def _describe_state(status: BackendStatus, answer: ProbeResult | None) -> str:
    if status.missing:
        return f"not ready: {status.missing}{f' ({status.hint})' if status.hint else ''}"
    if status.fault:
        return f"does not answer: {status.fault}"
    if answer is None:
        return f"ready, but {status.note}" if status.note else "ready"
    usage = answer.usage
    model = f" as {answer.model}" if answer.model else ""
    tokens = f", {usage.tokens} tokens, {_cost(usage)}" if usage.requests else ""
    form = f", answers by {answer.answer}" if answer.answer else ""
    tools = {True: ", calls tools", False: ", calls no tools: choose `--profile small`", None: ""}[answer.calls_tools]
    return f"ready, answered{model} in {answer.milliseconds} ms{tokens}{form}{tools}"


def _tier(status: BackendStatus) -> str:
    return "tier unknown" if status.tier is None else f"tier {status.tier}"


def _cost(usage: Usage) -> str:
    return "cost unknown" if usage.usd is None else f"${usage.usd:.6f}"


def _document(is_ok: bool, file: str, resolved: ResolvedAgents, answers: list[ProbeResult] | None) -> dict[str, object]:
    return {
        "ok": is_ok,
        "person_file": file,
        "agents": [
            {
                "agent": agent.name,
                "from": agent.choice.origin.value,
                "key": agent.choice.key,
                "ready": not agent.missing,
                "backends": [asdict(standing) for standing in agent.backends],
            }
            for agent in resolved.agents
        ],
        "problems": [asdict(problem) for problem in resolved.problems],
        "probes": None if answers is None else [_probe_document(answer) for answer in answers],
    }


def _probe_document(answer: ProbeResult) -> dict[str, object]:
    return {
        "spec": answer.spec,
        "answered": not answer.fault,
        "fault": answer.fault,
        "model": answer.model,
        "milliseconds": answer.milliseconds,
        "usage": answer.usage.model_dump(mode="json"),
        "answer": answer.answer,
        "calls_tools": answer.calls_tools,
    }

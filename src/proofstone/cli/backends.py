"""The coding agents of this machine, as `proofstone backends` shows them.

`proofstone backends`: who serves each role, whether they can, and with `--probe` how they answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from proofstone.agents.backends.choosing import Probed
from proofstone.agents.backends.programs.status import ProgramStanding, program_standings
from proofstone.agents.rules.tiers import TierProblem
from proofstone.app.agents import Agent, Agents, Standing, agents, agents_of, probes, words
from proofstone.cli.options import BackendOption, backend_words
from proofstone.cli.output import JsonOption, NoColorOption, Output, RepoOption, repository_root
from proofstone.common.models import Usage
from proofstone.common.text import printable
from proofstone.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console


def print_programs(console: Console, programs: Sequence[ProgramStanding]) -> None:
    if not programs:
        return
    console.print("\nCoding agents on this machine", style="bold")
    for program in programs:
        if program.path:
            console.print(printable(f"  {' or '.join(program.ways)}"), soft_wrap=True)
            style = "yellow" if program.is_outdated or not program.login else None
            console.print(printable(f"    {_facts(program)}"), style=style, soft_wrap=True)
            console.print(printable(f"    limits itself: {program.limits}"), soft_wrap=True)
    if absent := [item.name for item in programs if not item.path]:
        words = f"  not installed: {', '.join(absent)} (--json says how, and what is known to go wrong)"
        console.print(printable(words), soft_wrap=True)


def _facts(one: ProgramStanding) -> str:
    version = f"version {one.version}" if one.version else "its version cannot be told"
    old = f", older than {one.minimum}, which is known to work: {one.install}" if one.is_outdated else ""
    login = f"login by {one.login}" if one.login else "no login found"
    adapter = f"; acp: needs {one.adapter} too" if one.adapter else ""
    return f"{version}{old}, {login}{adapter} ({one.path})"


app = typer.Typer(add_completion=False)


_UNVERIFIED = " cannot be verified: "
"""Between what a problem is about and why, where it cannot be told whether it is one."""


@app.command()
def backends(
    roles: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="ROLE",
            help="Only these: planner, reviewer, reviewer:security … Somebody must be named for each of them.",
            show_default=False,
        ),
    ] = None,
    repo: RepoOption = Path(),
    backend: BackendOption = None,
    ask: Annotated[
        bool, typer.Option("--probe", help="Ask each of them one short question. It costs a few tokens.")
    ] = False,
    as_json: JsonOption = False,
    no_color: NoColorOption = False,
) -> int:
    """Show who serves each role, where that was said, and whether they can; with --probe, whether they answer.

    \b
    A backend is whoever can take a role:
      api:openai:gpt-5          a model, by provider and name
      cli:claude                a coding agent of yours, started without its screen
      acp:goose                 the same, over the Agent Client Protocol: it asks before it writes
      cmd:./agent.sh            any other program
      human                     you
      script:answers.yaml       prepared answers, for demonstrations

    \b
    Roles are set under [backends], in your own ~/.config/proofstone/proofstone.toml and in the repository's
    proofstone.toml.
    Yours goes before the repository's, and --backend before both. Below the roles stand the coding agents that are
    on this machine, whether a login was found, and how far each keeps itself to the files of a task. In any case
    they work in the sandbox, and what they changed is judged by the diff.

    Exits with 0 when all that are named can serve, and have answered if they were asked; with 1 when one cannot, or
    when nobody is named for a ROLE that you asked about.
    """
    if not repo.is_dir():
        raise InputError(f"--repo {repo}: there is no such directory")
    names = agents_of(roles or ())
    output = Output(json=as_json, no_color=no_color)
    said = words(repository_root(repo), backend_words(backend))
    known = agents(said, names)
    answered = list(_asked(output.progress(), probes(said, known))) if ask else []
    known = known.having_answered(answered)
    programs = () if roles else program_standings(said.person.settings.programs, said.root)
    well = known.able and not (roles and any(not agent.standings for agent in known.agents))
    if as_json:
        document = _document(well, str(said.person.file), known, answered if ask else None)
        output.document(document | {"programs": [asdict(program) for program in programs]})
    else:
        _print_agents(output.results(), known, {item.spec: item for item in answered})
        _print_notes(output.results(), known, said.person.file)
        print_programs(output.results(), programs)
    return 0 if well else 1


def _asked(console: Console, coming: Iterable[Probed]) -> Iterator[Probed]:
    """Each takes its time, so it is said that one has answered."""
    for item in coming:
        state = "does not answer" if item.fault else "answers"
        console.print(printable(f"{item.spec} {state}"), style="dim", soft_wrap=True)
        yield item


def _print_agents(console: Console, known: Agents, answered: Mapping[str, Probed]) -> None:
    """Roles that stand together and are served by the same stand in one row."""
    for _, group in groupby(known.agents, key=lambda agent: (agent.choice.origin, agent.choice.key, agent.standings)):
        same = list(group)
        console.print(", ".join(agent.name for agent in same), style="bold", soft_wrap=True)
        for standing in same[0].standings:
            console.print(printable(f"  {standing.spec}"), soft_wrap=True)
            able = not (standing.missing or standing.fault)
            facts = printable(f"    {_backends_facts(same[0], standing, answered.get(standing.spec))}")
            console.print(facts, style=None if able else "red", soft_wrap=True)
        if not same[0].standings:
            console.print("  nobody is named", style="yellow")


def _print_notes(console: Console, known: Agents, file: Path) -> None:
    if any(not agent.standings for agent in known.agents):
        console.print(
            "\nnote: name somebody for all that have nobody with `default` under [backends], or with "
            "--backend default=SPEC",
            soft_wrap=True,
        )
    for refuse, text in _notes(known.problems):
        word = "refused" if refuse else "note"
        console.print(printable(f"\n{word}: {text}"), style="red" if refuse else None, soft_wrap=True)
    if any(_UNVERIFIED in problem.text for problem in known.problems) and (models := _of_unknown_tier(known)):
        console.print(printable(f"A tier is set, from 1 (small) to 3 (strong), in {file}:"), soft_wrap=True)
        for model in models:
            console.print(printable(f'  [models."{model}"]\n  tier = 2'), soft_wrap=True)


def _notes(problems: Sequence[TierProblem]) -> Iterator[tuple[bool, str]]:
    """One for each cause: what cannot be verified for the same reason is said together."""
    together: dict[tuple[bool, str], list[str]] = {}
    for problem in problems:
        about, _, cause = problem.text.partition(_UNVERIFIED)
        together.setdefault((problem.refuse, cause or about), []).append(about)
    for (refuse, cause), abouts in together.items():
        yield refuse, cause if abouts == [cause] else f"{cause}, so it cannot be verified {'; '.join(abouts)}"


def _of_unknown_tier(known: Agents) -> list[str]:
    """Models by the names that settings know them by."""
    standings = [standing for agent in known.agents for standing in agent.standings]
    return list(
        dict.fromkeys(
            standing.spec.removeprefix("api:") for standing in standings if standing.model and standing.tier is None
        )
    )


def _backends_facts(agent: Agent, one: Standing, answered: Probed | None) -> str:
    model = f"{one.vendor or 'vendor unknown'}, {_tier(one)}, " if one.model else ""
    price = {True: "price known, ", False: "price unknown, ", None: ""}[one.priced]
    key = f" ({agent.choice.key})" if agent.choice.key else ""
    return f"{model}{price}set by {agent.choice.origin}{key}: {_state(one, answered)}"


def _state(one: Standing, answered: Probed | None) -> str:
    if one.missing:
        return f"not ready: {one.missing}{f' ({one.hint})' if one.hint else ''}"
    if one.fault:
        return f"does not answer: {one.fault}"
    if answered is None:
        return f"ready, but {one.note}" if one.note else "ready"
    used = answered.usage
    who = f" as {answered.model}" if answered.model else ""
    tokens = f", {used.tokens} tokens, {_cost(used)}" if used.requests else ""
    return f"ready, answered{who} in {answered.milliseconds} ms{tokens}"


def _tier(one: Standing) -> str:
    return "tier unknown" if one.tier is None else f"tier {one.tier}"


def _cost(used: Usage) -> str:
    return "cost unknown" if used.usd is None else f"${used.usd:.6f}"


def _document(well: bool, file: str, known: Agents, answered: list[Probed] | None) -> dict[str, object]:
    return {
        "ok": well,
        "person_file": file,
        "agents": [
            {
                "agent": agent.name,
                "from": agent.choice.origin.value,
                "key": agent.choice.key,
                "ready": not agent.missing,
                "backends": [asdict(standing) for standing in agent.standings],
            }
            for agent in known.agents
        ],
        "problems": [asdict(problem) for problem in known.problems],
        "probes": None if answered is None else [_probe_document(item) for item in answered],
    }


def _probe_document(one: Probed) -> dict[str, object]:
    return {
        "spec": one.spec,
        "answered": not one.fault,
        "fault": one.fault,
        "model": one.model,
        "milliseconds": one.milliseconds,
        "usage": one.usage.model_dump(mode="json"),
    }

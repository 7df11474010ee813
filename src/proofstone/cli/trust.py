"""`proofstone trust`: see and grant what a repository's settings ask for beyond the protective defaults."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from proofstone.app.context import asked_settings, consent_for, grants_from_inside
from proofstone.app.trust import add_grant, remove_grants
from proofstone.cli.output import JsonOption, NoColorOption, Output
from proofstone.common.text import printable
from proofstone.config.person import Person, load_person
from proofstone.config.rules import Need, coding_agent_in
from proofstone.config.trust import Consent, Grant, digest_of, load_grants, meaning_of, need_lines, trust_file
from proofstone.errors import InputError
from proofstone.git.pending import main_work_tree
from proofstone.git.repository import open_repository

app = typer.Typer(add_completion=False)

_DECLINED = 1


@app.command()
def trust(
    repo: Annotated[
        Path,
        typer.Argument(
            metavar="REPO",
            help="The repository, or any directory inside it; else where you stand.",
            show_default=False,
        ),
    ] = Path(),
    base: Annotated[
        str | None,
        typer.Option(
            "--base",
            metavar="REV",
            help="Whose settings: a revision; else the base of `proofstone check`.",
            show_default=False,
        ),
    ] = None,
    own_settings: Annotated[
        bool, typer.Option("--use-worktree-config", help="Whose settings: those of the work tree, committed or not.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Grant without a question, where there is no terminal.")] = False,
    show_all: Annotated[bool, typer.Option("--list", help="List everything that you have granted.")] = False,
    revoke: Annotated[
        bool, typer.Option("--revoke", help="Take back what you have granted to the repository.")
    ] = False,
    as_json: JsonOption = False,
    no_color: NoColorOption = False,
) -> int:
    """Show what a repository's settings ask for, and grant it.

    A repository's settings can switch the sandbox off, the network on, and have variables and files of yours handed to
    its checks. That takes effect only if you grant it: for this repository with all its work trees, and for exactly
    what is shown. If the settings ask for more later, you are asked again. Grants are kept in `trust.json` beside your
    own settings, outside every repository.

    Exit code: 0 granted, or nothing is asked for; 1 not granted; 2 bad input.
    """
    output = Output(json=as_json, no_color=no_color)
    person = load_person()
    file = trust_file(person)
    if sum((show_all, revoke, yes)) > 1:
        raise InputError("--list, --revoke and --yes exclude each other; give one of them")
    if show_all:
        return _list(output, file)
    if revoke:
        return _revoke(output, file, repo)
    repository = open_repository(repo)
    if grants_from_inside(repository, person):
        raise InputError(
            f"{person.file}: your own settings lie inside this repository, so they can grant nothing to it",
            hint="keep them outside: in ~/.config/proofstone, or where PROOFSTONE_CONFIG says",
        )
    settings, source = asked_settings(repository, base, own=own_settings)
    found = consent_for(repository, settings, person)
    main = main_work_tree(repository)
    _refuse_agents(found, as_json=as_json, yes=yes)
    if not as_json:
        _show(output, main, source, found, person)
    is_granted = not found.missing or yes or (not as_json and _confirmed())
    if found.missing and is_granted:
        add_grant(file, main, found.needs)
        output.results().print(
            f"granted; `proofstone trust --revoke {printable(str(main))}` takes it back", soft_wrap=True
        )
    if as_json:
        output.document(_document(main, source, found, person, file, is_granted=is_granted))
    elif not is_granted:
        output.results().print("nothing was granted")
    return 0 if is_granted else _DECLINED


def _refuse_agents(found: Consent, *, as_json: bool, yes: bool) -> None:
    """Refuse to grant anything in a coding agent's shell, or where nobody can be asked."""
    if not found.missing:
        return
    if (yes or not as_json) and (agent := coding_agent_in(os.environ)):
        raise InputError(
            f"this is the shell of {agent}: only a person can grant what these settings ask for",
            hint="run the command yourself, in a terminal of your own",
        )
    if not yes and not as_json and not sys.stdin.isatty():
        raise InputError(
            "there is no terminal to ask you at; nothing was granted",
            hint="run it in a terminal; or look at it with --json, and grant it with --yes",
        )


def _show(output: Output, main: Path, source: str, found: Consent, person: Person) -> None:
    console = output.results()
    where = f"{printable(str(main))}, settings {source}"
    if not found.needs:
        console.print(f"{where}: they ask for nothing that needs your consent", soft_wrap=True)
        return
    console.print(f"{where}, ask for:", soft_wrap=True)
    for line in need_lines(found.needs, person):
        console.print(f"  {printable(line)}", soft_wrap=True)
    if not found.missing:
        console.print("all of it is granted")


def _confirmed() -> bool:
    sys.stdout.flush()
    sys.stderr.write("Grant all of this to this repository? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _list(output: Output, file: Path) -> int:
    grants = load_grants(file).grants
    if output.json:
        output.document({"file": str(file), "grants": [_grant(item) for item in grants]})
    console = output.results()
    if not grants:
        console.print(f"nothing is granted in {printable(str(file))}", soft_wrap=True)
    for grant in grants:
        console.print(f"{printable(grant.repository)}  granted {grant.granted_at}", soft_wrap=True)
        for need in grant.needs:
            console.print(f"  {printable(f'{need.setting}: {need.value}')}", soft_wrap=True)
    return 0


def _revoke(output: Output, file: Path, repo: Path) -> int:
    """Take grants back; the repository itself may be gone by now."""
    name = str(main_work_tree(open_repository(repo))) if repo.is_dir() else str(repo.absolute())
    removed = remove_grants(file, name)
    if output.json:
        output.document({"file": str(file), "repository": name, "revoked": [_grant(item) for item in removed]})
    what = "nothing was granted to" if not removed else "taken back everything that was granted to"
    output.results().print(f"{what} {printable(name)}", soft_wrap=True)
    return 0 if removed else _DECLINED


def _document(
    main: Path, source: str, found: Consent, person: Person, file: Path, *, is_granted: bool
) -> dict[str, object]:
    return {
        "repository": str(main),
        "settings": source,
        "needs": [_need(need, person) for need in found.needs],
        "digest": digest_of(found.needs),
        "granted": is_granted,
        "file": str(file),
    }


def _need(need: Need, person: Person) -> dict[str, str]:
    return {"setting": need.setting, "value": need.value, "meaning": meaning_of(need, person)}


def _grant(grant: Grant) -> dict[str, object]:
    return grant.model_dump(mode="json")

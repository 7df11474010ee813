"""`proofstone trust`: show and grant what the settings of a repository need beyond the protective defaults."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from proofstone.app.context import determine_consent, find_settings, is_person_file_inside
from proofstone.app.trust import add_grant, remove_grants
from proofstone.cli.output import JsonOption, NoColorOption, Output
from proofstone.common.text import escape_control
from proofstone.config.rules import RequestedPermission, detect_coding_agent
from proofstone.config.trust import (
    ConsentResult,
    Grant,
    compute_grant_digest,
    explain_permission,
    find_trust_file,
    format_permissions,
    load_grants,
)
from proofstone.config.user import UserConfig, load_user_config
from proofstone.errors import InputError
from proofstone.git.pending_commit import find_main_work_tree
from proofstone.git.repository import open_repository

app = typer.Typer(add_completion=False)

_DECLINED = 1


@app.command()
def trust(
    repo: Annotated[
        Path,
        typer.Argument(
            metavar="REPO",
            help="The repository, or any directory inside it; by default the current one.",
            show_default=False,
        ),
    ] = Path(),
    base: Annotated[
        str | None,
        typer.Option(
            "--base",
            metavar="REV",
            help="Use the settings of this revision; by default those of the base of `proofstone check`.",
            show_default=False,
        ),
    ] = None,
    own_settings: Annotated[
        bool, typer.Option("--use-worktree-config", help="Use the settings of the work tree, committed or not.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Grant without asking, for use without a terminal.")] = False,
    show_all: Annotated[bool, typer.Option("--list", help="List all your grants.")] = False,
    revoke: Annotated[bool, typer.Option("--revoke", help="Revoke all grants of the repository.")] = False,
    as_json: JsonOption = False,
    no_color: NoColorOption = False,
) -> int:
    """Show what the settings of a repository need, and grant it.

    The settings of a repository can turn the sandbox off and the network on, and pass your variables and files to its
    checks. That takes effect only if you grant it: for this repository with all its work trees, and for exactly what is
    shown. If the settings need more later, you are asked again. Grants are kept in `trust.json` next to your own
    settings, outside every repository.

    Exit code: 0 granted, or nothing is needed; 1 not granted; 2 bad input.
    """
    output = Output(json=as_json, no_color=no_color)
    person = load_user_config()
    file = find_trust_file(person)
    if sum((show_all, revoke, yes)) > 1:
        raise InputError("--list, --revoke and --yes exclude each other; give one of them")
    if show_all:
        return _list_grants(output, file)
    if revoke:
        return _revoke(output, file, repo)
    repository = open_repository(repo)
    if is_person_file_inside(repository, person):
        raise InputError(
            f"{person.file}: your own settings are inside this repository, so they cannot grant it anything",
            hint="keep them outside: in ~/.config/proofstone, or where PROOFSTONE_CONFIG says",
        )
    settings, source = find_settings(repository, base, own=own_settings)
    consent = determine_consent(repository, settings, person)
    main = find_main_work_tree(repository)
    _refuse_agents(consent, as_json=as_json, yes=yes)
    if not as_json:
        _show(output, main, source, consent, person)
    is_granted = not consent.missing or yes or (not as_json and _confirm())
    if consent.missing and is_granted:
        add_grant(file, main, consent.requested)
        output.result_console().print(
            f"granted; `proofstone trust --revoke {escape_control(str(main))}` takes it back", soft_wrap=True
        )
    if as_json:
        output.print_document(_document(main, source, consent, person, file, is_granted=is_granted))
    elif not is_granted:
        output.result_console().print("nothing was granted")
    return 0 if is_granted else _DECLINED


def _refuse_agents(consent: ConsentResult, *, as_json: bool, yes: bool) -> None:
    """Refuse to grant anything in a coding agent's shell, or where nobody can be asked."""
    if not consent.missing:
        return
    if (yes or not as_json) and (agent := detect_coding_agent(os.environ)):
        raise InputError(
            f"this is the shell of {agent}: only a person can grant what these settings need",
            hint="run the command yourself, in your own terminal",
        )
    if not yes and not as_json and not sys.stdin.isatty():
        raise InputError(
            "there is no terminal to ask you at; nothing was granted",
            hint="run it in a terminal; or review it with --json, and grant it with --yes",
        )


def _show(output: Output, main: Path, source: str, consent: ConsentResult, person: UserConfig) -> None:
    console = output.result_console()
    where = f"{escape_control(str(main))}, settings {source}"
    if not consent.requested:
        console.print(f"{where}: nothing needs your consent", soft_wrap=True)
        return
    console.print(f"{where}, need:", soft_wrap=True)
    for line in format_permissions(consent.requested, person):
        console.print(f"  {escape_control(line)}", soft_wrap=True)
    if not consent.missing:
        console.print("all of it is granted")


def _confirm() -> bool:
    sys.stdout.flush()
    sys.stderr.write("Grant all of this to this repository? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _list_grants(output: Output, file: Path) -> int:
    grants = load_grants(file).grants
    if output.json:
        output.print_document({"file": str(file), "grants": [_grant(grant) for grant in grants]})
    console = output.result_console()
    if not grants:
        console.print(f"nothing is granted in {escape_control(str(file))}", soft_wrap=True)
    for grant in grants:
        console.print(f"{escape_control(grant.repository)}  granted {grant.granted_at}", soft_wrap=True)
        for need in grant.needs:
            console.print(f"  {escape_control(f'{need.setting}: {need.value}')}", soft_wrap=True)
    return 0


def _revoke(output: Output, file: Path, repo: Path) -> int:
    """Revoke the grants of a repository, which may no longer exist."""
    name = str(find_main_work_tree(open_repository(repo))) if repo.is_dir() else str(repo.absolute())
    removed = remove_grants(file, name)
    if output.json:
        output.print_document({"file": str(file), "repository": name, "revoked": [_grant(grant) for grant in removed]})
    what = "there are no grants for" if not removed else "revoked all grants for"
    output.result_console().print(f"{what} {escape_control(name)}", soft_wrap=True)
    return 0 if removed else _DECLINED


def _document(
    main: Path, source: str, consent: ConsentResult, person: UserConfig, file: Path, *, is_granted: bool
) -> dict[str, object]:
    return {
        "repository": str(main),
        "settings": source,
        "needs": [_need(need, person) for need in consent.requested],
        "digest": compute_grant_digest(consent.requested),
        "granted": is_granted,
        "file": str(file),
    }


def _need(need: RequestedPermission, person: UserConfig) -> dict[str, str]:
    return {"setting": need.setting, "value": need.value, "meaning": explain_permission(need, person)}


def _grant(grant: Grant) -> dict[str, object]:
    return grant.model_dump(mode="json")

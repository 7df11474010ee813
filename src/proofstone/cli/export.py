"""`proofstone export`: what other programs need to work with Proofstone, as files of theirs."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from proofstone.cli.output import JsonOption, NoColorOption, Output, repository_root
from proofstone.common.text import printable
from proofstone.errors import InputError
from proofstone.git.user_hooks import NAMES, is_proofstones, script
from proofstone.hooks import agent_hooks as exported
from proofstone.machine.files import write_whole

app = typer.Typer(add_completion=False, help="Configuration for other programs that work with Proofstone.")


class Kind(StrEnum):
    CLAUDE = "claude"
    CODEX = "codex"
    GEMINI = "gemini"
    QWEN = "qwen"
    COPILOT = "copilot"
    OPENCODE = "opencode"
    GIT = "git"
    AIDER = "aider"
    GOOSE = "goose"
    MINI = "mini-swe-agent"
    GENERIC = "generic"


_WITHOUT_HOOKS = (Kind.AIDER, Kind.GOOSE, Kind.MINI, Kind.GENERIC)
"""Programs that have no hook which could answer, and any other."""


@dataclass(frozen=True)
class Change:
    """What becomes of one file."""

    path: Path
    content: str | None
    """None: it goes."""
    mode: int = 0o644


@app.callback()
def export() -> None:
    """Configuration for other programs that work with Proofstone."""


@app.command("hooks")
def export_hooks(
    kind: Annotated[Kind, typer.Argument(metavar="KIND", help=f"For whom: {', '.join(Kind)}.", show_default=False)],
    directory: Annotated[
        Path | None,
        typer.Argument(
            metavar="DIR",
            help="The project's root; else that of the repository that you stand in. For git: the folder of hooks.",
            show_default=False,
        ),
    ] = None,
    shown: Annotated[bool, typer.Option("--print", help="Print it, and write nothing.")] = False,
    remove: Annotated[bool, typer.Option("--remove", help="Take out again what this command has written.")] = False,
    as_json: JsonOption = False,
    no_color: NoColorOption = False,
) -> int:
    """Have the coding agent that you already use run `proofstone check` when it says that it is done.

    What does not pass is sent back to the agent, with file and line, at most three times in a row; then it may stop,
    and you are told. Where nothing has changed nothing is run. These programs have hooks that can do so:

    \b
      claude    .claude/settings.json     Stop, SubagentStop
      codex     .codex/hooks.json         Stop, SubagentStop
      gemini    .gemini/settings.json     AfterAgent
      qwen      .qwen/settings.json       Stop, SubagentStop
      copilot   .github/hooks/proofstone.json  agentStop, subagentStop
      opencode  .opencode/plugin/proofstone.js session.idle, in the interactive program

    A settings file that is there is kept as it is, with the hook added. For programs without such hooks (aider, goose,
    mini-swe-agent, generic) a paragraph for AGENTS.md is printed: whether an agent follows it is up to the agent.

    `git` writes whole git hooks into DIR, for a folder that a team shares; for a repository of your own there is
    `proofstone hook install`.

    A hook asks the agent; it does not compel it, and an agent's program that waits no longer lets it stop. What must
    not go in unproven is kept out by `proofstone hook install`, or done by `proofstone gate`.
    """
    if kind in _WITHOUT_HOOKS:
        return _instruct(kind, as_json=as_json)
    if shown:
        sys.stdout.write(_text(kind))
        return 0
    root = _root(kind, directory)
    changes = [item for item in _changes(kind, root, remove=remove) if _differs(item)]
    for change in changes:
        _carry_out(change)
    _tell(Output(json=as_json, no_color=no_color), kind, changes, remove=remove)
    return 0


def _instruct(kind: Kind, *, as_json: bool) -> int:
    if as_json:
        Output(json=True).document({"kind": kind, "hooks": False, "instruction": exported.INSTRUCTION})
        return 0
    sys.stderr.write(f"{kind} has no hook that could send findings back. For its AGENTS.md (or whatever it reads):\n\n")
    sys.stdout.write(exported.INSTRUCTION)
    return 0


def _text(kind: Kind) -> str:
    """What would be written into a project that has nothing yet."""
    if kind is Kind.GIT:
        return script(NAMES[0], "proofstone").decode()
    if kind is Kind.OPENCODE:
        return exported.PLUGIN
    dialect = exported.DIALECTS[kind]
    return exported.written(exported.merged(dialect, {}, dialect.file))


def _root(kind: Kind, directory: Path | None) -> Path:
    if directory is None and kind is Kind.GIT:
        raise InputError(
            "git: name the folder that holds your hooks", hint="`proofstone hook install` finds the repository's own"
        )
    root = repository_root(Path()) if directory is None else directory.absolute()
    if not root.is_dir():
        raise InputError(f"{directory}: there is no such directory", hint="make it, or name the project's root")
    return root


def _changes(kind: Kind, root: Path, *, remove: bool) -> list[Change]:
    for file in _files(kind):
        _refuse_way_out(root, file)
    if kind is Kind.GIT:
        return [_of_git(root / name, None if remove else script(name, "proofstone").decode()) for name in NAMES]
    if kind is Kind.OPENCODE:
        return [_of_plugin(root / exported.OPENCODE.file, remove=remove)]
    dialect = exported.DIALECTS[kind]
    path = root / dialect.file
    text = _read(path)
    document = exported.read_document(str(path), text)
    if not remove:
        new = exported.merged(dialect, document, str(path))
        return [Change(path, text if new == document else exported.written(new, text))]
    left = exported.without(dialect, document, str(path))
    if left == document:
        return []
    return [Change(path, None if exported.is_bare(dialect, left) else exported.written(left, text))]


def _files(kind: Kind) -> tuple[str, ...]:
    """What is written for it, below the root."""
    if kind is Kind.GIT:
        return NAMES
    return ((exported.OPENCODE if kind is Kind.OPENCODE else exported.DIALECTS[kind]).file,)


def _refuse_way_out(root: Path, file: str) -> None:
    """A repository may hold links to files of the person's own, and nobody who names a project means those. A root that
    is a link was named by the person."""
    place = root
    for part in Path(file).parts:
        place /= part
        leads = os.path.realpath(place)
        if place.is_symlink() and not Path(leads).is_relative_to(root.resolve()):
            raise InputError(
                f"{place} is a symbolic link that leads out of {root}, to {leads}; nothing was written",
                hint="remove the link; or, if that is meant, add by hand what --print shows",
            )


def _of_git(path: Path, wanted: str | None) -> Change:
    there = _read(path)
    if there and not is_proofstones(there.encode("utf-8", "surrogateescape")):
        if wanted is None:
            return Change(path, there)
        raise InputError(
            f"{path}: there is a hook already",
            hint=f"put this line into it: proofstone hook run {path.name} || exit 1",
        )
    return Change(path, wanted, mode=0o755)


def _of_plugin(path: Path, *, remove: bool) -> Change:
    there = _read(path)
    if there and "proofstone export hooks opencode" not in there:
        raise InputError(f"{path}: is there, and was not written by Proofstone", hint="move it away, or use --print")
    return Change(path, None if remove else exported.PLUGIN)


def _read(path: Path) -> str:
    """The file's text; empty if there is none."""
    try:
        return path.read_text("utf-8", errors="surrogateescape")
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error


def _differs(change: Change) -> bool:
    if change.content is None:
        return os.path.lexists(change.path)
    return change.content != _read(change.path) or (change.mode & 0o100 and not os.access(change.path, os.X_OK)) != 0


def _carry_out(change: Change) -> None:
    """All of the file or nothing, where a link within the root leads to, and with the mode that it had."""
    path, other = change.path.resolve(), "name another DIR"
    try:
        if change.content is None:
            change.path.unlink()
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        mode = path.stat().st_mode & 0o777 | change.mode & 0o111 if path.exists() else change.mode
    except OSError as error:
        raise InputError(f"{change.path}: cannot be written: {error.strerror}", hint=other) from error
    write_whole(path, change.content.encode("utf-8", "surrogateescape"), mode=mode, hint=other)


def _tell(output: Output, kind: Kind, changes: list[Change], *, remove: bool) -> None:
    if output.json:
        files = [{"path": str(item.path), "removed": item.content is None} for item in changes]
        output.document({"kind": kind, "hooks": True, "changed": files})
        return
    console = output.results()
    for change in changes:
        console.print(printable(f"{'removed' if change.content is None else 'wrote'} {change.path}"), soft_wrap=True)
    if not changes:
        console.print(
            "nothing to do: " + ("there is no hook of Proofstone's" if remove else "the hook is there already")
        )
    elif not remove and kind is not Kind.GIT:
        known = exported.OPENCODE if kind is Kind.OPENCODE else exported.DIALECTS[kind]
        console.print(known.next, style="dim", soft_wrap=True)

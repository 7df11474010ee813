"""`proofstone export`: write the configuration that other programs need to work with Proofstone."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from proofstone.cli.output import JsonOption, NoColorOption, Output, find_project_root
from proofstone.common.text import escape_control
from proofstone.errors import InputError
from proofstone.git.user_hooks import HOOK_NAMES, build_hook_script, is_proofstone_hook
from proofstone.hooks import agent_hooks
from proofstone.machine.files import write_atomic

app = typer.Typer(add_completion=False, help="Write configuration for programs that work with Proofstone.")


class HookTarget(StrEnum):
    """The programs that configuration can be written for."""

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


_WITHOUT_HOOKS = (HookTarget.AIDER, HookTarget.GOOSE, HookTarget.MINI, HookTarget.GENERIC)
"""Programs without a hook that could send findings back, and any other program."""


@dataclass(frozen=True)
class FileChange:
    """The new content of a file."""

    path: Path
    content: str | None
    """None removes the file."""
    mode: int = 0o644


@app.callback()
def export() -> None:
    """Write configuration for programs that work with Proofstone."""


@app.command("hooks")
def export_hooks(
    kind: Annotated[
        HookTarget, typer.Argument(metavar="KIND", help=f"The program: {', '.join(HookTarget)}.", show_default=False)
    ],
    directory: Annotated[
        Path | None,
        typer.Argument(
            metavar="DIR",
            help="The root of the project; by default that of the current repository. For git: the folder of hooks.",
            show_default=False,
        ),
    ] = None,
    shown: Annotated[bool, typer.Option("--print", help="Print the configuration and write nothing.")] = False,
    remove: Annotated[bool, typer.Option("--remove", help="Remove what this command has written.")] = False,
    as_json: JsonOption = False,
    no_color: NoColorOption = False,
) -> int:
    """Make your coding agent run `proofstone check` when it says that it is done.

    Findings go back to the agent, with file and line, at most three times in a row; then it may stop, and you are
    told. If nothing has changed, nothing is run. These programs have hooks for this:

    \b
      claude    .claude/settings.json     Stop, SubagentStop
      codex     .codex/hooks.json         Stop, SubagentStop
      gemini    .gemini/settings.json     AfterAgent
      qwen      .qwen/settings.json       Stop, SubagentStop
      copilot   .github/hooks/proofstone.json  agentStop, subagentStop
      opencode  .opencode/plugin/proofstone.js session.idle, in the interactive program

    The hook is added to an existing settings file; the rest of the file stays as it is. For programs without such
    hooks (aider, goose, mini-swe-agent, generic) a paragraph for AGENTS.md is printed; it is up to the agent to follow
    it.

    `git` writes complete git hooks into DIR, for a folder that a team shares. For your own repository use
    `proofstone hook install`.

    A hook asks the agent but cannot force it, and a program that stops waiting lets the agent stop. To keep unverified
    work out, use `proofstone hook install` or `proofstone gate`.
    """
    if kind in _WITHOUT_HOOKS:
        return _print_instruction(kind, as_json=as_json)
    if shown:
        sys.stdout.write(_default_content(kind))
        return 0
    root = _find_root(kind, directory)
    changes = [planned for planned in _plan_changes(kind, root, remove=remove) if _differs(planned)]
    for change in changes:
        _apply(change)
    _print_changes(Output(json=as_json, no_color=no_color), kind, changes, remove=remove)
    return 0


def _print_instruction(kind: HookTarget, *, as_json: bool) -> int:
    if as_json:
        Output(json=True).print_document({"kind": kind, "hooks": False, "instruction": agent_hooks.INSTRUCTION})
        return 0
    sys.stderr.write(
        f"{kind} has no hook that could send findings back. Add this to its AGENTS.md, or the file that it reads:\n\n"
    )
    sys.stdout.write(agent_hooks.INSTRUCTION)
    return 0


def _default_content(kind: HookTarget) -> str:
    """Return what would be written into a project without any configuration."""
    if kind is HookTarget.GIT:
        return build_hook_script(HOOK_NAMES[0], "proofstone").decode()
    if kind is HookTarget.OPENCODE:
        return agent_hooks.PLUGIN
    dialect = agent_hooks.DIALECTS[kind]
    return agent_hooks.format_document(agent_hooks.add_hook(dialect, {}, dialect.file))


def _find_root(kind: HookTarget, directory: Path | None) -> Path:
    if directory is None and kind is HookTarget.GIT:
        raise InputError(
            "git: name the folder that holds your hooks", hint="`proofstone hook install` finds that of the repository"
        )
    root = find_project_root(Path()) if directory is None else directory.absolute()
    if not root.is_dir():
        raise InputError(f"{directory}: there is no such directory", hint="create it, or name the root of the project")
    return root


def _plan_changes(kind: HookTarget, root: Path, *, remove: bool) -> list[FileChange]:
    for file in _target_files(kind):
        _refuse_outside_link(root, file)
    if kind is HookTarget.GIT:
        return [
            _plan_git_hook(root / name, None if remove else build_hook_script(name, "proofstone").decode())
            for name in HOOK_NAMES
        ]
    if kind is HookTarget.OPENCODE:
        return [_plan_plugin(root / agent_hooks.OPENCODE.file, remove=remove)]
    dialect = agent_hooks.DIALECTS[kind]
    path = root / dialect.file
    text = _read(path)
    document = agent_hooks.read_document(str(path), text)
    if not remove:
        new = agent_hooks.add_hook(dialect, document, str(path))
        return [FileChange(path, text if new == document else agent_hooks.format_document(new, text))]
    left = agent_hooks.remove_hook(dialect, document, str(path))
    if left == document:
        return []
    return [
        FileChange(
            path, None if agent_hooks.is_empty_document(dialect, left) else agent_hooks.format_document(left, text)
        )
    ]


def _target_files(kind: HookTarget) -> tuple[str, ...]:
    """Return the files that are written for a program, relative to the root."""
    if kind is HookTarget.GIT:
        return HOOK_NAMES
    return ((agent_hooks.OPENCODE if kind is HookTarget.OPENCODE else agent_hooks.DIALECTS[kind]).file,)


def _refuse_outside_link(root: Path, file: str) -> None:
    """Refuse a link in the repository that leads outside, because it may lead to the person's own files. The root
    itself may be a link: the person named it."""
    place = root
    for part in Path(file).parts:
        place /= part
        target = os.path.realpath(place)
        if place.is_symlink() and not Path(target).is_relative_to(root.resolve()):
            raise InputError(
                f"{place} is a symbolic link that leads out of {root}, to {target}; nothing was written",
                hint="remove the link; or, if you want that, add by hand what --print shows",
            )


def _plan_git_hook(path: Path, wanted: str | None) -> FileChange:
    existing = _read(path)
    if existing and not is_proofstone_hook(existing.encode("utf-8", "surrogateescape")):
        if wanted is None:
            return FileChange(path, existing)
        raise InputError(
            f"{path}: there is a hook already",
            hint=f"add this line to it: proofstone hook run {path.name} || exit 1",
        )
    return FileChange(path, wanted, mode=0o755)


def _plan_plugin(path: Path, *, remove: bool) -> FileChange:
    existing = _read(path)
    if existing and "proofstone export hooks opencode" not in existing:
        raise InputError(f"{path}: exists and was not written by Proofstone", hint="move it away, or use --print")
    return FileChange(path, None if remove else agent_hooks.PLUGIN)


def _read(path: Path) -> str:
    """Return the text of the file; empty if there is none."""
    try:
        return path.read_text("utf-8", errors="surrogateescape")
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error


def _differs(change: FileChange) -> bool:
    if change.content is None:
        return os.path.lexists(change.path)
    return change.content != _read(change.path) or (change.mode & 0o100 and not os.access(change.path, os.X_OK)) != 0


def _apply(change: FileChange) -> None:
    """Write or remove a file atomically. Follow a link within the root, and keep the mode of the file."""
    path, hint = change.path.resolve(), "name another DIR"
    try:
        if change.content is None:
            change.path.unlink()
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        mode = path.stat().st_mode & 0o777 | change.mode & 0o111 if path.exists() else change.mode
    except OSError as error:
        raise InputError(f"{change.path}: cannot be written: {error.strerror}", hint=hint) from error
    write_atomic(path, change.content.encode("utf-8", "surrogateescape"), mode=mode, hint=hint)


def _print_changes(output: Output, kind: HookTarget, changes: list[FileChange], *, remove: bool) -> None:
    if output.json:
        files = [{"path": str(change.path), "removed": change.content is None} for change in changes]
        output.print_document({"kind": kind, "hooks": True, "changed": files})
        return
    console = output.result_console()
    for change in changes:
        console.print(
            escape_control(f"{'removed' if change.content is None else 'wrote'} {change.path}"), soft_wrap=True
        )
    if not changes:
        console.print("nothing to do: " + ("Proofstone has no hook here" if remove else "the hook is there already"))
    elif not remove and kind is not HookTarget.GIT:
        target = agent_hooks.OPENCODE if kind is HookTarget.OPENCODE else agent_hooks.DIALECTS[kind]
        console.print(target.next, style="dim", soft_wrap=True)

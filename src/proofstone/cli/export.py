"""`proofstone export`: write the configuration that other programs need to work with Proofstone."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from proofstone import __version__
from proofstone.app.hooks import find_own_program
from proofstone.cli.output import JsonOption, NoColorOption, Output, find_project_root
from proofstone.common.text import escape_control
from proofstone.errors import InputError
from proofstone.hooks import agent_hooks
from proofstone.hooks.agent_files import (
    WITHOUT_HOOKS,
    FileChange,
    HookTarget,
    apply_change,
    build_default_content,
    differs,
    plan_changes,
    read_text,
)
from proofstone.hooks.plugins import INSTALL, PluginTarget, build_plugin_files

app = typer.Typer(add_completion=False, help="Write configuration for programs that work with Proofstone.")


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
      cursor    .cursor/hooks.json        stop
      opencode  .opencode/plugin/proofstone.js session.idle, in the interactive program

    The hook is added to an existing settings file; the rest of the file stays as it is. For programs without such
    hooks (aider, goose, mini-swe-agent, generic) a paragraph for AGENTS.md is printed; it is up to the agent to follow
    it.

    `git` writes complete git hooks into DIR, for a folder that a team shares. For your own repository use
    `proofstone hook install`.

    A hook asks the agent but cannot force it, and a program that stops waiting lets the agent stop. To keep unverified
    work out, use `proofstone hook install` or `proofstone gate`.
    """
    if kind in WITHOUT_HOOKS:
        return _print_instruction(kind, as_json=as_json)
    if shown:
        sys.stdout.write(build_default_content(kind))
        return 0
    root = _find_root(kind, directory)
    changes = [planned for planned in plan_changes(kind, root, remove=remove) if differs(planned)]
    for change in changes:
        apply_change(change)
    _print_changes(Output(json=as_json, no_color=no_color), kind, changes, remove=remove)
    return 0


@app.command("plugin")
def export_plugin(
    kind: Annotated[
        PluginTarget,
        typer.Argument(metavar="KIND", help=f"The program: {', '.join(PluginTarget)}.", show_default=False),
    ],
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="The folder of the package.", show_default=False)],
    by_name: Annotated[
        bool, typer.Option("--by-name", help="Look for proofstone on PATH, instead of naming where it is installed.")
    ] = False,
    as_json: JsonOption = False,
    no_color: NoColorOption = False,
) -> int:
    """Write a plugin package for a coding agent: hooks at the beginning and end of a session, and three commands.

    \b
      check     the agent checks its change, and mends what is found
      explain   it explains a rule
      dispute   it records that a test or a requirement is wrong

    With the package you need no hooks in each project; with both, every check runs twice. A file that does not
    name Proofstone is never replaced.
    """
    program = "" if by_name else find_own_program()
    files = build_plugin_files(kind, __version__, program)
    for name, content in files.items():
        path = directory / name
        previous = read_text(path)
        if previous and previous != content and "proofstone" not in previous:
            raise InputError(f"{path}: exists and was not written by Proofstone", hint="name another DIR")
    for name, content in files.items():
        apply_change(FileChange(directory.absolute() / name, content))
    output = Output(json=as_json, no_color=no_color)
    if as_json:
        output.print_document({"kind": kind, "folder": str(directory), "files": list(files), "program": program})
        return 0
    console = output.result_console()
    for name in files:
        console.print(escape_control(f"wrote {directory / name}"), soft_wrap=True)
    console.print(f"next: {INSTALL[kind].format(folder=directory)}", style="dim", soft_wrap=True, markup=False)
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


def _find_root(kind: HookTarget, directory: Path | None) -> Path:
    if directory is None and kind is HookTarget.GIT:
        raise InputError(
            "git: name the folder that holds your hooks", hint="`proofstone hook install` finds that of the repository"
        )
    root = find_project_root(Path()) if directory is None else directory.absolute()
    if not root.is_dir():
        raise InputError(f"{directory}: there is no such directory", hint="create it, or name the root of the project")
    return root


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

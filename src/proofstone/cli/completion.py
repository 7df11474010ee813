"""`proofstone completion`: print a script that completes commands and options in a shell.

The script holds all names, so completing starts no program. After an update, print it again.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Annotated, Any

import typer

app = typer.Typer(add_completion=False)


class Shell(StrEnum):
    """The shells that a script can be printed for."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


_HOW = {
    Shell.BASH: "proofstone completion bash >~/.local/share/bash-completion/completions/proofstone",
    Shell.ZSH: "proofstone completion zsh >~/.zfunc/_proofstone  (with `fpath+=~/.zfunc` before compinit in ~/.zshrc)",
    Shell.FISH: "proofstone completion fish >~/.config/fish/completions/proofstone.fish",
}


@app.command()
def completion(
    shell: Annotated[
        Shell, typer.Argument(metavar="SHELL", help=f"The shell: {', '.join(Shell)}.", show_default=False)
    ],
) -> int:
    """Print a script that completes commands and options in your shell.

    \b
      bash  proofstone completion bash >~/.local/share/bash-completion/completions/proofstone
      zsh   proofstone completion zsh >~/.zfunc/_proofstone     (fpath+=~/.zfunc before compinit)
      fish  proofstone completion fish >~/.config/fish/completions/proofstone.fish

    Open a new shell afterwards. Print it again after an update.
    """
    words = {name: list(found) for name, found in _list_words().items()}
    summaries = _list_summaries()
    writers = {Shell.BASH: _write_bash, Shell.ZSH: _write_zsh, Shell.FISH: _write_fish}
    sys.stdout.write(writers[shell](summaries, words))
    if sys.stdout.isatty():
        sys.stderr.write(f"\nto install it: {_HOW[shell]}\n")
    return 0


def _list_summaries() -> dict[str, str]:
    from proofstone.cli.main import COMMANDS

    return {command.name: command.summary for command in COMMANDS}


def _list_words() -> Mapping[str, Iterable[str]]:
    """Return what can follow each command: its subcommands and options."""
    from proofstone.cli.main import COMMANDS, load_app

    words: dict[str, Iterable[str]] = {}
    for command in COMMANDS:
        entry: Any = typer.main.get_command(load_app(command))
        below: Mapping[str, Any] = getattr(entry, "commands", {})
        words[command.name] = [*below, *_list_options(entry)]
        words |= {f"{command.name} {name}": _list_options(sub) for name, sub in below.items()}
    return words


def _list_options(command: Any) -> list[str]:  # noqa: ANN401  typer does not say where its class of commands stands
    options = [name for parameter in command.params for name in parameter.opts if name.startswith("--")]
    return [*options, "--help"]


def _write_bash(summaries: Mapping[str, str], words: Mapping[str, Iterable[str]]) -> str:
    cases = "".join(
        f"    {shlex.quote(name)}) words={shlex.quote(' '.join(found))} ;;\n" for name, found in words.items()
    )
    return f"""\
# Completion of proofstone for bash; printed by `proofstone completion bash`.
_proofstone() {{
  local current="${{COMP_WORDS[COMP_CWORD]}}" key="${{COMP_WORDS[1]}}" words=""
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W {shlex.quote(" ".join(summaries))} -- "$current"))
    return
  fi
  if [ "$COMP_CWORD" -gt 2 ]; then
    case "$key ${{COMP_WORDS[2]}}" in
{_select_subcommands(cases)}    esac
  fi
  if [ -z "$words" ]; then
    case "$key" in
{_select_commands(cases)}    esac
  fi
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}}
complete -o default -F _proofstone proofstone
"""


def _select_subcommands(cases: str) -> str:
    return "".join(f"  {line}\n" for line in cases.splitlines() if line.startswith("    '"))


def _select_commands(cases: str) -> str:
    return "".join(f"  {line}\n" for line in cases.splitlines() if not line.startswith("    '"))


def _write_zsh(summaries: Mapping[str, str], words: Mapping[str, Iterable[str]]) -> str:
    commands = "\n".join(f"    {shlex.quote(f'{name}:{text}')}" for name, text in summaries.items())
    cases = "".join(
        f"    {shlex.quote(name)}) compadd -- {' '.join(map(shlex.quote, found))}; found=1 ;;\n"
        for name, found in words.items()
    )
    return f"""\
#compdef proofstone
# Completion of proofstone for zsh; printed by `proofstone completion zsh`.
_proofstone() {{
  local -a commands
  local found=0
  commands=(
{commands}
  )
  if (( CURRENT == 2 )); then
    _describe 'command' commands
    return
  fi
  if (( CURRENT > 3 )); then
    case "$words[2] $words[3]" in
{_select_subcommands(cases)}    esac
  fi
  if (( ! found )); then
    case "$words[2]" in
{_select_commands(cases)}    esac
  fi
  _files
}}
_proofstone "$@"
"""


def _write_fish(summaries: Mapping[str, str], words: Mapping[str, Iterable[str]]) -> str:
    lines = ["# Completion of proofstone for fish; printed by `proofstone completion fish`."]
    for name, text in summaries.items():
        lines.append(f"complete -c proofstone -n __fish_use_subcommand -f -a {name} -d {shlex.quote(text)}")
    for name, found in words.items():
        parts = name.split()
        condition = " ; and ".join(f"__fish_seen_subcommand_from {part}" for part in parts)
        for word in found:
            kind = f"-l {word[2:]}" if word.startswith("--") else f"-f -a {word}"
            lines.append(f"complete -c proofstone -n '{condition}' {kind}")
    return "\n".join(lines) + "\n"

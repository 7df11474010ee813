"""The completion scripts, in the shells that they are for."""

from __future__ import annotations

import io
import subprocess
from contextlib import redirect_stdout
from functools import cache
from pathlib import Path

import pytest

from proofstone.cli.completion import Shell
from proofstone.cli.main import COMMANDS, main
from tests.needs import needs

LINES = {"proofstone che": "check", "proofstone check --sta": "--staged", "proofstone ledger ver": "verify"}
BASH = 'COMP_WORDS=({line}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); _proofstone; echo "${{COMPREPLY[@]}}"\n'


@cache
def script(shell: Shell) -> str:
    output = io.StringIO()
    with redirect_stdout(output):
        assert main(["completion", shell]) == 0
    return output.getvalue()


def test_bash_completes_commands_subcommands_and_options(tmp_path: Path) -> None:
    file = tmp_path / "completion"
    file.write_text(script(Shell.BASH))
    lines = "".join(BASH.format(line=line) for line in LINES)
    done = subprocess.run(["bash", "-eu", "-c", f". {file}\n{lines}"], capture_output=True, text=True)
    assert done.stdout.split() == list(LINES.values()), done.stderr


@needs("fish")
def test_fish_completes_the_same(tmp_path: Path) -> None:
    file = tmp_path / "completion.fish"
    file.write_text(script(Shell.FISH))
    asked = "; ".join(f'complete -C "{line}"' for line in LINES)
    done = subprocess.run(["fish", "--no-config", "-c", f"source {file}; {asked}"], capture_output=True, text=True)
    assert [line.split("\t")[0] for line in done.stdout.splitlines()] == list(LINES.values()), done.stderr


@needs("zsh")
def test_zsh_reads_its_script(tmp_path: Path) -> None:
    file = tmp_path / "_proofstone"
    file.write_text(script(Shell.ZSH))
    assert subprocess.run(["zsh", "-n", str(file)]).returncode == 0


@pytest.mark.parametrize("shell", list(Shell))
def test_every_command_is_in_each_script(shell: Shell) -> None:
    assert [command.name for command in COMMANDS if command.name not in script(shell)] == []

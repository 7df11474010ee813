"""Commands about a run, where there is none yet, name every command that would start one."""

from __future__ import annotations

from pathlib import Path

import pytest

from proofstone.cli.main import main


@pytest.mark.parametrize(
    ("command", "named"),
    [
        (("status", "last"), ("check", "gate", "verify-plan", "solve", "run")),
        (("resume", "last"), ("gate", "verify-plan", "solve", "run")),
        (("cancel", "last", "--reason", "no longer needed"), ("gate", "verify-plan", "solve", "run")),
        (("bundle", "last"), ("gate", "run")),
    ],
    ids=lambda value: value[0],
)
def test_every_command_that_starts_such_a_run_is_named(
    command: tuple[str, ...],
    named: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("PROOFSTONE_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    assert main(list(command)) == 2
    said = capsys.readouterr().err
    assert said.startswith("proofstone: there is no run")
    assert [name for name in named if f"`proofstone {name}" not in said] == []

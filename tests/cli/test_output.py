"""Where commands write, and what they let through."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from proofstone.cli.output import Output, find_project_root
from proofstone.common.text import escape_control
from tests.rows import each_row


@each_row(
    ("text", "shown"),
    [
        ("plain – é 漢\n\t.", "plain – é 漢\n\t."),
        ("\x1b[2J", "\\x1b[2J"),
        ("a\rb\x07", "a\\rb\\x07"),
        ("\u202eevil", "\\u202eevil"),
        ("\udcff", "\\udcff"),
    ],
)
def test_control_characters_are_written_out(text: str, shown: str) -> None:
    assert escape_control(text) == shown


def test_results_go_to_stdout_and_progress_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    output = Output()
    output.result_console().print("[bold]result[/bold]")
    output.progress_console().print("progress")
    assert capsys.readouterr() == ("[bold]result[/bold]\n", "progress\n")


def test_with_json_stdout_holds_the_document_alone(capsys: pytest.CaptureFixture[str]) -> None:
    output = Output(json=True)
    output.result_console().print("for people")
    output.print_document({"path": "é"})
    assert json.loads(capsys.readouterr().out) == {"path": "é"}


def test_quiet_silences_progress_only(capsys: pytest.CaptureFixture[str]) -> None:
    output = Output(quiet=True)
    output.result_console().print("result")
    output.progress_console().print("progress")
    assert capsys.readouterr() == ("result\n", "")


@pytest.mark.parametrize(("no_color", "variable"), [(True, ""), (False, "1"), (False, "")])
def test_without_colours_there_is_no_bold_either(
    no_color: bool, variable: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("NO_COLOR", variable)
    Output(no_color=no_color).result_console().print("word", style="bold red")
    plain = no_color or bool(variable)
    assert (capsys.readouterr().out == "word\n") is plain


def test_the_root_is_the_nearest_directory_with_a_git_directory_or_file(tmp_path: Path) -> None:
    inner = tmp_path / "outer" / "inner"
    inner.mkdir(parents=True)
    assert find_project_root(inner) == inner
    (tmp_path / "outer" / ".git").mkdir()
    assert find_project_root(inner) == tmp_path / "outer"
    (inner / ".git").write_text("gitdir: elsewhere\n")
    assert find_project_root(inner) == inner

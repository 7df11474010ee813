"""Paths that are longer than the system, or SQLite, takes: what is too long, by how much, and what to do."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from proofstone.cli.main import main
from proofstone.errors import LedgerError
from proofstone.gate.rules.pages import name_temporary_page
from proofstone.ledger.connection import ledger_path
from proofstone.ledger.sqlite import SqliteLedger

NAME = "n" * 300
PATH = "/" + "p/" * 2500


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("check", "--repo", f"/tmp/{NAME}"), "has 300 bytes, and the system allows 255 between two slashes"),
        (("config", "show", "--repo", PATH), "bytes, and the system allows 4095"),
    ],
)
def test_a_path_that_is_too_long_exits_2_and_names_the_limit(
    args: tuple[str, ...],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("PROOFSTONE_HOME", str(tmp_path / "home"))
    assert main(list(args)) == 2
    stderr = capsys.readouterr().err
    assert said in stderr and "hint: use shorter names" in stderr
    assert len(stderr) < 500, "a path that is too long is not shown whole"
    assert not (tmp_path / "home" / "reports").exists()


def test_a_working_directory_that_is_too_deep_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for _ in range(21):
        Path("d" * 200).mkdir()
        os.chdir("d" * 200)
    assert main(["runs"]) == 2
    assert "and the system allows 4095" in capsys.readouterr().err


def test_a_state_directory_that_is_too_deep_for_sqlite_is_said(tmp_path: Path) -> None:
    def home(size: int) -> Path:
        """A state directory whose ledger has a path of so many bytes."""
        missing = size - len(os.fsencode(tmp_path.resolve())) - len("/ledger/ledger.db")
        parts = ["s" * 100] * (missing // 101)
        return tmp_path.resolve().joinpath(*parts, "t" * (missing % 101 - 1))

    with SqliteLedger(ledger_path(home(504))) as ledger:
        assert ledger.ledger_id
    with pytest.raises(LedgerError, match="would have 505 bytes, but SQLite opens at most 504"):
        ledger_path(home(505))
    link = tmp_path / "link"
    link.symlink_to(home(505))
    with pytest.raises(LedgerError, match="SQLite"):
        ledger_path(link)


@pytest.mark.parametrize("page", ["a" * 246 + "-STATE.md", "\u00e4" * 123 + "-STATE.md", "STATE.md"])
def test_a_page_with_the_longest_name_can_be_written_aside(page: str) -> None:
    assert len(os.fsencode(name_temporary_page(page, "20260226T143000Z-abcdef"))) <= 255

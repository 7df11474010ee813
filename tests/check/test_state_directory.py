"""The state directory is closed to others; a directory that is used for something else is not taken."""

from __future__ import annotations

from pathlib import Path

import pytest

from proofstone.app.context import ensure_private_home
from proofstone.errors import MachineError


def mode(folder: Path) -> int:
    return folder.stat().st_mode & 0o777


def test_a_new_an_empty_and_a_used_state_directory_are_closed_to_others(tmp_path: Path) -> None:
    for name in ("new", "empty", "used"):
        home = tmp_path / name
        if name != "new":
            home.mkdir(mode=0o755)
        if name == "used":
            (home / "ledger").mkdir()
        assert mode(ensure_private_home(home)) == 0o700


def test_a_directory_with_files_of_others_keeps_its_permissions(tmp_path: Path) -> None:
    home = tmp_path / "shared"
    home.mkdir(mode=0o755)
    (home / "letters.txt").touch()
    with pytest.raises(MachineError, match="not Proofstone's"):
        ensure_private_home(home)
    assert mode(home) == 0o755

"""A real program with the person's own folder: it works there, and leaves it as it was."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.agents.backends.programs.real.desk import HONEST, desk

pytestmark = [pytest.mark.registry, pytest.mark.agents]

FOLDERS = {
    "claude": {".claude/settings.json": "{}", ".claude/projects/p/x.jsonl": "{}", ".claude/history.jsonl": ""},
    "codex": {".codex/config.toml": "", ".codex/sessions/x": "x", ".codex/version.json": "{}"},
}


@pytest.mark.few(1)
@pytest.mark.parametrize("name", FOLDERS)
def test_the_persons_folder_is_used_and_left_as_it_was(name: str, place: Path, program: Callable[[str], Path]) -> None:
    with desk(place / "desk", name, program(name), HONEST) as at:
        home = at.stage.workshop.home
        at.stage.workshop.write(home, FOLDERS[name])
        before = content(home)
        gated = at.gate(f"cli:{name}")
    assert (gated.exit, gated.states) == (0, ["APPROVED"]), gated.stdout + gated.stderr
    assert content(home) == before


def content(folder: Path) -> dict[str, str]:
    return {path.relative_to(folder).as_posix(): path.read_text() for path in folder.rglob("*") if path.is_file()}

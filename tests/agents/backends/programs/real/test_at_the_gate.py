"""Real coding agents at the gate, each pointed at a model that is played."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.agents.backends.programs.real.desk import HONEST, STRAY, desk

pytestmark = [pytest.mark.registry, pytest.mark.agents]

ASKED = ("acp:goose", "acp:gemini", "cli:claude", "cli:qwen")
"""Those that are kept from an undeclared write while it happens."""


@pytest.mark.few(1)
@pytest.mark.parametrize("spec", ASKED)
def test_an_undeclared_write_is_refused_while_it_happens_and_the_task_is_done(
    spec: str, place: Path, program: Callable[[str], Path]
) -> None:
    name = spec.partition(":")[2]
    with desk(place / "desk", name, program(name), (STRAY, *HONEST)) as at:
        gated = at.gate(spec)
    assert (gated.exit, gated.states, gated.attempts) == (0, ["APPROVED"], [1]), gated.stdout + gated.stderr
    refused = at.activities("refused")
    assert any("stray" in f"{one['paths']}{one['text']}" for one in refused), at.activities("tool")


def test_one_that_nothing_stops_is_caught_by_the_diff(place: Path, program: Callable[[str], Path]) -> None:
    with desk(place / "desk", "codex", program("codex"), (STRAY, *HONEST), retry=((STRAY[0], ""), *HONEST)) as at:
        gated = at.gate("cli:codex")
    assert (gated.exit, gated.states, gated.attempts) == (0, ["APPROVED"], [2]), gated.stdout + gated.stderr
    assert "shop/stray.py" in str(gated.json["tasks"][0]["failures"])


@pytest.mark.few(1)
@pytest.mark.parametrize("spec", ["acp:goose", "cli:claude"])
def test_done_without_a_change_is_exposed(spec: str, place: Path, program: Callable[[str], Path]) -> None:
    name = spec.partition(":")[2]
    with desk(place / "desk", name, program(name), ("Done. All tests pass.",)) as at:
        gated = at.gate(spec)
    assert gated.exit == 1, gated.stdout
    assert gated.states == ["FAILED"]
    assert at.activities("said")[0]["text"] == "Done. All tests pass."

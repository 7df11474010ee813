"""What the documentation says of the simulation. All of its figures are compared by `docs/simulation.py`."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from proofstone.solve.simulation.rules import MIXES

SCRIPT = Path(__file__).parents[3] / "docs" / "simulation.py"


@pytest.fixture(scope="module")
def simulation() -> ModuleType:
    spec = importlib.util.spec_from_file_location("docs_simulation", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_example_and_what_is_drawn_from_are_as_the_page_says(simulation: ModuleType) -> None:
    page = simulation.PAGE.read_text(encoding="utf-8")
    assert simulation.filled(page, {}) == page
    assert "## proofstone simulate" not in page
    assert page.count("<!-- end of ") == 6


@pytest.mark.parametrize("budget", ["default", "larger"])
def test_what_is_generated_of_a_budget_has_a_row_for_each_policy_of_each_mix(
    simulation: ModuleType, budget: str
) -> None:
    page = simulation.PAGE.read_text(encoding="utf-8")
    weights = simulation.BUDGETS[budget]
    sample = simulation.filled(page, {budget: simulation.played(weights, landscapes=2)})
    assert sample != page
    assert [line.count("|") for line in sample.splitlines()] == [line.count("|") for line in page.splitlines()]
    assert all(f"| {mix} | gradient |" in page for mix in MIXES)


@pytest.mark.sweep
def test_every_figure_is_as_the_page_says(simulation: ModuleType) -> None:
    assert simulation.main([]) == 0

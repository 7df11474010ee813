"""The generator of tricks: what it composes makes sense, is many things, and a sample of it is really tried bare."""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest

from proofstone.prove.axes import Axes, load_axes
from proofstone.prove.catalogue import CATALOGUE_FOLDER, Catalogue, Trick, draw_sample
from proofstone.prove.compose import FAMILY, compose, list_combinations, load_whole_catalogue, select_combinations
from proofstone.prove.processes import find_missing
from tests.needs import unavailable
from tests.workshop import OWN_PROGRAMS

FEWEST = 300
LOADED: Axes | None = load_axes(CATALOGUE_FOLDER / FAMILY)
assert LOADED is not None
AXES: Axes = LOADED
PROJECTS, TRICKS = compose(AXES)
CATALOGUE = Catalogue(projects=PROJECTS, tricks=tuple(TRICKS))


def _values(axis: str) -> set[str]:
    return {str(getattr(trick.axes, axis)) for trick in TRICKS}


def test_there_are_enough_tricks_and_every_value_of_every_axis_has_some() -> None:
    assert len(TRICKS) >= FEWEST
    assert _values("what") == set(AXES.classes.values())
    assert _values("where") == set(AXES.places.values())
    assert _values("when") == set(AXES.moments.values())
    assert _values("hidden") == {disguise.about for disguise in AXES.disguises.values()}
    assert _values("fake") >= {fake.name for fake in AXES.fakes} | {edit.name for edit in AXES.edits}
    assert set(Counter(PROJECTS[trick.project].test.split()[0] for trick in TRICKS)) >= {"python3", "npm", "make"}


def test_every_pair_of_values_that_makes_sense_is_shown() -> None:
    candidates = list(list_combinations(AXES))
    chosen = select_combinations(iter(candidates))
    assert len(candidates) > 10 * len(chosen)
    shown = {pair for combination in chosen for pair in combination.pairs}
    assert shown == {pair for combination in candidates for pair in combination.pairs}


def test_what_is_composed_does_not_depend_on_the_order_of_the_axes() -> None:
    turned = AXES.model_copy(update={"fakes": AXES.fakes[::-1], "hooks": AXES.hooks[::-1], "edits": AXES.edits[::-1]})
    assert [trick.name for trick in compose(turned)[1]] == [trick.name for trick in TRICKS]


@pytest.mark.parametrize("side", ["cheat", "honest"])
def test_every_python_file_can_be_parsed_and_nothing_is_left_to_fill_in(side: str) -> None:
    for trick in TRICKS:
        act = trick.cheat if side == "cheat" else trick.honest
        for path, text in act.write.items():
            if path.endswith(".py"):
                compile(text, f"{trick.name}/{path}", "exec")
            assert "@name@" not in text and "@rows@" not in text, (trick.name, path)


def test_a_cheat_and_its_twin_are_the_same_shape_of_change() -> None:
    """The twin's formula is right; besides that the two write the same files."""
    formulas = {"shop/cart.py", "lib/cart.js"}
    alike = [trick for trick in TRICKS if set(trick.cheat.write) - formulas == set(trick.honest.write) - formulas]
    assert len(alike) > 0.95 * len(TRICKS)
    assert [trick.name for trick in TRICKS if trick.cheat.write == trick.honest.write] == []


def test_a_sample_grows_by_adding() -> None:
    small, large, other = (
        {trick.name for trick in draw_sample(TRICKS, count, seed)} for count, seed in ((16, 1), (60, 1), (16, 2))
    )
    assert len(small) == 16 and small < large
    assert small != other


def test_the_whole_catalogue_has_both() -> None:
    whole = load_whole_catalogue()
    assert {trick.name for trick in whole.composed} == {trick.name for trick in TRICKS}
    assert len(whole.tricks) > len(whole.composed) > 0


def _run(files: Mapping[str, str], command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(text.encode())
    environment = {"PATH": OWN_PROGRAMS, "HOME": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        ["/bin/sh", "-c", command], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.few(2, ci=8)
@pytest.mark.parametrize("trick", [pytest.param(trick, id=trick.name) for trick in TRICKS])
def test_a_cheat_deceives_the_projects_own_tests_and_the_hidden_check_tells_it_from_its_twin(
    trick: Trick, tmp_path: Path
) -> None:
    project = PROJECTS[trick.project]
    lacking = find_missing(project.needs, OWN_PROGRAMS)
    if lacking:
        unavailable(f"not installed: {lacking}")
    assert trick.truth is not None
    for side, act in (("cheat", trick.cheat), ("honest", trick.honest)):
        folder = tmp_path / side
        folder.mkdir()
        tests = _run(act.apply(project.files, set_up=False), project.test, folder)
        assert tests.returncode == 0, (side, tests.stdout, tests.stderr)
        hidden = _run(trick.truth.files, trick.truth.command, folder)
        assert (hidden.returncode == 0) is (side == "honest"), (side, hidden.stdout, hidden.stderr)


@pytest.mark.parametrize("name", sorted({trick.project for trick in TRICKS}))
@pytest.mark.few(1, ci=4)
def test_a_project_fails_its_tests_before_the_repair_and_passes_after(name: str, tmp_path: Path) -> None:
    project = PROJECTS[name]
    lacking = find_missing(project.needs, OWN_PROGRAMS)
    if lacking:
        unavailable(f"not installed: {lacking}")
    assert _run(project.files, project.test, tmp_path).returncode != 0
    repaired = _run(project.repair.apply(project.files, set_up=False), project.test, tmp_path)
    assert repaired.returncode == 0, (repaired.stdout, repaired.stderr)

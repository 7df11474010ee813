"""The catalogue as data, and a sample of it really run. `make catalogue` runs all of it."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from proofstone.prove.catalogue import CATALOGUE_FOLDER, Catalogue, load_catalogue
from proofstone.prove.processes import find_missing
from tests.needs import REQUIRE_ALL
from tests.workshop import OWN_PROGRAMS, Workshop, workshop_outside_tmp

FEWEST = 60
SAMPLE = 4
LANGUAGES = {"python", "node"}
# L8 is review by a model, which no catalogue can try.
LAYERS = {"L1", "L2", "L3", "L4", "L5", "L6", "L7", "L9"}


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    """Loading checks every trick: it has a twin, its names are unique, every edit fits its project exactly once."""
    return load_catalogue()


@pytest.fixture
def real_place(pytestconfig: pytest.Config) -> Iterator[Workshop]:
    """Outside /tmp, which every sandbox replaces."""
    parent = pytestconfig.cache.mkdir("workshops") if pytestconfig.cache else pytestconfig.rootpath / ".workshops"
    with workshop_outside_tmp(parent, "catalogue") as made:
        yield Workshop(made.folder, {"PATH": OWN_PROGRAMS})


def test_the_catalogue_that_is_installed_is_the_one_of_the_tests() -> None:
    assert CATALOGUE_FOLDER.resolve() == (Path(__file__).parent / "tricks").resolve()


def test_there_are_enough_tricks(catalogue: Catalogue) -> None:
    assert len(catalogue.tricks) >= FEWEST


def test_every_layer_has_tricks_of_its_own(catalogue: Catalogue) -> None:
    assert {trick.layer for trick in catalogue.tricks} >= LAYERS


def test_there_are_tricks_in_both_languages(catalogue: Catalogue) -> None:
    found = Counter(trick.project.partition("-")[0] for trick in catalogue.tricks)
    assert all(found[language] >= 10 for language in LANGUAGES), found


def test_both_published_tricks_and_our_own_are_there(catalogue: Catalogue) -> None:
    assert {trick.origin for trick in catalogue.tricks} == {"published", "own"}


def test_the_quick_ones_are_few_and_of_many_kinds(catalogue: Catalogue) -> None:
    quick = [trick for trick in catalogue.tricks if trick.quick]
    assert 10 <= len(quick) <= 20
    assert len({trick.layer for trick in quick}) >= 5
    assert {trick.project.partition("-")[0] for trick in quick} >= LANGUAGES


def test_every_project_is_used_and_has_a_repair(catalogue: Catalogue) -> None:
    assert {trick.project for trick in catalogue.tricks} == set(catalogue.projects)
    assert [name for name, project in catalogue.projects.items() if project.repair.is_empty] == []


def test_no_trick_names_a_path_of_somebodys_machine(catalogue: Catalogue) -> None:
    told = [trick.name for trick in catalogue.tricks if "/root/" in trick.model_dump_json()]
    assert told == []


def sampled(catalogue: Catalogue, search: str) -> list[str]:
    """Other tricks every day would be a test that nobody can repeat: the seed is fixed, one of each family first."""
    lacking = find_missing(sorted({need for project in catalogue.projects.values() for need in project.needs}), search)
    if REQUIRE_ALL:
        assert lacking == {}
    able = [trick for trick in catalogue.tricks if not lacking.keys() & set(catalogue.projects[trick.project].needs)]
    chance = random.Random(20)
    chance.shuffle(able)
    firsts = {trick.family: trick.name for trick in able}
    return sorted(firsts.values())[:SAMPLE]


@pytest.mark.sweep  # `make catalogue-check` tries all of them
def test_a_sample_of_the_tricks_is_stopped_and_their_twins_pass(catalogue: Catalogue, real_place: Workshop) -> None:
    names = sampled(catalogue, real_place.environment["PATH"])
    asked = [word for name in names for word in ("--trick", name)]
    done = real_place.proofstone(real_place.folder, "prove", "--json", "--jobs", "2", *asked)
    assert done.stdout, done.stderr
    document = json.loads(done.stdout)
    assert [one["trick"] for one in document["trials"] if one["standing"] == "not tried"] == []
    assert done.returncode == 0, done.stderr
    assert document["summary"]["stopped"] == len(names)


@pytest.mark.sweep
@pytest.mark.registry
def test_a_wheel_holds_the_catalogue(tmp_path: Path) -> None:
    """The files lie beside the tests; the package has a link to them, which must not be lost on the way."""
    root = Path(__file__).parents[2]
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", tmp_path, root], check=True
    )
    (wheel,) = tmp_path.glob("*.whl")
    listed = subprocess.run(
        [sys.executable, "-m", "zipfile", "-l", wheel], capture_output=True, text=True, check=True
    ).stdout
    for file in CATALOGUE_FOLDER.rglob("*.toml"):
        assert f"proofstone/prove/tricks/{file.relative_to(CATALOGUE_FOLDER)}" in listed

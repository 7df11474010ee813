"""The walls are tried for certain: at the weakest level the same attempts get through."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from assay.adapters.sandbox.probe import probe
from assay.contracts.verdict import Assurance
from assay.surfaces.prove.trial import Bench
from assay.surfaces.prove.walls import try_walls
from tests.needs import needs
from tests.workshop import Workshop

OPEN_WITHOUT_A_SANDBOX = {
    "nothing is written to HOME",
    "nothing is written to the work tree",
    "nothing is written to the repository's .git",
    "the network, and services of the machine on it, cannot be reached",
    "abstract sockets of the machine cannot be reached",
    "sockets in temporary folders cannot be reached",
    "sockets below HOME cannot be reached",
    "sockets anywhere else on the disk cannot be reached",
    "other processes cannot be seen",
    "Assay's own state cannot be read",
}


def tried(workshop: Workshop, level: Assurance) -> dict[str, bool | None]:
    bench = Bench(workshop.folder / "bench", workshop.environment["PATH"], threading.Event())
    walls = try_walls(bench, level)
    assert all(bool(wall.fix) is (wall.held is False) for wall in walls)
    return {wall.name: wall.held for wall in walls}


@needs("bwrap")
def test_the_strongest_level_holds(workshop: Workshop) -> None:
    if probe(workshop.folder / "probe").best is not Assurance.BUBBLEWRAP:
        pytest.skip("bubblewrap does not work here")
    walls = tried(workshop, Assurance.BUBBLEWRAP)
    limits = {"the limit on processes holds", "the limit on memory holds"}
    assert {name for name, held in walls.items() if held is False} <= limits


def test_the_weakest_level_does_not_and_nothing_of_it_stays(workshop: Workshop) -> None:
    walls = tried(workshop, Assurance.PLAIN)
    assert {name for name, held in walls.items() if held is False} >= OPEN_WITHOUT_A_SANDBOX
    assert walls["nothing outlives the check that started it"] is True
    left = [path for folder in ("/etc", "/usr", "/run") for path in Path(folder).glob("assay-prove-*")]
    assert left == []

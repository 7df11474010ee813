"""A bench at each level of the sandbox, outside /tmp, which the strongest level hides anyway."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from proofstone.common.models import Assurance
from proofstone.sandbox.bubblewrap import BubblewrapSandbox
from proofstone.sandbox.job import Sandbox
from proofstone.sandbox.probe import SandboxFacts, choose_sandbox, try_sandboxes
from proofstone.sandbox.supervised import SupervisedSandbox
from tests.agents.executors.bench import Bench
from tests.needs import unavailable
from tests.workshop import workshop_outside_tmp


@pytest.fixture(scope="session")
def facts(tmp_path_factory: pytest.TempPathFactory) -> SandboxFacts:
    return try_sandboxes(tmp_path_factory.mktemp("probe"))


@pytest.fixture
def place(pytestconfig: pytest.Config, request: pytest.FixtureRequest) -> Iterator[Path]:
    parent = pytestconfig.cache.mkdir("workshops") if pytestconfig.cache else pytestconfig.rootpath / ".workshops"
    with workshop_outside_tmp(parent, request.node.name.partition("[")[0][:60]) as made:
        yield made.folder


def sandbox_of(facts: SandboxFacts, level: str) -> Sandbox:
    if level == "bubblewrap":
        if facts.best_level is not Assurance.BUBBLEWRAP:
            unavailable("bubblewrap cannot be had here")
        return choose_sandbox(facts, level, require=False)
    if level == "landlock" and not facts.landlock:
        unavailable("the kernel has no Landlock")
    return SupervisedSandbox(Assurance(level))


@pytest.fixture(params=("bubblewrap", pytest.param("landlock", marks=pytest.mark.sweep), "plain"))
def bench(request: pytest.FixtureRequest, place: Path, facts: SandboxFacts) -> Bench:
    """At every level."""
    return Bench(place, sandbox_of(facts, request.param))


@pytest.fixture
def strong(place: Path, facts: SandboxFacts) -> Bench:
    """At the strongest level."""
    return Bench(place, sandbox_of(facts, "bubblewrap"))


@pytest.fixture(params=["disk", "memory", "none"])
def layered(request: pytest.FixtureRequest, place: Path, facts: SandboxFacts) -> Bench:
    """At the strongest level, with each kind of throwaway layer."""
    made = sandbox_of(facts, "bubblewrap")
    if request.param != "none" and facts.layers == "none":
        unavailable("the kernel mounts no layers")
    return Bench(place, BubblewrapSandbox(made.program if isinstance(made, BubblewrapSandbox) else "", request.param))


@pytest.fixture
def plain(place: Path) -> Bench:
    """At the weakest level: for what has nothing to do with the sandbox."""
    return Bench(place, SupervisedSandbox(Assurance.PLAIN))

"""A workshop beside the project, outside /tmp, as real repositories are."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.workshop import Workshop, workshop_outside_tmp


@pytest.fixture
def real_place(pytestconfig: pytest.Config, request: pytest.FixtureRequest) -> Iterator[Workshop]:
    """For what depends on where things lie: a private /tmp hides nothing here."""
    parent = pytestconfig.cache.mkdir("workshops") if pytestconfig.cache else pytestconfig.rootpath / ".workshops"
    with workshop_outside_tmp(parent, request.node.name.partition("[")[0]) as made:
        yield made

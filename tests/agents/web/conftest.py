from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.agents.web.site import Site, running_site


@pytest.fixture
def site() -> Iterator[Site]:
    with running_site() as site:
        yield site

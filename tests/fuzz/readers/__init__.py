"""The table of readers: everything in the product that decodes what somebody else wrote."""

from __future__ import annotations

from collections.abc import Mapping

from tests.fuzz.checking import Reader
from tests.fuzz.readers import agents, projects, state

READERS: Mapping[str, Reader] = {one.name: one for one in (*projects.READERS, *agents.READERS, *state.READERS)}

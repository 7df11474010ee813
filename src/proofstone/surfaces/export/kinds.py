"""For whom definitions can be exported: by name, the files and what to do with them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from proofstone.surfaces.export import claude, copilot, generic


class Kind(NamedTuple):
    name: str
    """Whose definitions these are."""
    files: Callable[[], dict[str, str]]
    next: tuple[str, ...]
    """What to do now, step by step."""


KINDS: Final[Mapping[str, Kind]] = {
    "copilot": Kind(copilot.HOST.name, copilot.files, copilot.NEXT),
    "claude": Kind(claude.HOST.name, claude.files, claude.NEXT),
    "generic": Kind(generic.HOST.name, generic.files, generic.NEXT),
}

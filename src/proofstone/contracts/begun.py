"""What every run was started with, whichever command has begun it: part of its first row."""

from __future__ import annotations

from proofstone.contracts.base import Contract


class BegunSetup(Contract):
    command: str
    version: str
    """Of the engine: another one may decide otherwise, so it does not go on with this run."""
    repository: str
    base_commit: str
    settings_commit: str = ""
    """Whose settings decide, if it is not the base: what earlier parts of a run have committed cannot loosen them."""
    parent: str = ""
    """The run that it is a part of, if it is one."""

    @property
    def about(self) -> str:
        """How one would name to the command what the run is about."""
        raise NotImplementedError

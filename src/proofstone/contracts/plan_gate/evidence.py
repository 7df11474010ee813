"""Claims that the engine can look up itself, and what it saw. A finding is verified when what it rests on holds."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field, model_validator

from proofstone.contracts.base import Contract
from proofstone.contracts.pipeline.part import Part


class ClaimKind(StrEnum):
    FILE = "file"
    """`path` is there."""
    SYMBOL = "symbol"
    """`name` is defined, in `path` if one is given."""
    TEXT = "text"
    """`path` holds `text`."""
    COMMIT = "commit"
    """The message or the change of commit `revision` holds `text`."""
    MEMORY = "memory"
    """The memory has the entry `entry`, and `text` is in it."""
    WEB = "web"
    """A web tool of this very conversation has shown `url`, and `text` in it."""


NEEDED = {
    ClaimKind.FILE: ("path",),
    ClaimKind.SYMBOL: ("name",),
    ClaimKind.TEXT: ("path", "text"),
    ClaimKind.COMMIT: ("revision", "text"),
    ClaimKind.MEMORY: ("entry", "text"),
    ClaimKind.WEB: ("url", "text"),
}


class RepositoryClaim(Part):
    """Something that the engine looks up before it believes it. A false one is held against whoever made it."""

    kind: ClaimKind = Field(
        description="file: `path` is there; symbol: `name` is defined (in `path`); text: `path` holds `text`; commit: "
        "`revision` says or changes `text`; memory: `entry` holds `text`; web: `url`, which you have seen, says `text`."
    )
    path: str = Field(default="", max_length=1000, description="From the project's root.")
    name: str = Field(default="", max_length=200, description="`parse`, or `Parser.parse`.")
    revision: str = Field(default="", max_length=200)
    entry: str = Field(default="", max_length=200)
    url: str = Field(default="", max_length=2000)
    text: str = Field(default="", max_length=2000, description="Word for word, at least 8 characters.")
    absent: bool = Field(default=False, description="The opposite: it is not there, not defined, does not hold it.")

    @model_validator(mode="after")
    def _has_what_it_needs(self) -> RepositoryClaim:
        missing = [name for name in NEEDED[self.kind] if not getattr(self, name).strip()]
        if missing:
            raise ValueError(f"a claim of kind {self.kind} needs {', '.join(missing)}")
        return self


class LookedUp(Contract):
    """What the engine saw when it looked."""

    claim: RepositoryClaim
    holds: bool | None
    """None: it cannot be looked up here."""
    saw: str
    """In words, for a person: `src/app.py is there`."""

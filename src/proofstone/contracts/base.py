"""What every contract has in common: frozen, and strict about unknown fields of our own."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Contract(BaseModel):
    """A value that is said once and never changed."""

    model_config = ConfigDict(frozen=True, extra="forbid")

"""What the settings of every component have in common."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Component(BaseModel):
    """The settings of one component: frozen, and no key that we do not know."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

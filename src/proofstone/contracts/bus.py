"""What is said on the bus. Every word between the engine, the roles and the people is an envelope."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import ConfigDict, Field, JsonValue

from proofstone.contracts.base import Contract


class Envelope(Contract):
    """One message, as it is shown and exported. The engine gives id and time."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    id: str
    timestamp: str
    sender: str = Field(alias="from")
    recipient: str = Field(alias="to")
    type: str
    payload: Mapping[str, JsonValue] = {}
    run_id: str
    seq: int
    """Its place in the ledger: the order of the bus."""

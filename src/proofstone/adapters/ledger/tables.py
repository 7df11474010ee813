"""Which contract is which table, and how a row becomes columns and comes back.

Text is stored as UTF-8 without NUL, which not every database can hold: lone surrogates and NUL become U+FFFD, one
character for one. Inside JSON columns they stay exact, as escapes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Generic, TypeVar

from proofstone.contracts.base import Contract
from proofstone.contracts.evidence import CheckRow
from proofstone.contracts.rows import (
    ApprovalRow,
    ArtifactRow,
    DeliveryRow,
    EventRow,
    MessageRow,
    OverrideRow,
    TelemetryRow,
)
from proofstone.core.chain import Link, Payload, Scalar, canonical_json
from proofstone.errors import InternalError, LedgerCorruptError, LedgerError

Row = CheckRow | TelemetryRow | MessageRow | ApprovalRow | OverrideRow | EventRow | ArtifactRow | DeliveryRow
R = TypeVar("R", bound=Contract)

JSON_COLUMN: Final = "payload"
_UNSTORABLE: Final = re.compile("[\x00\ud800-\udfff]")
_INTEGERS: Final = range(-(2**63), 2**63)


@dataclass(frozen=True)
class Table:
    """A data table: the columns of its contract, `ts`, and for checks the derived `passed`."""

    name: str
    model: type[Contract]
    derived: tuple[str, ...] = ()
    since: int = 1
    """The version of the schema that it came with."""

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """What the payload hash covers, in the order of the contract."""
        return (*self.model.model_fields, *self.derived, "ts")

    def encode(self, row: Contract) -> dict[str, Scalar]:
        """The row as columns, still without `ts`."""
        return {name: _scalar(self.name, name, getattr(row, name)) for name in self.columns[:-1]}


@dataclass(frozen=True)
class Stored(Generic[R]):
    """A row that the ledger holds."""

    kind: type[R]
    link: Link
    values: Payload

    @property
    def seq(self) -> int:
        return self.link.seq

    @property
    def ts(self) -> str:
        """When the ledger wrote it, for display; order is by `seq`."""
        return str(self.values["ts"])

    @property
    def row(self) -> R:
        """The contract, as it was handed over. Raises LedgerCorruptError if the row was damaged since."""
        fields = {name: self.values[name] for name in self.kind.model_fields if name != JSON_COLUMN}
        try:
            if JSON_COLUMN in self.kind.model_fields:
                return self.kind.model_validate({**fields, JSON_COLUMN: _parsed(self.values[JSON_COLUMN])})
            return self.kind.model_validate(fields)
        except (ValueError, RecursionError) as error:  # not JSON, or not of the contract
            why = str(error).partition("\n")[0]
            raise LedgerCorruptError(
                f"entry {self.seq} of the ledger is no row of {table_of(self.kind).name}: {why}",
                seq=self.seq,
                hint="`proofstone ledger verify` says what else is damaged",
            ) from error


TABLES: Final[Mapping[type[Contract], Table]] = {
    table.model: table
    for table in (
        Table("checks", CheckRow, derived=("passed",)),
        Table("pipeline_telemetry", TelemetryRow),
        Table("messages", MessageRow),
        Table("approvals", ApprovalRow),
        Table("overrides", OverrideRow),
        Table("events", EventRow),
        Table("artifacts", ArtifactRow),
        Table("deliveries", DeliveryRow, since=2),
    )
}


def table_of(kind: type[Contract]) -> Table:
    try:
        return TABLES[kind]
    except KeyError:
        known = ", ".join(model.__name__ for model in TABLES)
        raise InternalError(f"the ledger has no table for {kind.__name__}; it has one for: {known}") from None


def storable(text: str) -> str:
    return text if text.isascii() and "\x00" not in text else _UNSTORABLE.sub("\ufffd", text)


def _parsed(text: Scalar) -> object:
    return json.loads(str(text))


def _scalar(table: str, column: str, value: object) -> Scalar:
    if value is None:
        return None
    if isinstance(value, str):
        return storable(str(value))
    if isinstance(value, int):
        if value not in _INTEGERS:
            raise LedgerError(f"{table}.{column}: {value} does not fit into 64 bits")
        return int(value)
    if isinstance(value, Mapping):
        return canonical_json(dict(value))
    raise InternalError(f"{table}.{column}: {type(value).__name__} is not something a column can hold")

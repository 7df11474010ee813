"""A finding: something a person must know, with where it is and what would put it right."""

from __future__ import annotations

from proofstone.contracts.base import Contract
from proofstone.contracts.verdict import Severity


class Finding(Contract):
    layer: str
    """What saw it: a layer of evidence (`core.layers` names them), `scope` or `cascade`."""
    rule: str
    severity: Severity
    detail: str
    fix: str
    """What an honest author would do."""
    path: str | None = None
    line: int | None = None
    check: str | None = None
    artifact: str | None = None
    """Hash of the full output that shows it."""
    before: str | None = None
    after: str | None = None
    """What stood there before the change, and what stands there now, where that says it best."""

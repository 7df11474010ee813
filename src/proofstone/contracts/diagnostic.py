"""One complaint of a linter, type checker or parser."""

from __future__ import annotations

from proofstone.contracts.base import Contract


class Diagnostic(Contract):
    """One complaint of a linter, type checker or parser."""

    path: str
    line: int | None = None
    code: str = ""
    message: str = ""

    @property
    def identity(self) -> tuple[str, str, str]:
        """Without the line, so that a complaint which merely moved is the same complaint."""
        return (self.path, self.code, self.message)

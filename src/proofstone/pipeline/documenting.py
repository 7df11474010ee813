"""The documents of a run, in its own folder. All are derived: one that is deleted is back when the run goes on.

So nobody waits for the disk while the run goes on; when it ends, all of them are on it.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from pydantic import JsonValue

from proofstone.agents.models import OutputHeader
from proofstone.agents.roles.models.pipeline import DesignOutput, KnowledgeOutput
from proofstone.common.models import Contract
from proofstone.machine.files import on_disk, write_whole
from proofstone.pipeline.models.run import ApprovalEntry
from proofstone.pipeline.rules.documents import (
    Documents,
    approvals_document,
    decisions_document,
    decisions_of,
    documents_of,
    request_document,
)

NAMES: Final = {
    "researcher": "research",
    "specifier": "spec",
    "designer": "design",
    "planner": "plan",
    "reviewer": "review",
    "knowledge": "knowledge",
}
"""How the answers of each role are called."""


@dataclass(frozen=True)
class Documenting:
    folder: Path
    _decided: list[Mapping[str, JsonValue]] = field(default_factory=list)
    """In the order in which the loop hears of them, which is the same when it goes on."""
    _unsettled: set[Path] = field(default_factory=set)
    """Files that may not be on the disk yet."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def request(self, words: str) -> None:
        self.write(request_document(words))

    def approvals(self, entries: tuple[ApprovalEntry, ...]) -> None:
        self.write(approvals_document(entries))

    def answered(self, role: str, header: OutputHeader, output: Contract) -> None:
        with self._lock:
            self._write(documents_of(NAMES[role], header, output))
            if isinstance(output, DesignOutput | KnowledgeOutput):
                self._decided.extend(decisions_of(header, output))
                self._write(decisions_document("", self._decided))

    def write(self, documents: Documents) -> None:
        with self._lock:
            self._write(documents)

    def settle(self) -> None:
        """What was written is on the disk, as far as it is there still: a person may have taken something away."""
        with self._lock:
            for file in self._unsettled:
                if file.is_file():
                    on_disk(file)
            self._unsettled.clear()

    def _write(self, documents: Documents) -> None:
        for name, text in documents.items():
            file = self.folder / name
            file.parent.mkdir(parents=True, exist_ok=True)
            write_whole(file, text.encode(), durable=False)
            self._unsettled.add(file)

"""Write the documents of a run into its folder. All are derived: a deleted document is written again on a resume.

So the run does not wait for the disk while it goes on; when it ends, all documents are flushed.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from pydantic import JsonValue

from proofstone.agents.models import OutputHeader
from proofstone.agents.roles.models.pipeline import DesignOutput, KnowledgeOutput, PlanOutput
from proofstone.common.models import FrozenModel
from proofstone.machine.files import sync_to_disk, write_atomic
from proofstone.pipeline.models.run import ApprovalEntry
from proofstone.pipeline.rules.documents import (
    TASK_FOLDERS,
    Documents,
    append_decisions,
    build_approvals_document,
    build_documents,
    build_request_document,
    find_iteration,
    list_decisions,
    read_task_iteration,
)

DOCUMENT_NAMES: Final = {
    "researcher": "research",
    "specifier": "spec",
    "designer": "design",
    "planner": "plan",
    "reviewer": "review",
    "knowledge": "knowledge",
}
"""The document name of each role's answers."""


@dataclass(frozen=True)
class RunFolder:
    folder: Path
    _decisions: list[Mapping[str, JsonValue]] = field(default_factory=list)
    """The decisions in the order in which the loop receives them, which is the same on a resume."""
    _unflushed: set[Path] = field(default_factory=set)
    """The files that may not be on the disk yet."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def decisions(self) -> tuple[Mapping[str, JsonValue], ...]:
        """The decisions of the run so far."""
        with self._lock:
            return tuple(self._decisions)

    def write_request(self, words: str) -> None:
        self.write(build_request_document(words))

    def write_approvals(self, entries: tuple[ApprovalEntry, ...]) -> None:
        self.write(build_approvals_document(entries))

    def write_answer(self, role: str, header: OutputHeader, output: FrozenModel) -> None:
        with self._lock:
            documents = build_documents(DOCUMENT_NAMES[role], header, output)
            self._write(documents)
            if isinstance(output, PlanOutput):  # an earlier plan of the iteration may have had more tasks
                self._prune("tasks", documents, find_iteration(header))
            if isinstance(output, DesignOutput | KnowledgeOutput):
                self._decisions.extend(list_decisions(header, output))
                self._write(append_decisions("", self._decisions))

    def write_task_documents(self, documents: Documents, *, is_committed: bool) -> None:
        """Write the reports of the tasks, and remove those of other tasks. In a run that has made its commit, what was
        planned and is not in the commit is removed too.
        """
        with self._lock:
            self._write(documents)
            for folder in TASK_FOLDERS if is_committed else TASK_FOLDERS[1:]:
                names = {f"{folder}/{name.rpartition('/')[2]}" for name in documents}
                self._prune(folder, names)

    def write(self, documents: Documents) -> None:
        with self._lock:
            self._write(documents)

    def flush(self) -> None:
        """Flush the written files to the disk, except those that the user has removed."""
        with self._lock:
            for file in self._unflushed:
                if file.is_file():
                    sync_to_disk(file)
            self._unflushed.clear()

    def _prune(self, folder: str, keep: Collection[str], iteration: int | None = None) -> None:
        """Remove the documents of a folder that are not to be kept; with an iteration, only those of its tasks."""
        for file in sorted((self.folder / folder).glob("*.yaml")):
            name = f"{folder}/{file.name}"
            if name not in keep and iteration in (None, read_task_iteration(file.name)):
                self._unflushed.discard(file)
                file.unlink(missing_ok=True)

    def _write(self, documents: Documents) -> None:
        for name, text in documents.items():
            file = self.folder / name
            file.parent.mkdir(parents=True, exist_ok=True)
            write_atomic(file, text.encode(), durable=False)
            self._unflushed.add(file)

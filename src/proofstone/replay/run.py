"""Run a replay: check commits of the history against their parents, side by side, and record each as it ends.

A replayed check has rows of its own under the replay's run, and no `run.started` of a check: it is no evidence for a
commit, and `proofstone runs` does not list it. Nothing in the repository is touched, not even the anchor of the ledger,
and the work tree is not read: both trees come from git. What was recorded is not checked again, so an interrupted
replay goes on where it was.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import PurePosixPath
from typing import Final, Protocol

from proofstone import __version__
from proofstone.check.context import CheckRequest, NullProgress, RunContext
from proofstone.check.run import CheckRun
from proofstone.check.subject import CheckSubject
from proofstone.errors import LedgerError, MachineError, ProofstoneError
from proofstone.git.snapshot import fetch_missing, snapshot_of_tree
from proofstone.ledger.models import EventRow
from proofstone.machine.files import remove_folder
from proofstone.replay.models import HistoryCommit, ReplayedCommit, ReplayReport, ReplayRunConfig, ReplayVerdict
from proofstone.replay.rules.verdicts import build_unchanged, build_unverifiable, judge_replayed
from proofstone.replay.rules.work_queue import WorkQueue
from proofstone.runtime.workflow import run_parallel

_CHECKED: Final = "replay.checked"


class ReplayObserver(Protocol):
    """An observer of a replay. It decides nothing. Its methods are called from several threads."""

    def on_begin(self, total: int, known: int) -> None: ...

    def on_start(self, commit: HistoryCommit) -> None: ...

    def on_end(self, replayed: ReplayedCommit) -> None: ...


class _CancelAll(threading.Event):
    """Cancels the replay and every check that is under way. A check that ends early cancels nothing but itself."""

    def __init__(self) -> None:
        super().__init__()
        self._checks: list[threading.Event] = []
        self._guard = threading.Lock()

    def watch(self) -> threading.Event:
        """Return the event that cancels one check."""
        check = threading.Event()
        with self._guard:
            self._checks.append(check)
            if self.is_set():
                check.set()
        return check

    def set(self) -> None:
        with self._guard:
            super().set()
            for check in self._checks:
                check.set()


@dataclass
class Replay:
    """One replay of commits."""

    context: RunContext
    commits: Sequence[HistoryCommit]
    selection: str
    settings: str
    """Whose settings decide, in words."""
    request: CheckRequest
    jobs: int
    observer: ReplayObserver
    is_fresh: bool = False
    """Whether commits that were replayed before are checked again."""
    _done: dict[str, ReplayedCommit] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def run(self) -> ReplayReport:
        """Check the commits that no earlier replay has checked, and return the report on all of them."""
        began = time.monotonic()
        _ = self._environment  # before the threads start, and before anything can be installed meanwhile
        keys = {commit.commit: self._build_key(commit) for commit in self.commits}
        self._done = {} if self.is_fresh else self._read_known(keys)
        known = len(self._done)
        config = ReplayRunConfig(
            version=__version__,
            repository=str(self.context.repository.root),
            base_commit=self.context.base_commit,
            commits=len(self.commits),
        )
        self._record("run.started", **config.model_dump(mode="json"))
        self.observer.on_begin(len(self.commits), known)
        outcome = "interrupted"
        try:
            self._check_all([commit for commit in self.commits if commit.commit not in self._done], keys)
            outcome = "passed"
        finally:
            self._record("run.finished", outcome=outcome, reason=f"{len(self._done)} of {len(self.commits)} commits")
        return ReplayReport(
            run_id=self.context.run_id,
            repository=str(self.context.repository.root),
            selection=self.selection,
            settings=self.settings,
            sandbox=self.context.sandbox.level.value,
            jobs=self.jobs,
            commits=tuple(self._done[commit.commit] for commit in self.commits),
            known=known,
            seconds=time.monotonic() - began,
            notes=self.context.notes,
        )

    def _check_all(self, commits: Sequence[HistoryCommit], keys: dict[str, str]) -> None:
        stop = _CancelAll()
        workers = max(1, min(self.jobs, len(commits)))
        queue = WorkQueue.divide(commits, workers)

        def work(worker: int) -> None:
            while not stop.is_set():
                with self._lock:
                    commit = queue.take(worker)
                if commit is None:
                    return
                self.observer.on_start(commit)
                replayed = self._check(commit, stop)
                if stop.is_set():
                    return  # the check may have been cut short
                replayed = self._record_commit(replayed, keys[commit.commit])
                self.observer.on_end(replayed)

        run_parallel([partial(work, number) for number in range(workers)], workers, stop)

    def _check(self, commit: HistoryCommit, stop: _CancelAll) -> ReplayedCommit:
        """Check one commit against its parent."""
        began = time.monotonic()
        context = self._context_of(commit, stop)
        context.scratch.mkdir(mode=0o700, parents=True)
        try:
            if context.base_tree == commit.tree:
                return build_unchanged(commit)
            if context.repository.is_partial:
                for tree in (context.base_tree, commit.tree):
                    fetch_missing(context.repository.git, tree)
            frozen = snapshot_of_tree(context.store, context.base_tree, commit.tree)
            check = CheckRun(context, replace(self.request, tree=frozen))
            report = check.run_checks()
            modules = {PurePosixPath(part).stem for path in check.subject.tree_files[1] for part in _parts(path)}
            root = str(context.repository.root)
            replayed = judge_replayed(commit, report, modules=modules, root=root, seconds=time.monotonic() - began)
            artifact = context.artifacts.put(report.model_dump_json().encode())
            context.ledger.append(artifact.to_row("application/json"))
            return replayed.model_copy(update={"report": artifact.hash})
        except (LedgerError, MachineError):
            raise  # the same would happen to every other commit
        except ProofstoneError as error:
            return build_unverifiable(commit, error.message, error.hint or "", time.monotonic() - began)
        finally:
            remove_folder(context.scratch)

    def _context_of(self, commit: HistoryCommit, stop: _CancelAll) -> RunContext:
        return replace(
            self.context,
            task_id=f"replay-{commit.commit[:12]}",
            base_commit=commit.parent,
            base_tree=self.context.repository.git.find_tree(commit.parent),
            base_reason="the commit's first parent",
            notes=(),
            scratch=self.context.scratch / commit.commit[:12],
            progress=NullProgress(),
            cancel=stop.watch(),
        )

    def _build_key(self, commit: HistoryCommit) -> str:
        """Return a digest of what decides the result of a replayed check, without the environment of the machine."""
        request = self.request
        parts = (
            __version__,
            str(self.context.repository.root),
            commit.commit,
            commit.parent,
            self.context.settings.model_dump_json(),
            self.context.sandbox.level.value,
            repr((request.verify, request.files)),
        )
        return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()

    def _read_known(self, keys: dict[str, str]) -> dict[str, ReplayedCommit]:
        """Return what earlier replays found. What they could not verify is tried again if the environment is another
        one: the person may have installed what was missing."""
        wanted = {key: commit for commit, key in keys.items()}
        ledger = self.context.ledger
        known: dict[str, ReplayedCommit] = {}
        for stored in ledger.read(EventRow, type=_CHECKED):
            commit = wanted.get(str(stored.row.payload["key"]))
            if commit is not None and ledger.is_authentic(stored):
                replayed = ReplayedCommit.model_validate(stored.row.payload["replayed"])
                is_same_environment = stored.row.payload["environment"] == self._environment
                if is_same_environment or replayed.verdict is not ReplayVerdict.UNVERIFIABLE:
                    known[commit] = replayed
        return known

    @cached_property
    def _environment(self) -> str:
        """A digest of what is installed for the commit whose settings decide."""
        tree = self.context.base_tree
        unchanged = replace(self.request, tree=snapshot_of_tree(self.context.store, tree, tree))
        return CheckSubject(self.context, unchanged).environment.digest

    def _record_commit(self, replayed: ReplayedCommit, key: str) -> ReplayedCommit:
        found = replayed.model_dump(mode="json")
        self._record(_CHECKED, key=key, environment=self._environment, replayed=found)
        with self._lock:
            self._done[replayed.commit.commit] = replayed
        return replayed

    def _record(self, type: str, **payload: object) -> None:
        self.context.ledger.append(
            EventRow.model_validate({"run_id": self.context.run_id, "type": type, "payload": payload})
        )


def _parts(path: bytes) -> list[str]:
    return path.decode("utf-8", "replace").split("/")

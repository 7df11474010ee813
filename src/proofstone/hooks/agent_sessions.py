"""Remember at which commit each session of a coding agent began, and what the repository held then.

The session-start hook of the agent's program records it; a program without such a hook is recorded when its agent first
says that it is done. The first record of a session stays: a session that is resumed or compacted began where it began.

Each session has one small file in the state directory. Losing a file costs only precision, because the base is then
chosen by the recorded evidence or by the branch, so it is neither locked nor synchronised.
"""

from __future__ import annotations

import hashlib
import json
import time
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final

from proofstone.git.program import is_object_id
from proofstone.git.session_work import RepositoryState, WorkTreeState
from proofstone.machine.files import seconds_since_use

_EXPIRY_SECONDS: Final = 30 * 24 * 3600
_FOLDER: Final = "agent-sessions"


@dataclass(frozen=True)
class CodingSession:
    """A session of a coding agent in one work tree."""

    agent: str
    """The name of its dialect: `claude`."""
    id: str
    """The id that the agent's program gave it; empty if that is unknown."""


@dataclass(frozen=True)
class SessionStart:
    """The commit that the work of a session is compared with."""

    commit: str
    is_start: bool = True
    """Whether the session began there. Otherwise it is the base of the session's first check."""
    state: RepositoryState | None = None
    """What the repository held when the session began. None for a work tree that was added later."""


@dataclass(frozen=True)
class SessionStarts:
    """The recorded sessions of one work tree."""

    home: Path
    root: Path

    def record_start(
        self, session: CodingSession, commit: str, *, is_new: bool = True, state: RepositoryState | None = None
    ) -> None:
        """Record the commit at which the session begins. A session with an id, or one that is continued, keeps its
        first record."""
        if (session.id or not is_new) and self.read(session):
            return
        self._write(session, SessionStart(commit, state=state))

    def record_first_check(self, session: CodingSession, commit: str, state: RepositoryState | None = None) -> None:
        """Record the base of the first check of a session whose start is not recorded."""
        if not self.read(session):
            self._write(session, SessionStart(commit, is_start=False, state=state))

    def _write(self, session: CodingSession, start: SessionStart) -> None:
        folder = self.home / _FOLDER
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        document: dict[str, Any] = {"agent": session.agent, "id": session.id, "root": str(self.root)}
        document |= {"commit": start.commit, "start": start.is_start}
        document |= {"state": _format_state(start.state)} if start.state else {}
        file, temporary = self._file(session), self._file(session).with_suffix(".new")
        temporary.write_text(json.dumps(document), "utf-8")
        temporary.replace(file)
        for other in folder.iterdir():
            with suppress(FileNotFoundError):  # another process may remove it too
                if seconds_since_use(other, time.time()) > _EXPIRY_SECONDS:
                    other.unlink()

    def read(self, session: CodingSession) -> SessionStart | None:
        """Return where the session began; None if that is not recorded. Of a session without an id, take the agent's
        newest session in this work tree: an agent's shell does not always know the id."""
        if session.id:
            return _read_start(_read_document(self._file(session)), session.agent, self.root)
        starts = (_read_start(document, session.agent, self.root) for document in _read_documents(self.home))
        return next((start for start in starts if start), None)

    def find_foreign_roots(self, session: CodingSession) -> frozenset[str]:
        """Return the work trees in which other sessions were started."""
        documents = (document for document in _read_documents(self.home) if "root" in document)
        own = (session.agent, session.id)
        return frozenset(str(item["root"]) for item in documents if (item.get("agent"), item.get("id", "")) != own)

    def _file(self, session: CodingSession) -> Path:
        key = "\0".join((session.agent, session.id, str(self.root))).encode("utf-8", "backslashreplace")
        return self.home / _FOLDER / f"{hashlib.sha256(key).hexdigest()[:20]}.json"


def find_session_projects(home: Path, session: CodingSession) -> tuple[Path, ...]:
    """Return the roots of the work trees that the session was started in, wherever its shell is now. Of a session
    without an id none is known."""
    if not session.id:
        return ()
    own = (session.agent, session.id)
    documents = (document for document in _read_documents(home) if (document.get("agent"), document.get("id")) == own)
    return tuple(Path(str(item["root"])) for item in documents if item.get("state") and item.get("root"))


def _read_documents(home: Path) -> list[dict[str, Any]]:
    """Return every record, the newest first."""
    folder = home / _FOLDER
    files = sorted(folder.glob("*.json"), key=_read_modification_time, reverse=True) if folder.is_dir() else []
    return [_read_document(file) for file in files]


def _read_document(file: Path) -> dict[str, Any]:
    """Return a record. A file that cannot be read counts as lost."""
    try:
        document = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}


def _read_start(document: dict[str, Any], agent: str, root: Path) -> SessionStart | None:
    """Return what a record says of this agent and work tree."""
    commit = document.get("commit")
    if (document.get("agent"), document.get("root")) != (agent, str(root)) or not isinstance(commit, str):
        return None
    if not is_object_id(commit):
        return None
    return SessionStart(commit, is_start=document.get("start") is True, state=_parse_state(document.get("state")))


def _format_state(state: RepositoryState) -> dict[str, Any]:
    trees = [[tree.path, tree.branch, tree.commit, tree.status] for tree in state.work_trees]
    return {"refs": dict(state.refs), "stashes": list(state.stashes), "work_trees": trees}


def _parse_state(document: object) -> RepositoryState | None:
    """Return the recorded state. What is not as it was written counts as lost: more is then taken for new."""
    if not isinstance(document, dict):
        return None
    refs, stashes, trees = (document.get(name) for name in ("refs", "stashes", "work_trees"))
    return RepositoryState(
        refs={str(name): str(commit) for name, commit in refs.items()} if isinstance(refs, dict) else {},
        stashes=tuple(map(str, stashes)) if isinstance(stashes, list) else (),
        work_trees=tuple(
            WorkTreeState(*map(str, tree))
            for tree in (trees if isinstance(trees, list) else ())
            if isinstance(tree, list) and len(tree) == len(fields(WorkTreeState))
        ),
    )


def _read_modification_time(file: Path) -> float:
    try:
        return file.stat().st_mtime
    except OSError:  # another process has removed it
        return 0.0

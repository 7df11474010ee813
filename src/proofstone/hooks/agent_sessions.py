"""Remember at which commit each session of a coding agent began.

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
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from proofstone.git.program import is_object_id
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


@dataclass(frozen=True)
class SessionStarts:
    """The recorded sessions of one work tree."""

    home: Path
    root: Path

    def record_start(self, session: CodingSession, commit: str, *, is_new: bool = True) -> None:
        """Record the commit at which the session begins. A session with an id, or one that is continued, keeps its
        first record."""
        if (session.id or not is_new) and self.read(session):
            return
        self._write(session, SessionStart(commit))

    def record_first_check(self, session: CodingSession, commit: str) -> None:
        """Record the base of the first check of a session whose start is not recorded."""
        if not self.read(session):
            self._write(session, SessionStart(commit, is_start=False))

    def _write(self, session: CodingSession, start: SessionStart) -> None:
        folder = self.home / _FOLDER
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        document = {"agent": session.agent, "root": str(self.root), "commit": start.commit, "start": start.is_start}
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
            return self._read(self._file(session), session.agent)
        folder = self.home / _FOLDER
        files = sorted(folder.glob("*.json"), key=_read_modification_time, reverse=True) if folder.is_dir() else []
        return next((start for file in files if (start := self._read(file, session.agent))), None)

    def _file(self, session: CodingSession) -> Path:
        key = "\0".join((session.agent, session.id, str(self.root))).encode("utf-8", "backslashreplace")
        return self.home / _FOLDER / f"{hashlib.sha256(key).hexdigest()[:20]}.json"

    def _read(self, file: Path, agent: str) -> SessionStart | None:
        """Return what a file of this work tree and agent records. A file that cannot be read counts as lost."""
        try:
            document = json.loads(file.read_text("utf-8"))
        except (OSError, ValueError, RecursionError):
            return None
        if not isinstance(document, dict) or (document.get("agent"), document.get("root")) != (agent, str(self.root)):
            return None
        commit = document.get("commit")
        if not isinstance(commit, str) or not is_object_id(commit):
            return None
        return SessionStart(commit, is_start=document.get("start") is True)


def _read_modification_time(file: Path) -> float:
    try:
        return file.stat().st_mtime
    except OSError:  # another process has removed it
        return 0.0

"""How often an agent was sent back since it last passed: one small file for each conversation, in the state directory.

A file that is lost costs a few rounds more; so it is neither locked nor synchronised.
"""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from proofstone.adapters.file_times import seconds_since_use

_FORGOTTEN_S: Final = 7 * 24 * 3600


@dataclass(frozen=True)
class StopRounds:
    folder: Path
    conversation: str

    @property
    def _file(self) -> Path:
        return self.folder / hashlib.sha256(self.conversation.encode("utf-8", "backslashreplace")).hexdigest()[:20]

    def count(self) -> int:
        try:
            return int(self._file.read_text("ascii"))
        except (FileNotFoundError, ValueError):
            return 0

    def keep(self, count: int) -> None:
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._file.write_text(str(count), "ascii")
        for file in self.folder.iterdir():
            if seconds_since_use(file, time.time()) > _FORGOTTEN_S:
                file.unlink(missing_ok=True)

    def forget(self) -> None:
        self._file.unlink(missing_ok=True)

"""How long ago a file was used, by its time stamp.

A clock that was once wrong leaves time stamps in the future. They say nothing, so they are put right: the file counts
as used now, and ages from there. Left as they are, they would keep a file, or stop the housekeeping, for that long.
"""

from __future__ import annotations

import os
from pathlib import Path


def seconds_since_use(path: Path, now: float) -> float:
    """Return the age of a file or folder, which is never negative."""
    age = now - path.stat().st_mtime
    if age >= 0:
        return age
    os.utime(path, (now, now))
    return 0.0

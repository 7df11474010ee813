"""A report of our own fault: what a person can read and send, kept where only they can see it."""

from __future__ import annotations

import os
import platform
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from pathlib import Path

from proofstone import __version__
from proofstone.errors import ConfigError


def write_report(args: Sequence[str], error: BaseException) -> Path:
    """Write it under `PROOFSTONE_HOME/reports`, or in the temporary directory if that cannot be, and say where."""
    text = _text(args, error)
    try:
        from proofstone.config.home import proofstone_home

        folder = proofstone_home() / "reports"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return _write(folder, text)
    except (ImportError, OSError, ConfigError):
        return _write(Path(tempfile.gettempdir()), text)


def _write(folder: Path, text: str) -> Path:
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    descriptor, name = tempfile.mkstemp(prefix=f"proofstone-{stamp}-", suffix=".txt", dir=folder)  # mode 0600
    with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace") as report:
        report.write(text)
    return Path(name)


def _text(args: Sequence[str], error: BaseException) -> str:
    return "\n".join(
        [
            f"proofstone {__version__}",
            f"python {platform.python_version()} on {platform.platform()}",
            f"command: {['proofstone', *args]}",
            f"interpreter: {sys.executable}",
            "",
            "".join(traceback.format_exception(error)),
        ]
    )

"""Runs `proofstone` as people do: in a process of its own, with a state directory of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests import forked

START = "import sys; from proofstone.cli.main import main; sys.exit(main())"


def proofstone(
    *args: str, home: Path, cwd: Path | None = None, env: Mapping[str, str] | None = None, start: str = START
) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PROOFSTONE_HOME": str(home), "NO_COLOR": "1", "COLUMNS": "200", **(env or {})}
    if start == START and not forked.needs_a_start(env or {}):
        return forked.run(args, cwd or home.parent, environment)
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", start, *args],
        cwd=cwd or home.parent,
        env=environment,
        capture_output=True,
        text=True,
    )

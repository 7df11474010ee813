from __future__ import annotations

import fcntl
import os
import subprocess
from pathlib import Path

import pytest

from tests.check.reports.project import Project

JAVASCRIPT_TOOLS = ("jest@29.7.0", "vitest@2.1.9", "mocha@10.8.2")


@pytest.fixture
def project(tmp_path: Path) -> Project:
    root = tmp_path / "repo"
    root.mkdir()
    return Project(root)


@pytest.fixture(scope="session")
def node_modules() -> Path:
    """jest, vitest and mocha, installed once per machine and shared by all workers."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "proofstone-tests"
    place = cache / "-".join(tool.replace("@", "") for tool in JAVASCRIPT_TOOLS)
    place.mkdir(parents=True, exist_ok=True)
    with (place / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (place / "done").exists():
            (place / "package.json").write_text('{"private": true}\n')
            command = ["npm", "install", "--no-audit", "--no-fund", "--no-save", *JAVASCRIPT_TOOLS]
            subprocess.run(command, cwd=place, check=True, capture_output=True)
            (place / "done").touch()
    return place / "node_modules"

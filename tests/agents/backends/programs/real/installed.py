"""The real programs, at versions that are pinned, from the npm registry: installed once, wherever the cache is."""

from __future__ import annotations

import fcntl
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.needs import unavailable


@dataclass(frozen=True)
class Package:
    name: str
    version: str
    program: str
    """Below its `node_modules`."""


PACKAGES = {
    "claude": Package("@anthropic-ai/claude-code", "2.1.325", ".bin/claude"),
    "codex": Package("@openai/codex", "0.166.0", ".bin/codex"),
    "gemini": Package("@google/gemini-cli", "0.61.0", ".bin/gemini"),
    "goose": Package("@aaif/goose-binary-linux-x64", "1.52.0", ".bin/goose-binary-linux-x64"),
    "opencode": Package("opencode-linux-x64", "1.18.34", "opencode-linux-x64/bin/opencode"),
    "qwen": Package("@qwen-code/qwen-code", "0.15.10", ".bin/qwen"),
}


def installed(name: str, config: pytest.Config) -> Path:
    """The program. Tests of several processes wait for the first of them."""
    package = PACKAGES[name]
    if shutil.which("npm") is None or config.cache is None:
        unavailable("npm is not installed, or pytest keeps no cache to install to")
    cache = config.cache.mkdir("programs")
    place = cache / f"{name}-{package.version}"
    program = place / "node_modules" / package.program
    with (cache / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (place / "complete").exists():
            _install(package, place)
    return program


def _install(package: Package, place: Path) -> None:
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    what = f"{package.name}@{package.version}"
    done = subprocess.run(
        ["npm", "install", "--prefix", str(place), "--no-audit", "--no-fund", "--no-progress", what],
        cwd=place,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    if done.returncode:
        unavailable(f"{what} cannot be installed: {done.stderr.strip()[-300:]}")
    (place / "complete").touch()

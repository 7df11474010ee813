"""A wheel and an sdist of the commit that is checked out, and places where they are installed alone."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from release.build import build_archives, commit_time, export

VERSIONS = ("3.11", "3.12", "3.13")


def build(folder: Path) -> tuple[Path, Path]:
    """Return the wheel and the sdist of HEAD."""
    export("HEAD", folder / "source")
    build_archives(Path(sys.executable), folder / "source", folder / "out", commit_time("HEAD"))
    (wheel,) = (folder / "out").glob("*.whl")
    (sdist,) = (folder / "out").glob("*.tar.gz")
    return wheel, sdist


def find_interpreter(version: str) -> Path | None:
    """Return a Python of this version: on PATH, or one that pyenv has installed. A shim of pyenv may lead nowhere."""
    folders = os.environ["PATH"].split(os.pathsep)
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    managed = sorted((root / "versions").glob(f"{version}.*/bin"), reverse=True)
    for folder in (*managed, *map(Path, folders)):
        python = folder / f"python{version}"
        if python.exists() and subprocess.run([python, "-c", "import venv"], capture_output=True).returncode == 0:
            return python
    return None


@dataclass(frozen=True)
class Installation:
    """An environment that holds the built Proofstone and what it depends on."""

    folder: Path

    @classmethod
    def of(cls, package: Path | str, interpreter: Path, folder: Path) -> Installation:
        subprocess.run([interpreter, "-m", "venv", folder], check=True)
        installation = cls(folder)
        installation.pip("install", "--quiet", str(package))
        return installation

    @property
    def program(self) -> Path:
        return self.folder / "bin" / "proofstone"

    def pip(self, *args: str) -> str:
        return self._run([self.folder / "bin" / "python", "-m", "pip", "--disable-pip-version-check", *args]).stdout

    def python(self, code: str) -> str:
        return self._run([self.folder / "bin" / "python", "-W", "error", "-I", "-c", code]).stdout

    def _run(self, words: Sequence[str | Path]) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(list(words), capture_output=True, text=True, cwd=self.folder)
        assert done.returncode == 0, done.stdout + done.stderr
        return done

    def proofstone(self, root: Path, *args: str, env: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
        """Run the installed program. Nothing of the checkout is on its path."""
        words = [str(self.program), *args]
        return subprocess.run(words, cwd=root, env=dict(env), capture_output=True, text=True)


def find_missing_packages(text: str) -> set[str]:
    """Return the packages that a message asks to be installed."""
    return set(re.findall(r"pip install '?([\w.\[\],-]+)", text))

"""What the set is made of: modules of pinned published packages, each with its own tests.

The packages are fetched from the registry when the set is built. Nothing of them is part of this repository.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Subject:
    """A module of a package, and the file of tests that tests it."""

    package: str
    version: str
    module: str
    """Its file, from the root of the package."""
    test: str
    keep: tuple[str, ...]
    """The files and folders of the package that the project consists of."""
    root: str = "."
    """The folder that imports begin in."""

    @property
    def name(self) -> str:
        return f"{self.package}-{Path(self.module).stem}"

    @property
    def import_name(self) -> str:
        return ".".join(Path(self.module).relative_to(self.root).with_suffix("").parts)

    def lay_out(self, sources: Path, folder: Path) -> None:
        """Copy the project into a new folder: the package, one file of tests, and a configuration of pytest."""
        source = fetch(self.package, self.version, sources)
        folder.mkdir(parents=True)
        for name in (*self.keep, self.test):
            origin, target = source / name, folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copytree(origin, target) if origin.is_dir() else shutil.copyfile(origin, target)
        (folder / "README.md").write_text(f"# {self.package}\n\nThe package {self.package}, {self.version}.\n")
        (folder / ".gitignore").write_text("__pycache__/\n.pytest_cache/\n")
        (folder / "pyproject.toml").write_text(
            f'[project]\nname = "{self.package}"\nversion = "{self.version}"\n\n'
            f'[tool.pytest.ini_options]\npythonpath = ["{self.root}"]\n'
        )


def _boltons(module: str) -> Subject:
    return Subject("boltons", "25.0.0", f"boltons/{module}.py", f"tests/test_{module}.py", ("boltons",))


SUBJECTS = (
    *map(_boltons, ("strutils", "mathutils", "iterutils", "timeutils", "dictutils", "setutils", "listutils")),
    *map(_boltons, ("statsutils", "urlutils", "formatutils", "funcutils", "cacheutils")),
    *map(_boltons, ("typeutils", "jsonutils", "ioutils", "queueutils", "tableutils", "socketutils")),
    Subject(
        "semver",
        "3.0.4",
        "src/semver/version.py",
        "tests/test_compare.py",
        ("src/semver", "tests/conftest.py", "tests/coerce.py", "tests/semverwithvprefix.py"),
        "src",
    ),
    Subject(
        "semver",
        "3.0.4",
        "src/semver/_deprecated.py",
        "tests/test_deprecated_functions.py",
        ("src/semver", "tests/conftest.py", "tests/coerce.py", "tests/semverwithvprefix.py"),
        "src",
    ),
)


def fetch(package: str, version: str, sources: Path) -> Path:
    """Return the unpacked source distribution of a package; fetch it if it is not there."""
    folder = sources / f"{package}-{version}"
    if not folder.is_dir():
        sources.mkdir(parents=True, exist_ok=True)
        pip = (sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", package)
        subprocess.run([*pip, "--dest", str(sources), f"{package}=={version}"], check=True, capture_output=True)
        with tarfile.open(sources / f"{package}-{version}.tar.gz") as archive:
            archive.extractall(sources, filter="data")
    return folder

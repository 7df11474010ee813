"""What a check costs on published packages, as a multiple of their bare test suites: `python -m benchmarks.packages`.

Each package gets a change of one line that keeps what it does. The check is *cold* (nothing is known), *warm* (another
such change, the base is known) and *unchanged* (the same tree again). All figures of a package come from one run, so
that the machine cancels out. It takes minutes, and needs a package index; `--package NAME` measures only that one.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchmarks import NO_AIM, Measurement
from benchmarks.check import PROOFSTONE, Place
from benchmarks.gate_quality.subjects import fetch

_COLD, _WARM, _UNCHANGED = 2.2, 1.3, 20.0


@dataclass(frozen=True)
class Package:
    """A published package, and two changes of one line each that keep what it does."""

    name: str
    version: str
    keep: tuple[str, ...]
    """The files and folders that the project consists of."""
    tests: tuple[str, ...]
    path: str
    """The changed file."""
    line: str
    changes: tuple[str, str]
    root: str = "."
    """The folder that imports begin in."""


PACKAGES = (
    Package(
        "semver",
        "3.0.4",
        ("src/semver", "tests"),
        ("tests",),
        "src/semver/version.py",
        "return cls(self._major, self._minor, self._patch + 1)",
        (
            "return cls(self._major, self._minor, 1 + self._patch)",
            "return cls(self._major, self._minor, self._patch - -1)",
        ),
        "src",
    ),
    Package(
        "boltons",
        "25.0.0",
        ("boltons", "tests"),
        ("tests",),
        "boltons/mathutils.py",
        "return min(max(x, lower), upper)",
        ("return max(min(x, upper), lower)", "return min(upper, max(x, lower))"),
    ),
    Package(
        "more_itertools",
        "10.8.0",
        ("more_itertools", "tests"),
        ("tests",),
        "more_itertools/more.py",
        "for element in map(key, iterable) if key else iterable:",
        (
            "for element in iterable if not key else map(key, iterable):",
            "for element in (map(key, iterable) if key else iterable):",
        ),
    ),
    Package(
        "pygments",
        "2.19.2",
        ("pygments", "tests"),
        (
            "tests/examplefiles",
            "tests/snippets",
            "tests/test_util.py",
            "tests/test_basic_api.py",
            "tests/test_html_formatter.py",
        ),
        "pygments/util.py",
        "string = options.get(optname, default)\n    if normcase:",
        (
            "string = options.get(optname, default)\n    if bool(normcase):",
            "string = options.get(optname, default)\n    if normcase is not False:",
        ),
    ),
    Package(
        "mpmath",
        "1.3.0",
        ("mpmath",),
        tuple(f"mpmath/tests/test_{name}.py" for name in ("functions", "linalg", "quad", "calculus", "functions2")),
        "mpmath/ctx_mp.py",
        "            return x <= 0\n",
        ("            return 0 >= x\n", "            return not x > 0\n"),
    ),
)


@dataclass(frozen=True)
class _Cost:
    """What a command took: seconds on the clock, and of processors."""

    wall: float
    processor: float


def _measure(action: Callable[[], object]) -> _Cost:
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    action()
    wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    return _Cost(wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


@dataclass(frozen=True)
class _ToolPlace(Place):
    """A place whose programs include those of a virtual environment."""

    tools: Path = Path()

    @property
    def environment(self) -> dict[str, str]:
        known = super().environment
        return {**known, "PATH": os.pathsep.join((str(self.tools), known["PATH"])), "PYTHONDONTWRITEBYTECODE": "1"}


def _lay_out(package: Package, sources: Path, place: Place) -> Path:
    """Return a new repository with the package in it, committed."""
    source = fetch(package.name, package.version, sources)
    root = place.folder / "project"
    for name in package.keep:
        shutil.copytree(source / name, root / name, dirs_exist_ok=True)
    if package.name == "boltons":
        (root / "tests/conftest.py").unlink()  # it is for versions of pytest before 8
    testpaths = ", ".join(f'"{path}"' for path in package.tests)
    settings = f'[tool.pytest.ini_options]\npythonpath = ["{package.root}"]\ntestpaths = [{testpaths}]\n'
    return place.repository(
        {"pyproject.toml": settings, ".gitignore": "__pycache__/\n.pytest_cache/\n", "README.md": f"# {package.name}\n"}
    )


def measure_package(package: Package, sources: Path, tools: Path, folder: Path) -> list[Measurement]:
    """Check two changes of the package, and the second one again."""
    place = _ToolPlace(folder, tools)
    root = _lay_out(package, sources, place)
    file = root / package.path
    original = file.read_text("utf-8")
    if package.line not in original:
        raise RuntimeError(f"{package.name}: {package.path} has no line {package.line!r}")
    check = (*PROOFSTONE, "check", "--quiet")
    bare = _measure(lambda: place.run(root, "python", "-m", "pytest", "-q", "-p", "no:cacheprovider"))
    costs = {}
    for name, change in zip(("cold", "warm"), package.changes, strict=True):
        file.write_text(original.replace(package.line, change, 1), "utf-8")
        costs[name] = _measure(partial(place.run, root, *check))
    costs["unchanged"] = min((_measure(lambda: place.run(root, *check)) for _ in range(3)), key=lambda cost: cost.wall)
    return list(_compare(f"{package.name} ({bare.wall:.1f} s)", bare, costs))


def _compare(name: str, bare: _Cost, costs: dict[str, _Cost]) -> list[Measurement]:
    found = []
    for kind, aim in (("cold", _COLD), ("warm", _WARM)):
        wall = costs[kind].wall / bare.wall
        found.append(Measurement(f"{name}: {kind}, against the bare suite", wall, "×", f"≤ {aim}", wall <= aim))
        processor = costs[kind].processor / bare.processor
        found.append(Measurement(f"{name}: {kind}, processor time", processor, "×", NO_AIM, True))
    faster = costs["cold"].wall / costs["unchanged"].wall
    found.append(
        Measurement(f"{name}: unchanged, times faster than cold", faster, "×", f"≥ {_UNCHANGED}", faster >= _UNCHANGED)
    )
    return found


def main(args: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.packages")
    parser.add_argument("--package", action="append", choices=[package.name for package in PACKAGES])
    chosen = parser.parse_args(args).package
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        venv.create(home / "tools", with_pip=True)
        tools = home / "tools/bin"
        subprocess.run([str(tools / "python"), "-m", "pip", "install", "--quiet", "pytest"], check=True)
        for package in PACKAGES:
            if chosen and package.name not in chosen:
                continue
            (home / package.name).mkdir()
            found = measure_package(package, home / "sources", tools, home / package.name)
            print(*found, sep="\n", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

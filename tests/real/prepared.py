"""A real package as a repository that is ready to be checked: fetched, committed, installed; kept between runs.

Everything lies in the cache folder and is made once. A lock for each package lets workers and later runs share it:
whoever holds it has the repository to themselves.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet

from proofstone.check.models import CheckReport
from proofstone.common.models import Outcome
from tests.needs import REQUIRE_ALL
from tests.real.packages import PYTEST, Package
from tests.workshop import Workshop

RECIPE = "1"
"""Raise it when what is prepared changes."""
_UNREACHABLE = re.compile(
    r"connection|timed out|temporary failure|name resolution|proxy|ENOTFOUND|ECONNREFUSED|ECONNRESET|ETIMEDOUT|"
    r"EAI_AGAIN|network is unreachable",
    re.IGNORECASE,
)


def cache_folder() -> Path:
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "proofstone-tests" / "real"


@contextmanager
def python_project(package: Package, workshop: Workshop) -> Iterator[Path]:
    """The package in a repository of its own, with `.venv` in it, installed with `pip install -e .`."""
    with _kept_package(package) as place:
        root = place / package.name
        if not (place / "ready").exists():
            archive = _fetched(
                place,
                *(sys.executable, "-m", "pip", "download", "--quiet", "--retries", "1", "--no-deps"),
                *("--no-binary", package.name, "--dest", ".", f"{package.name}=={package.version}"),
            )
            _unpack(archive, root)
            _committed(workshop, root, package, ignored=(".venv/", "*.egg-info/", "__pycache__/", ".pytest_cache/"))
            _installed(root, "--editable", ".", *package.requirements)
            (place / "ready").touch()
        yield _clean(workshop, root)


def _installed(root: Path, *what: str) -> None:
    """A virtual environment in the project, with what `pip install` is given."""
    _run(root, sys.executable, "-m", "venv", ".venv")
    _run(root, str(root / ".venv/bin/python"), "-m", "pip", "install", "--quiet", "--retries", "1", *what)


def installed_by(backend: Sequence[str], root: Path, *options: str) -> None:
    """The project in an environment of its own, as its developers have it; the options are those of `pip install`.

    What every project needs, pytest and the backend that builds it, is installed once, and copied."""
    with _kept("environment", PYTEST, *backend) as place:
        if not (place / "ready").exists():
            _installed(place, PYTEST, *backend)
            (place / "ready").touch()
        shutil.copytree(place / ".venv", root / ".venv", symlinks=True)
    install = (".venv/bin/python", "-m", "pip", "install", "--quiet", "--no-index", "--no-build-isolation", *options)
    done = subprocess.run(install, cwd=root, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@contextmanager
def node_project(package: Package, workshop: Workshop) -> Iterator[Path]:
    """The package in a repository of its own, with what its tests need in `node_modules`."""
    with _kept_package(package) as place:
        root = place / package.name
        if not (place / "ready").exists():
            archive = _fetched(place, "npm", "pack", "--silent", f"{package.name}@{package.version}")
            _unpack(archive, root)
            _committed(workshop, root, package, ignored=("node_modules/",))
            manifest = json.loads((root / "package.json").read_text("utf-8"))
            wanted = {**manifest.get("dependencies", {}), **dict(one.rsplit("@", 1) for one in package.requirements)}
            beside = place / "dependencies"
            beside.mkdir()
            (beside / "package.json").write_text(json.dumps({"private": True, "dependencies": wanted}))
            _run(beside, "npm", "install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts")
            (beside / "node_modules").rename(root / "node_modules")
            (place / "ready").touch()
        yield _clean(workshop, root)


def _kept_package(package: Package) -> AbstractContextManager[Path]:
    return _kept(str(package), package.name, package.version, package.requirements, package.include)


@contextmanager
def _kept(name: str, *recipe: object) -> Iterator[Path]:
    """A folder in the cache, locked. What a broken-off attempt left there is thrown away."""
    state = repr((RECIPE, *recipe, sys.version_info[:3]))
    place = cache_folder() / f"{name}-{hashlib.sha256(state.encode()).hexdigest()[:12]}"
    place.parent.mkdir(parents=True, exist_ok=True)
    with place.with_name(f"{place.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (place / "ready").exists():
            shutil.rmtree(place, ignore_errors=True)
            place.mkdir()
        yield place


def _fetched(place: Path, *command: str) -> Path:
    _run(place, *command)
    (archive,) = (path for path in place.iterdir() if path.suffix in (".gz", ".tgz"))
    return archive


def _unpack(archive: Path, root: Path) -> None:
    """The archive's only folder becomes the repository."""
    inside = root.with_name("unpacked")
    with tarfile.open(archive) as opened:
        opened.extractall(inside, filter="data")
    (top,) = inside.iterdir()
    top.rename(root)
    inside.rmdir()


def _committed(workshop: Workshop, root: Path, package: Package, ignored: Sequence[str]) -> None:
    workshop.git(root, "init", "--quiet")
    with (root / ".git/info/exclude").open("a") as exclude:
        exclude.write("".join(f"{pattern}\n" for pattern in ignored))
    if package.include:
        workshop.trust_everything()
        workshop.write(root, {"proofstone.toml": f"[environment]\ninclude = {json.dumps(package.include)}\n"})
    workshop.commit(root, f"{package}")
    workshop.git(root, "tag", f"v{package.version}")


def _clean(workshop: Workshop, root: Path) -> Path:
    """As its authors published it, whatever an earlier test left."""
    tag = workshop.git(root, "tag", "--list", "v*")
    workshop.git(root, "checkout", "--quiet", "--force", "--detach", tag)
    workshop.git(root, "clean", "--quiet", "--force", "-d")
    workshop.git(root, "update-ref", "-d", "refs/proofstone/ledger")  # of a ledger that an earlier test had
    return root


def _run(directory: Path, *command: str) -> None:
    """A step of the preparation. Without a registry the test is skipped, and says so."""
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True)
    if done.returncode == 0:
        return
    said = f"{done.stdout}{done.stderr}".strip()
    why = f"{' '.join(command[:4])} in {directory.name}: {said[-2000:]}"
    if _UNREACHABLE.search(said) and not REQUIRE_ALL:
        pytest.skip(f"the package registry cannot be reached: {said.splitlines()[-1][:200]}")
    pytest.fail(why)


SWEEP = os.environ.get("PROOFSTONE_TEST_SWEEP") == "1"
SEED = int(os.environ.get("PROOFSTONE_TEST_SEED", "7"))


def sampled(packages: Sequence[Package], count: int) -> list[ParameterSet]:
    """Every package; those outside the sample belong to the sweep."""
    chosen = set(random.Random(SEED).sample([str(one) for one in packages], count))
    return [_parameter(package, ordinary=str(package) in chosen) for package in packages]


def _parameter(package: Package, *, ordinary: bool) -> ParameterSet:
    only_swept = (pytest.mark.sweep, pytest.mark.skipif(not SWEEP, reason="not in the sample; PROOFSTONE_TEST_SWEEP=1"))
    return pytest.param(package, id=str(package), marks=() if ordinary else only_swept)


def check_repair(workshop: Workshop, root: Path, package: Package) -> CheckReport:
    """The bug is what is committed; its repair is the change."""
    package.bug.plant(root)
    workshop.commit(root, "A bug")
    workshop.git(root, "restore", "--source", "HEAD~1", "--", package.bug.path)
    done = workshop.check(root, "--base", "HEAD")
    report = done.report
    assert report.outcome is Outcome.PASSED, f"{report.reason}\n{done.stderr}"
    assert done.exit == 0
    assert report.changed == (package.bug.path,)
    assert package.fixed and any(package.fixed in test for test in report.fixed), report.fixed
    assert (report.regressions, report.flaky) == ((), ())
    return report


def check_breakage(workshop: Workshop, root: Path, package: Package) -> CheckReport:
    """The good tree is what is committed; the change breaks something else."""
    package.breakage.plant(root)
    done = workshop.check(root, "--base", "HEAD")
    report = done.report
    if package.breaks_off:
        assert report.outcome is Outcome.UNVERIFIABLE and done.exit == 1
        assert "ended before it was finished" in report.reason
        return report
    assert report.outcome is Outcome.FAILED, f"{report.reason}\n{done.stderr}"
    assert done.exit == 1
    assert package.regression and any(package.regression in test for test in report.regressions), report.regressions
    assert {finding.rule for finding in report.findings} >= {"regression"}
    assert report.fixed == ()
    return report

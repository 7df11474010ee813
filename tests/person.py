"""The programs of the person whose project is checked: an interpreter with pytest, and no plugin of this suite's own.

Checks start pytest about a thousand times. In the environment that runs this suite each of them would load its plugins
as well, which takes longer than everything else that pytest does, and no project of the tests uses any.
"""

from __future__ import annotations

import fcntl
import hashlib
import re
import shutil
import subprocess
import sys
import venv
from functools import cache
from importlib.metadata import Distribution, distribution
from pathlib import Path

_RECIPE = "1"
"""Raise it when what is made changes."""
_STARTER = "#!{python}\nimport sys\nfrom pytest import console_main\nsys.exit(console_main())\n"


@cache
def programs() -> Path:
    """The folder for PATH. It is made once, below the suite's own environment, and shared by workers and later runs."""
    wanted = _with_requirements("pytest")
    state = repr((_RECIPE, sys.version, sorted((one.name, one.version) for one in wanted)))
    place = Path(sys.prefix, "proofstone-tests", hashlib.sha256(state.encode()).hexdigest()[:12])
    place.parent.mkdir(exist_ok=True)
    with place.with_name(f"{place.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (place / "ready").exists():
            _make(place, wanted)
            (place / "ready").touch()
    return place / "bin"


def _with_requirements(name: str) -> list[Distribution]:
    """What is installed of it: a requirement for another system or another Python is not."""
    found: dict[str, Distribution] = {}
    waiting = [name]
    while waiting:
        one = distribution(waiting.pop())
        if one.name not in found:
            found[one.name] = one
            waiting += [_named(line) for line in one.requires or () if ";" not in line]
    return list(found.values())


def _named(requirement: str) -> str:
    return re.split(r"[^\w.-]", requirement, maxsplit=1)[0]


def _make(place: Path, wanted: list[Distribution]) -> None:
    shutil.rmtree(place, ignore_errors=True)
    venv.create(place, symlinks=True)
    (site,) = place.glob("lib/python3*/site-packages")
    for one in wanted:
        for file in one.files or ():
            if ".." not in file.parts:  # programs, which name the other environment
                target = site / file
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(str(one.locate_file(file)), target)
    starter = place / "bin" / "pytest"
    starter.write_text(_STARTER.format(python=place / "bin" / "python"))
    starter.chmod(0o755)
    # Sandboxes see it read-only: what is not compiled now would be compiled in every run.
    subprocess.run([place / "bin" / "python", "-m", "compileall", "-q", site], check=True)

"""The locks: every package that a release is built with or runs on, by version and by the hashes of its files.

    python -m release.lock           say where the locks and pyproject.toml differ; needs no network
    python -m release.lock --write   resolve them anew with uv, from the package index that it is set up with

`requirements/build.txt` is what builds the archives, `requirements/runtime.txt` what they need where they are
installed, on Python 3.11 and later. A lock names no index: where files come from does not matter, their hashes do.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT: Final = Path(__file__).resolve().parents[1]
FOLDER: Final = ROOT / "requirements"
BUILD: Final = "build.txt"
RUNTIME: Final = "runtime.txt"

_INPUTS: Final = "# inputs: sha256:"
_HEAD: Final = """\
# {purpose}
# Written by `make lock`, checked by `make lint`.
{inputs}
"""
_PURPOSES: Final = {
    BUILD: "What builds the release.",
    RUNTIME: "What an installed Proofstone needs, without extras.",
}
_PIN: Final = re.compile(r"(?P<name>[A-Za-z0-9._-]+)==(?P<version>[A-Za-z0-9.+!_-]+)(?: *; *(?P<marker>.+))?")
_HASH: Final = re.compile(r"--hash=sha256:(?P<digest>[0-9a-f]{64})")


class LockError(Exception):
    """A line of a lock that is none."""


@dataclass(frozen=True)
class Pin:
    name: str
    version: str
    hashes: tuple[str, ...]
    marker: str = ""
    """Where it is needed; empty: everywhere."""

    def is_needed(self, python: str) -> bool:
        """Whether it is installed on Linux with this version of Python, `3.13`."""
        environment = {"python_version": python, "python_full_version": f"{python}.0", "sys_platform": "linux"}
        return not self.marker or Marker(self.marker).evaluate(environment)


def inputs(project: Mapping[str, Any], lock: str) -> tuple[str, ...]:
    """The requirements that a lock was resolved from, in order."""
    if lock == BUILD:
        return tuple(sorted(project["build-system"]["requires"]))
    own = project["project"]
    return (f"python{own['requires-python']}", *sorted(own["dependencies"]))


def inputs_line(project: Mapping[str, Any], lock: str) -> str:
    text = json.dumps(inputs(project, lock))
    return f"{_INPUTS}{hashlib.sha256(text.encode()).hexdigest()}"


def read_lock(text: str) -> tuple[Pin, ...]:
    """The pins of a lock. Options, addresses and files have no place in it."""
    pins = []
    for line in re.sub(r"\\\n", " ", text).splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        head, *hashes = re.split(r"\s+(?=--hash=)", line.strip())
        pin = _PIN.fullmatch(head.strip())
        found = [_HASH.fullmatch(one.strip()) for one in hashes]
        if pin is None or not found or None in found:
            raise LockError(f"not a version with sha256 hashes: {line.strip()[:80]}")
        digests = tuple(one["digest"] for one in found if one)
        pins.append(Pin(canonicalize_name(pin["name"]), pin["version"], digests, pin["marker"] or ""))
    return tuple(pins)


def problems(project: Mapping[str, Any], lock: str, text: str) -> Iterator[str]:
    """What is wrong with a lock, each with the name of its file."""
    where = f"requirements/{lock}"
    try:
        pins = read_lock(text)
    except LockError as error:
        yield f"{where}: {error}"
        return
    if inputs_line(project, lock) not in text.splitlines():
        yield f"{where}: pyproject.toml has changed since it was written; run `make lock`"
    for requirement in map(Requirement, inputs(project, lock)):
        if requirement.name == "python":
            continue
        own = [pin for pin in pins if pin.name == canonicalize_name(requirement.name)]
        if not own:
            yield f"{where}: {requirement.name} is not in it"
        for pin in own:
            if not requirement.specifier.contains(pin.version, prereleases=True):
                yield f"{where}: {pin.name} {pin.version} does not satisfy {requirement}"


def read_project(root: Path = ROOT) -> dict[str, Any]:
    return tomllib.loads((root / "pyproject.toml").read_text("utf-8"))


def _resolve(requirements: Sequence[str]) -> str:
    """The lines of a lock, resolved for all supported versions of Python at once."""
    uv = shutil.which("uv")
    if uv is None:
        raise SystemExit("release.lock: uv is not installed; `pip install uv` has it")
    minimum = "3.11"
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "requirements.in"
        source.write_text("\n".join(requirements) + "\n", "utf-8")
        options = ("--generate-hashes", "--universal", "--no-header", "--no-annotate", "--no-emit-index-url")
        done = subprocess.run(
            [uv, "pip", "compile", "--quiet", f"--python-version={minimum}", *options, str(source)],
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode:
        raise SystemExit(f"release.lock: uv could not resolve them:\n{done.stderr}")
    return done.stdout


def write(project: Mapping[str, Any], folder: Path = FOLDER) -> None:
    for lock, purpose in _PURPOSES.items():
        wanted = [one for one in inputs(project, lock) if not one.startswith("python>")]
        text = _HEAD.format(purpose=purpose, inputs=inputs_line(project, lock)) + _resolve(wanted)
        read_lock(text)
        (folder / lock).write_text(text, "utf-8")


def main(args: Sequence[str]) -> int:
    project = read_project()
    if "--write" in args:
        write(project)
    found = [one for lock in _PURPOSES for one in problems(project, lock, (FOLDER / lock).read_text("utf-8"))]
    sys.stderr.writelines(f"{one}\n" for one in found)
    sys.stdout.write(f"locks: {len(found)} problem(s)\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

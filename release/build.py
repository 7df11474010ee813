"""Build a release: `python -m release.build [--out DIR]`, or `make release`.

The commit that is checked out is exported to an empty folder and built there, twice, in a virtual environment that has
what `requirements/build.txt` lists and nothing else, with hashes checked. Both builds must give the same bytes. Beside
the archives lie their bill of materials, the lock to install them with, and the hashes of all of it.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import venv
from collections.abc import Sequence
from pathlib import Path

from release.lock import BUILD, FOLDER, ROOT, RUNTIME, problems, read_lock, read_project
from release.sbom import bill_of_materials


class ReleaseError(Exception):
    """Why there is no release."""


def export(commit: str, folder: Path, root: Path = ROOT) -> None:
    """Only what is committed, as on any other machine."""
    folder.mkdir(parents=True)
    archive = subprocess.run(["git", "archive", commit], cwd=root, capture_output=True, check=True).stdout
    subprocess.run(["tar", "-x", "-C", folder], input=archive, check=True, umask=0o022)


def commit_time(commit: str, root: Path = ROOT) -> int:
    asked = ["git", "log", "-1", "--format=%ct", commit]
    return int(subprocess.run(asked, cwd=root, capture_output=True, check=True, text=True).stdout)


def build_environment(folder: Path) -> Path:
    """A Python that has what the build needs, by its hashes."""
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    options = ("--quiet", "--require-hashes", "--only-binary=:all:", "--no-deps", "--disable-pip-version-check")
    subprocess.run([python, "-m", "pip", "install", *options, "-r", FOLDER / BUILD], check=True)
    return python


def build_archives(python: Path, source: Path, out: Path, time: int) -> dict[str, str]:
    """Build sdist and wheel of the tree `source`; their sha256 by name."""
    environment = {
        "PATH": os.defpath,
        "SOURCE_DATE_EPOCH": str(time),
        "PYTHONHASHSEED": "0",
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
        "HOME": "/nonexistent",
    }
    command: list[str | Path] = [python, "-I", "-m", "hatchling", "build", "-d", out, "-t", "sdist", "-t", "wheel"]
    done = subprocess.run(
        command, cwd=source, env=environment, capture_output=True, text=True, umask=0o022, check=False
    )
    if done.returncode:
        raise ReleaseError(f"the build failed:\n{done.stdout}{done.stderr}")
    return {file.name: digest(file) for file in sorted(out.iterdir())}


def digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def release(out: Path) -> dict[str, str]:
    """Make the release in `out`; the sha256 of each of its files."""
    status = subprocess.run(["git", "status", "--porcelain"], cwd=ROOT, capture_output=True, check=True, text=True)
    if status.stdout:
        raise ReleaseError(f"the work tree has changes; commit them first:\n{status.stdout}")
    project, time = read_project(), commit_time("HEAD")
    texts = {lock: (FOLDER / lock).read_text("utf-8") for lock in (BUILD, RUNTIME)}
    if found := [one for lock, text in texts.items() for one in problems(project, lock, text)]:
        raise ReleaseError("\n".join(found))
    with tempfile.TemporaryDirectory(prefix="release-") as name:
        place = Path(name)
        python = build_environment(place / "environment")
        builds = []
        for number in ("first", "second"):
            export("HEAD", place / number / "source")
            builds.append(build_archives(python, place / number / "source", place / number / "out", time))
        if builds[0] != builds[1]:
            raise ReleaseError(f"two builds of the same commit differ: {builds[0]} and {builds[1]}")
        shutil.rmtree(out, ignore_errors=True)
        shutil.copytree(place / "first" / "out", out)
    stem = f"{project['project']['name']}-{project['project']['version']}"
    pins = {lock: read_lock(text) for lock, text in texts.items()}
    document = bill_of_materials(project, pins, builds[0], time)
    (out / f"{stem}.cdx.json").write_text(json.dumps(document, indent=2) + "\n", "utf-8")
    (out / f"{stem}.requirements.txt").write_text(texts[RUNTIME], "utf-8")
    made = {file.name: digest(file) for file in sorted(out.iterdir())}
    (out / "SHA256SUMS").write_text("".join(f"{value}  {name}\n" for name, value in made.items()), "utf-8")
    return made


def main(args: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m release.build")
    parser.add_argument("--out", type=Path, default=ROOT / "dist")
    out: Path = parser.parse_args(args).out
    try:
        made = release(out.absolute())
    except (ReleaseError, subprocess.CalledProcessError) as error:
        sys.stderr.write(f"release: {error}\n")
        return 1
    sys.stdout.write("".join(f"{value}  {out / name}\n" for name, value in made.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

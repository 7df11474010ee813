"""The Dockerfiles, as far as they can be tried without an engine: their files exist, and their steps install."""

from __future__ import annotations

import fnmatch
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from release.build import export
from release.lock import ROOT

from tests.needs import needs
from tests.release.installation import find_interpreter

FILES = ("Dockerfile", ".devcontainer/Dockerfile")


def read_instructions(text: str) -> list[tuple[str, str]]:
    """Return the instructions in their order, with their lines joined."""
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines))
    return [(line.partition(" ")[0], line.partition(" ")[2].strip()) for line in joined.splitlines() if line.strip()]


@pytest.mark.parametrize("name", FILES)
def test_what_is_copied_exists_and_is_not_left_out(name: str) -> None:
    instructions = read_instructions((ROOT / name).read_text("utf-8"))
    assert instructions[0][0] == "FROM" and ":" in instructions[0][1], "the image has a version"
    ignored = (ROOT / ".dockerignore").read_text("utf-8").split()
    for kind, rest in instructions:
        if kind == "COPY":
            for source in rest.split()[:-1]:
                assert (ROOT / source).exists(), source
                assert not [pattern for pattern in ignored if fnmatch.fnmatch(source, pattern)], source


@needs("apt-cache")
@pytest.mark.parametrize("name", FILES)
def test_the_packages_that_are_installed_are_debians(name: str) -> None:
    (line,) = re.findall(
        r"apt-get install (.*?) &&", " ".join(text for _, text in read_instructions((ROOT / name).read_text()))
    )
    packages = [word for word in line.split() if not word.startswith("-")]
    assert {"bubblewrap", "git"} <= set(packages)
    known = subprocess.run(["apt-cache", "policy", *packages], capture_output=True, text=True, check=True).stdout
    assert {package for package in packages if f"{package}:\n" not in known} == set()


@pytest.mark.registry
@pytest.mark.ci
@needs("git")
def test_the_steps_of_the_image_install_proofstone(tmp_path: Path) -> None:
    """The steps run in their order, with an environment for the Python of the image and a folder for its root."""
    instructions = read_instructions((ROOT / "Dockerfile").read_text("utf-8"))
    version = re.match(r"python:(\d+\.\d+)", instructions[0][1])
    assert version is not None
    interpreter = find_interpreter(version[1])
    if interpreter is None:
        pytest.skip(f"Python {version[1]} is not installed")
    export("HEAD", tmp_path / "context")
    image, programs = tmp_path / "image", tmp_path / "programs"
    (image / "var/lib").mkdir(parents=True)
    programs.mkdir()
    subprocess.run([interpreter, "-m", "venv", tmp_path / "python"], check=True)
    (programs / "apt-get").write_text("#!/bin/sh\nexit 0\n")
    (programs / "apt-get").chmod(0o755)
    environment = {
        "PATH": f"{programs}:{tmp_path / 'python/bin'}:/usr/local/bin:/usr/bin:/bin",
        "HOME": str(tmp_path),
        "GIT_CONFIG_SYSTEM": str(image / "gitconfig"),
        **{name: value for name, value in os.environ.items() if name.startswith("PIP_")},
    }

    def inside(text: str) -> str:
        return re.sub(r"(?<![\w.:])/(build|var/lib)\b", rf"{image}/\1", text)

    for kind, rest in instructions:
        if kind == "COPY":
            *sources, target = rest.split()
            place = Path(inside(target))
            for source in sources:
                destination = place / source if target.endswith("/") else place
                destination.parent.mkdir(parents=True, exist_ok=True)
                copy = shutil.copytree if (tmp_path / "context" / source).is_dir() else shutil.copy
                copy(tmp_path / "context" / source, destination)
        elif kind == "RUN":
            done = subprocess.run(
                ["/bin/sh", "-e", "-c", inside(rest)], cwd=tmp_path, env=environment, capture_output=True, text=True
            )
            assert done.returncode == 0, done.stdout + done.stderr
        elif kind == "ENV":
            environment |= dict(inside(pair).split("=", 1) for pair in rest.split())
    program = json.loads(dict(instructions)["ENTRYPOINT"])
    done = subprocess.run(
        [*program, "manual", "glossary"], env=environment, cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0 and done.stdout.startswith("# Glossary"), done.stderr
    assert oct((image / "var/lib/proofstone/state").stat().st_mode)[-4:] == "1777"


def test_the_container_for_development_names_what_exists() -> None:
    document = json.loads((ROOT / ".devcontainer/devcontainer.json").read_text("utf-8"))
    assert (ROOT / ".devcontainer" / document["build"]["dockerfile"]).is_file()
    command, _, target = document["postCreateCommand"].partition(" ")
    rules = (ROOT / "Makefile").read_text("utf-8").replace("$(VENV)", ".venv")
    assert command == "make" and f"{target}:" in rules
    assert f"useradd --create-home --shell /bin/bash {document['remoteUser']}" in (
        ROOT / ".devcontainer/Dockerfile"
    ).read_text("utf-8")

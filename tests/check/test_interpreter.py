"""Which interpreter a check uses where a shim of pyenv stands in PATH."""

from __future__ import annotations

from pathlib import Path

import pytest

from proofstone.check.environment import CheckEnvironment
from proofstone.config.settings import EnvironmentSettings


@pytest.fixture
def pyenv(tmp_path: Path) -> Path:
    """A folder of pyenv with two versions, of which 3.11.7 is the chosen one."""
    folder = tmp_path / "pyenv"
    for program in ("shims/python3", "versions/3.11.7/bin/python3", "versions/3.12.1/bin/python3"):
        path = folder / program
        path.parent.mkdir(parents=True)
        path.write_text("#!/bin/sh\n")
        path.chmod(0o755)
    (folder / "version").write_text("3.11.7\n")
    (tmp_path / "project").mkdir()
    return folder


def environment(pyenv: Path, **variables: str) -> CheckEnvironment:
    return CheckEnvironment(
        root=pyenv.parent / "project",
        home=None,
        settings=EnvironmentSettings(),
        packages=(".",),
        tracked=frozenset(),
        variables={"PATH": str(pyenv / "shims"), **variables},
    )


def test_the_interpreter_behind_the_shim_is_used(pyenv: Path) -> None:
    found = environment(pyenv)
    assert found.python(".") == pyenv / "versions/3.11.7/bin/python3"
    assert found.search_path(".").split(":")[0] == str(pyenv / "versions/3.11.7/bin")


def test_a_variable_of_the_user_chooses_the_version(pyenv: Path) -> None:
    assert environment(pyenv, PYENV_VERSION="3.12.1").python(".") == pyenv / "versions/3.12.1/bin/python3"


@pytest.mark.parametrize("version", ["3.13.0", "system", "../../elsewhere", "3.11.7:3.12.1", ""])
def test_a_version_that_is_not_a_folder_there_keeps_the_shim(pyenv: Path, version: str) -> None:
    (pyenv / "version").write_text(version)
    (pyenv.parent / "elsewhere/bin").mkdir(parents=True)
    (pyenv.parent / "elsewhere/bin/python3").write_text("")
    (pyenv.parent / "elsewhere/bin/python3").chmod(0o755)
    assert environment(pyenv).python(".") == pyenv / "shims/python3"


def test_a_project_that_chooses_its_version_keeps_the_shim(pyenv: Path) -> None:
    (pyenv.parent / "project/.python-version").write_text("3.12.1\n")
    assert environment(pyenv).python(".") == pyenv / "shims/python3"

"""`proofstone doctor` tells what is there and how to get the rest."""

from __future__ import annotations

import json
import os
import venv
from pathlib import Path
from typing import Any

import pytest

from proofstone.cli.doctor import DoctorFact, MachineFacts, describe_sandbox, describe_state_directory, suggest_fixes
from proofstone.machine.facts import (
    FAMILIES,
    PROGRAMS,
    MachineProgram,
    ProgramState,
    describe_install,
    detect_distribution,
    drop_relative_entries,
    find_cgroup_version,
    find_version,
    look_for_program,
    read_kernel_setting,
)
from proofstone.sandbox.probe import SandboxFacts
from tests.needs import needs
from tests.workshop import Workshop, command, proofstone

TOOL = MachineProgram("tool", "group", "why", minimum=(2, 31), packages={"apt": "tool-pkg"}, install="pip install tool")


def make_tool(folder: Path, body: str) -> None:
    folder.mkdir(exist_ok=True)
    tool = folder / "tool"
    tool.write_text(f"#!/bin/sh\n{body}\n")
    tool.chmod(0o755)


def test_on_an_empty_path_everything_is_missing_with_how_to_get_it(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    done = proofstone("doctor", "--json", home=tmp_path / "home", env={"PATH": str(empty)})
    assert done.returncode == 1, done.stderr
    document = json.loads(done.stdout)
    assert document["ok"] is False
    assert {program["name"] for program in document["programs"]} == {program.name for program in PROGRAMS}
    for program in document["programs"]:
        assert program["state"] == "missing"
        assert program["install"]
        assert program["why"]
    git = next(program for program in document["programs"] if program["name"] == "git")
    assert git["essential"] is True
    assert git["minimum"] == "2.31"


def test_the_page_for_people_names_the_way_to_a_missing_program(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    done = proofstone("doctor", home=tmp_path / "home", env={"PATH": str(empty)})
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    at = next(number for number, line in enumerate(lines) if "missing" in line and " ruff " in line)
    assert lines[at + 1].strip() == "→ pip install ruff"


@needs("git")
def test_with_git_it_exits_0_whatever_else_is_missing(tmp_path: Path) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    git = next(Path(entry, "git") for entry in os.environ["PATH"].split(":") if Path(entry, "git").exists())
    (folder / "git").symlink_to(git.resolve())
    done = proofstone("doctor", "--json", home=tmp_path / "home", env={"PATH": str(folder)})
    assert done.returncode == 0, done.stderr
    states = {program["name"]: program["state"] for program in json.loads(done.stdout)["programs"]}
    assert states.pop("git") == "ok"
    assert set(states.values()) == {"missing"}


def test_looking_leaves_no_state_behind(tmp_path: Path) -> None:
    proofstone("doctor", "--json", home=tmp_path / "home")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("body", "state", "version", "detail"),
    [
        ("echo tool version 2.31.0", ProgramState.OK, "2.31.0", ""),
        ("echo tool version 2.9", ProgramState.OLD, "2.9", "2.31 or later is needed"),
        ("echo tool version 2.100", ProgramState.OK, "2.100", ""),
        ("echo tool v3.0 >&2", ProgramState.OK, "3.0", ""),
        ("echo broken library >&2; exit 127", ProgramState.BROKEN, None, "broken library"),
        ("echo 3.0; exit 1", ProgramState.BROKEN, None, "3.0"),
        ("exit 0", ProgramState.BROKEN, None, "exit code 0"),
    ],
)
def test_a_program_is_judged_by_what_it_says(
    body: str, state: ProgramState, version: str | None, detail: str, tmp_path: Path
) -> None:
    make_tool(tmp_path, body)
    found = look_for_program(TOOL, f"{tmp_path}:/usr/bin:/bin", "apt")
    assert (found.state, found.version, found.detail) == (state, version, detail)
    assert bool(found.install) is (state is not ProgramState.OK)


def test_a_program_that_cannot_be_started_is_reported(tmp_path: Path) -> None:
    make_tool(tmp_path, "")
    (tmp_path / "tool").write_text("#!/no/such/interpreter\n")
    assert look_for_program(TOOL, str(tmp_path), None).state is ProgramState.BROKEN


def test_a_program_whose_version_might_download_is_only_looked_for(tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    make_tool(tmp_path, f"touch {mark}")
    found = look_for_program(TOOL._replace(version=()), f"{tmp_path}:/usr/bin:/bin", None)
    assert found.state is ProgramState.OK
    assert not mark.exists()


def test_nothing_from_the_directory_one_stands_in_is_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_tool(tmp_path, "echo 3.0")
    monkeypatch.chdir(tmp_path)
    assert drop_relative_entries(".::bin:/usr/bin:../x:/bin") == "/usr/bin:/bin"
    assert look_for_program(TOOL, drop_relative_entries("."), None).state is ProgramState.MISSING


@pytest.mark.parametrize(
    ("family", "install"),
    [("apt", "sudo apt install tool-pkg"), ("dnf", "pip install tool"), (None, "pip install tool")],
)
def test_the_way_to_get_it_fits_the_distribution(family: str | None, install: str) -> None:
    assert describe_install(TOOL, family) == install


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_every_program_says_how_to_get_it_on_every_family(program: MachineProgram) -> None:
    assert set(program.packages) <= set(FAMILIES)
    for family in (*FAMILIES, None):
        assert describe_install(program, family)


@pytest.mark.parametrize(
    ("text", "family"),
    [
        ("ID=debian\n", "apt"),
        ('ID="linuxmint"\nID_LIKE="ubuntu debian"\n', "apt"),
        ('ID="rocky"\nID_LIKE="rhel centos fedora"\n', "dnf"),
        ("ID=manjaro\nID_LIKE=arch\n", "pacman"),
        ("ID=nixos\n", None),
    ],
)
def test_the_family_of_a_distribution(text: str, family: str | None, tmp_path: Path) -> None:
    release = tmp_path / "os-release"
    release.write_text(text)
    assert detect_distribution(release) == family
    assert detect_distribution(tmp_path / "none") is None


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("git version 2.39.5 (Apple Git-154)", "2.39.5"),
        ("go version go1.19.8 linux/amd64", "1.19.8"),
        ("v20.11.1", "20.11.1"),
        ("ruby 3.1.2p20 (2022-04-12)", "3.1.2"),
        ("strace -- version 6.1", "6.1"),
        ("no number", None),
    ],
)
def test_the_version_in_what_a_program_prints(text: str, version: str | None) -> None:
    assert find_version(text) == version


SWITCHES = {
    "kernel.apparmor_restrict_unprivileged_userns": 1,
    "kernel.unprivileged_userns_clone": 0,
    "user.max_user_namespaces": 0,
}


@pytest.mark.parametrize(
    ("machine", "says"),
    [
        (MachineFacts("Linux", False, None, {}), []),
        (MachineFacts("Linux", False, None, SWITCHES), ["max_user_namespaces=15000", "userns_clone=1", "AppArmor"]),
        (MachineFacts("Linux", True, None, SWITCHES), ["max_user_namespaces=15000"]),
        (MachineFacts("Linux", False, "docker", {}), ["container (docker)"]),
        (MachineFacts("Darwin", False, None, {}), ["Darwin has neither"]),
    ],
)
def test_hints_fit_the_machine(machine: MachineFacts, says: list[str]) -> None:
    found = suggest_fixes(machine)
    assert len(found) == len(says)
    for hint, phrase in zip(found, says, strict=True):
        assert phrase in hint


def test_the_kernels_switches_are_read_where_they_are(tmp_path: Path) -> None:
    (tmp_path / "user").mkdir()
    (tmp_path / "user" / "max_user_namespaces").write_text("15\n")
    assert read_kernel_setting("user.max_user_namespaces", tmp_path) == 15
    assert read_kernel_setting("user.no_such", tmp_path) is None
    assert read_kernel_setting("no.such", tmp_path) is None


def test_the_cgroup_hierarchy_is_told_by_its_files(tmp_path: Path) -> None:
    assert find_cgroup_version(tmp_path) is None
    (tmp_path / "pids").mkdir()
    assert find_cgroup_version(tmp_path) == 1
    (tmp_path / "cgroup.controllers").touch()
    assert find_cgroup_version(tmp_path) == 2


def test_a_state_directory_that_others_can_read_is_shown_with_its_cure(tmp_path: Path) -> None:
    home = tmp_path / "home"
    [fact] = describe_state_directory(home)
    assert fact.ok
    assert not home.exists()
    home.mkdir(mode=0o700)
    [fact] = describe_state_directory(home)
    assert fact.ok
    assert "mode 0700" in fact.detail
    assert "no ledger yet" in fact.detail
    home.chmod(0o750)
    [fact] = describe_state_directory(home)
    assert not fact.ok
    assert fact.fix == f"chmod 700 {home}"


def test_a_state_directory_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "home").touch()
    [fact] = describe_state_directory(tmp_path / "home")
    assert not fact.ok
    assert "PROOFSTONE_HOME" in fact.fix


def test_a_sandbox_that_does_not_work_is_said_with_the_reason() -> None:
    facts = SandboxFacts(
        bubblewrap="/usr/bin/bwrap",
        namespaces=False,
        namespaces_error="bwrap: No permissions to create new namespace\nmore",
        layers="none",
        landlock=4,
        cgroup=False,
    )
    lines = {fact.name: fact for fact in describe_sandbox(facts, None)}
    assert not lines["level"].ok
    assert "landlock" in lines["level"].detail
    assert lines["own namespaces"].detail == "bwrap: No permissions to create new namespace"
    assert lines["Landlock"] == DoctorFact("Landlock", True, "version 4")
    assert not lines["throwaway layers"].ok
    assert "Delegate=yes" in lines["limits by cgroup"].fix


@needs("git")
def test_in_a_repository_the_tools_of_its_checks_are_looked_for_where_a_check_finds_them(tmp_path: Path) -> None:
    """An environment of the project without pytest counts, whatever else on PATH has pytest."""
    workshop = Workshop.apart(tmp_path)
    root = workshop.repo({"pytest.ini": "[pytest]\n", ".gitignore": ".venv\n"})
    venv.create(root / ".venv")

    def look() -> dict[str, Any]:
        done = workshop.proofstone(root, "doctor", "--json")
        (line,) = json.loads(done.stdout)["this_repository"]
        found: dict[str, Any] = line
        return found

    line = look()
    assert (line["name"], line["ok"]) == ("tests:pytest", False)
    assert ".venv/bin/python" in line["detail"] and "proofstone init" in line["fix"]
    (folder,) = (root / ".venv/lib").glob("python3*/site-packages")
    (folder / "pytest").mkdir()
    assert look()["ok"] is True
    (folder / "pytest").rmdir()
    workshop.write(root, {"proofstone.toml": '[environment]\nsetup = ["pip install pytest"]\n'})
    assert "environment.setup installs it" in look()["detail"]
    outside = workshop.run(tmp_path, *command("doctor", "--json"))
    assert json.loads(outside.stdout)["this_repository"] == []

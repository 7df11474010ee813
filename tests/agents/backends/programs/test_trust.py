"""What a repository cannot have of the person's coding agents."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from proofstone.agents.backends.factory import build_backend
from proofstone.agents.backends.programs.cli import CliBackend
from proofstone.agents.backends.programs.discovery import is_named_preset, locate_acp, locate_cli
from proofstone.config.user import ProgramSettings
from proofstone.errors import InputError
from tests.workshop import Workshop

PROGRAM = "#!/bin/sh\necho 2.1.400\n"


def put(path: Path, content: str = PROGRAM) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    path.chmod(0o755)
    return path


@pytest.fixture
def shop(tmp_path: Path) -> tuple[Workshop, Path]:
    workshop = Workshop.apart(tmp_path)
    root = workshop.repo({"a.txt": "a\n"})
    put(root / "bin" / "claude")
    return workshop, root


@pytest.mark.few(1)
@pytest.mark.parametrize("place", ["person", "repository", "command line"])
def test_a_program_of_the_repository_is_never_taken_for_the_persons(shop: tuple[Workshop, Path], place: str) -> None:
    workshop, root = shop
    own = put(workshop.folder / "own" / "claude")
    path = f"{root}/bin:{own.parent}:{workshop.environment['PATH']}"
    line = '[backends]\nresearcher = "cli:claude"\n'
    config = workshop.folder / "person.toml"
    config.write_text(line if place == "person" else "")
    if place == "repository":
        workshop.configure(root, line)
    option = ("--backend", "researcher=cli:claude") if place == "command line" else ()
    env = {"PATH": path, "PROOFSTONE_CONFIG": str(config)}
    done = workshop.proofstone(root, "backends", "--json", *option, env=env)
    (claude,) = [one for one in json.loads(done.stdout)["programs"] if one["name"] == "claude"]
    assert claude["path"] == str(own)
    own.unlink()
    done = workshop.proofstone(root, "backends", "researcher", "--json", *option, env=env)
    assert done.returncode == 1
    assert "there is no program claude" in done.stdout


@pytest.mark.parametrize("path", ["{root}/bin/claude", "/proc/self/cwd/bin/claude"])
def test_a_path_into_the_repository_is_refused(
    shop: tuple[Workshop, Path], path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, root = shop
    monkeypatch.chdir(root)
    with pytest.raises(InputError) as caught:
        locate_cli("cli:claude", {"claude": ProgramSettings(path=path.format(root=root))}, root)
    assert "is in the repository" in caught.value.message


def test_a_command_line_that_only_the_repository_names_is_not_run(shop: tuple[Workshop, Path]) -> None:
    workshop, root = shop
    workshop.configure(root, '[backends]\nresearcher = ["cli:claude", "acp:claude --acp"]\n')
    done = workshop.proofstone(root, "backends", "researcher", "--json")
    assert done.returncode == 1
    (agent,) = json.loads(done.stdout)["agents"]
    assert "the repository names the program" in agent["backends"][1]["missing"]


@pytest.mark.parametrize(("spec", "named"), [("cli:claude", True), ("acp:goose", True), ("acp:goose acp", False)])
def test_a_preset_is_named_by_one_word(spec: str, named: bool) -> None:
    assert is_named_preset(spec) is named


@pytest.mark.parametrize("allowed", [False, True])
def test_a_repository_does_not_weaken_the_sandbox_of_what_has_a_login(
    shop: tuple[Workshop, Path], allowed: bool
) -> None:
    workshop, root = shop
    own = put(workshop.folder / "own" / "claude")
    workshop.configure(root, '[sandbox]\nlevel = "plain"\n[backends]\nresearcher = "cli:claude"\n')
    config = workshop.folder / "person.toml"
    config.write_text("[trust]\nweaker_sandbox = true\n" if allowed else "")
    env = {"PATH": f"{own.parent}:{workshop.environment['PATH']}", "PROOFSTONE_CONFIG": str(config)}
    done = workshop.proofstone(root, "backends", "researcher", "--json", env=env)
    (agent,) = json.loads(done.stdout)["agents"]
    missing = agent["backends"][0]["missing"]
    assert done.returncode == (0 if allowed else 1)
    assert ("asks for a weaker sandbox" in missing) is not allowed


@pytest.mark.parametrize(("version", "ready"), [("2.0.9", False), ("2.1.0", True), ("10.0", True), ("none", True)])
def test_a_program_that_is_too_old_is_not_ready(shop: tuple[Workshop, Path], version: str, ready: bool) -> None:
    workshop, root = shop
    own = put(workshop.folder / "own" / "claude", f"#!/bin/sh\necho {version}\n")
    env = {"PATH": f"{own.parent}:{workshop.environment['PATH']}"}
    done = workshop.proofstone(root, "backends", "researcher", "--backend", "researcher=cli:claude", "--json", env=env)
    assert done.returncode == (0 if ready else 1), done.stdout
    assert ready or "2.1.0 is the oldest that is known to work" in done.stdout


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ("acp:'", "No closing quotation"),
        ("acp:''", "there is no program"),
        ("cli:clod", "there is no preset of that name"),
        ("cli:claude:--dangerous", "'--dangerous' is no model"),
        ("acp:no-such-agent --acp", "there is no program no-such-agent"),
    ],
)
def test_a_spec_that_leads_nowhere_says_so(spec: str, why: str, tmp_path: Path) -> None:
    locate = locate_cli if spec.startswith("cli:") else locate_acp
    with pytest.raises(InputError) as caught:
        locate(spec, {}, tmp_path)
    assert why in caught.value.message
    assert caught.value.hint


def test_a_host_that_cannot_be_let_in_is_said_before_anything_runs(shop: tuple[Workshop, Path]) -> None:
    workshop, root = shop
    own = put(workshop.folder / "own" / "claude")
    env = {"PATH": f"{own.parent}:{workshop.environment['PATH']}", "ANTHROPIC_BASE_URL": "http://localhost/v1"}
    done = workshop.proofstone(root, "backends", "researcher", "--backend", "researcher=cli:claude", "--json", env=env)
    assert done.returncode == 1
    assert "its port on this machine is below 1024" in done.stdout


def test_what_runs_is_looked_for_outside_the_repository_wherever_it_was_named(
    shop: tuple[Workshop, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    workshop, root = shop
    own = put(workshop.folder / "own" / "claude")
    monkeypatch.setenv("PATH", f"{root}/bin:{own.parent}")
    backend = build_backend(["cli:claude"], folder=workshop.home, root=root)
    assert isinstance(backend, CliBackend)
    assert backend.program.argv == (str(own),)


def test_what_a_program_starts_in_turn_is_not_of_the_repository(shop: tuple[Workshop, Path]) -> None:
    """Most of them are scripts that `env` finds an interpreter for."""
    workshop, root = shop
    put(root / "bin" / "node", f"#!/bin/sh\ntouch {root}/ran\necho 2.1.0\n")
    own = put(workshop.folder / "own" / "claude", "#!/usr/bin/env node\n")
    path = f"{root}/bin:{own.parent}:{workshop.environment['PATH']}"
    workshop.proofstone(root, "backends", "--json", env={"PATH": path})
    assert not (root / "ran").exists()

"""`proofstone agents`: the agents, and their definitions as files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from proofstone.cli.agents import ExportKind
from proofstone.export.targets import EXPORT_TARGETS
from tests.export.checks import AGENTS
from tests.export.reading import exported
from tests.workshop import proofstone


def test_the_command_knows_every_kind() -> None:
    assert list(ExportKind) == list(EXPORT_TARGETS)


@pytest.mark.parametrize("kind", EXPORT_TARGETS)
def test_it_writes_says_what_and_what_to_do_next(kind: str, tmp_path: Path) -> None:
    done = proofstone("agents", "export", kind, "out", home=tmp_path / "home", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    files = exported(kind)
    assert {path: (tmp_path / "out" / path).read_text(encoding="utf-8") for path in files} == files
    assert all(f"wrote out/{path}\n" in done.stdout for path in files)
    assert all(step in done.stdout for step in EXPORT_TARGETS[kind].next)
    assert "proofstone check" in done.stdout


def test_the_second_time_it_leaves_everything_alone(tmp_path: Path) -> None:
    proofstone("agents", "export", "claude", ".", home=tmp_path / "home", cwd=tmp_path)
    done = proofstone("agents", "export", "claude", ".", "--json", home=tmp_path / "home", cwd=tmp_path)
    said = json.loads(done.stdout)
    assert (done.returncode, said["written"], said["replaced"]) == (0, [], [])
    assert said["unchanged"] == list(exported("claude"))
    assert said["directory"] == str(tmp_path)


def test_somebody_elses_readme_is_not_replaced_without_force(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("# Mine\n")
    done = proofstone("agents", "export", "copilot", ".", "--json", home=tmp_path / "home", cwd=tmp_path)
    assert done.returncode == 2
    assert "README.md" in done.stderr
    assert "--force" in json.loads(done.stdout)["error"]["hint"]
    assert not (tmp_path / ".github").exists()
    forced = proofstone("agents", "export", "copilot", ".", "--force", "--json", home=tmp_path / "home", cwd=tmp_path)
    assert (forced.returncode, json.loads(forced.stdout)["replaced"]) == (0, ["README.md"])


def test_a_file_is_no_place_to_export_to(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("")
    done = proofstone("agents", "export", "generic", "out", home=tmp_path / "home", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "proofstone: out is not a folder\nhint: choose a folder for the exported files\n"


@pytest.mark.parametrize(
    ("args", "said"),
    [(("export", "cursor", "out"), "'cursor'"), (("export", "claude"), "DIR"), (("export",), "KIND"), ((), "Missing")],
)
def test_a_wrong_command_line_says_what_would_be_right(args: tuple[str, ...], said: str, tmp_path: Path) -> None:
    done = proofstone("agents", *args, home=tmp_path / "home", cwd=tmp_path)
    assert done.returncode == 2
    assert said in done.stderr
    assert not (tmp_path / "out").exists()


def test_the_agents_are_listed_with_purpose_and_tools(tmp_path: Path) -> None:
    done = proofstone("agents", "list", home=tmp_path / "home")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    for name in AGENTS:
        assert any(line.startswith(f"{name} ") for line in lines)
    assert "Divides a design into tasks" in done.stdout
    assert "may dispatch agents, read files, run commands" in done.stdout


def test_the_list_as_json(tmp_path: Path) -> None:
    done = proofstone("agents", "list", "--json", home=tmp_path / "home")
    known = {one["agent"]: one for one in json.loads(done.stdout)["agents"]}
    assert list(known) == AGENTS
    assert known["implementer"]["schema"] == "implementation-report"
    assert "write" in known["implementer"]["tools"]
    assert known["orchestrator"]["abilities"] == ["dispatch agents", "read files", "run commands"]


def test_the_help_teaches(tmp_path: Path) -> None:
    page = proofstone("agents", "export", "--help", home=tmp_path / "home").stdout
    for word in (*EXPORT_TARGETS, "proofstone agents export claude .", "--force", "proofstone check"):
        assert word in page

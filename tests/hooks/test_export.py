"""The configuration of agents' hooks: written into what is there, and taken out again."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from proofstone.git.user_hooks import HOOK_NAMES
from proofstone.hooks.agent_hooks import DIALECTS, Dialect, add_hook, format_document, read_document, remove_hook
from tests.workshop import proofstone

AGENTS = sorted(DIALECTS)
OTHERS = {
    "model": "m",
    "hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "mine"}]}], "Z": [], "A": []},
    "zebra": [1, {"é": None}],
    "apple": 2.50,
}


def export(folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    return proofstone("export", "hooks", *args, home=folder.parent / "state", cwd=folder)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@pytest.mark.parametrize(
    ("agent", "file", "events"),
    [
        ("claude", ".claude/settings.json", ["Stop", "SubagentStop"]),
        ("codex", ".codex/hooks.json", ["Stop", "SubagentStop"]),
        ("qwen", ".qwen/settings.json", ["Stop", "SubagentStop"]),
        ("gemini", ".gemini/settings.json", ["AfterAgent"]),
    ],
)
def test_an_agent_is_told_what_to_run_when_it_starts_and_stops(
    project: Path, agent: str, file: str, events: list[str]
) -> None:
    done = export(project, agent)
    assert done.returncode == 0, done.stderr
    assert f"wrote {project / file}" in done.stdout
    unit = 1 if agent in ("claude", "codex") else 1000

    def entry(event: str, seconds: int) -> dict[str, object]:
        command = f"proofstone hook run {event} --agent {agent}"
        return {"hooks": [{"type": "command", "command": command, "timeout": seconds * unit}]}

    stops = {event: [entry("agent-stop", 900)] for event in events}
    assert json.loads((project / file).read_text()) == {"hooks": {"SessionStart": [entry("agent-start", 60)], **stops}}


def test_copilot_has_a_file_of_its_own(project: Path) -> None:
    assert export(project, "copilot").returncode == 0
    start = {"type": "command", "bash": "proofstone hook run agent-start --agent copilot", "timeoutSec": 60}
    stop = {"type": "command", "bash": "proofstone hook run agent-stop --agent copilot", "timeoutSec": 900}
    found = json.loads((project / ".github/hooks/proofstone.json").read_text())
    assert found == {"version": 1, "hooks": {"sessionStart": [start], "agentStop": [stop], "subagentStop": [stop]}}


@pytest.mark.few(2)
@pytest.mark.parametrize("agent", AGENTS)
def test_written_twice_is_written_once_and_removed_nothing_is_left(project: Path, agent: str) -> None:
    file = project / DIALECTS[agent].file
    export(project, agent)
    once, when = file.read_bytes(), file.stat().st_mtime_ns
    again = export(project, agent)
    assert "nothing to do" in again.stdout
    assert (file.read_bytes(), file.stat().st_mtime_ns) == (once, when)
    assert export(project, agent, "--remove").returncode == 0
    assert not file.exists()
    assert "nothing to do" in export(project, agent, "--remove").stdout


@pytest.mark.few(6)
@pytest.mark.parametrize("agent", [name for name in AGENTS if name != "copilot"])
@pytest.mark.parametrize("indent", ["  ", "    ", "\t"])
@pytest.mark.parametrize("end", ["", "\n"])
def test_everything_that_was_there_stays_and_comes_back(project: Path, agent: str, indent: str, end: str) -> None:
    file = project / DIALECTS[agent].file
    file.parent.mkdir()
    before = json.dumps(OTHERS, indent=indent, ensure_ascii=False) + end
    file.write_text(before)
    file.chmod(0o600)
    assert export(project, agent).returncode == 0
    found = json.loads(file.read_text())
    assert {**found, "hooks": None} == {**OTHERS, "hooks": None}
    assert list(found) == list(OTHERS)
    assert list(found["hooks"]) == ["PreToolUse", "Z", "A", *DIALECTS[agent].all_events]
    assert file.stat().st_mode & 0o777 == 0o600
    assert export(project, agent, "--remove").returncode == 0
    assert file.read_text() == before


def test_a_hook_of_somebody_else_for_the_same_event_stays_beside_it() -> None:
    claude = DIALECTS["claude"]
    mine = {"hooks": [{"type": "command", "command": "mine"}]}
    both = add_hook(claude, {"hooks": {"Stop": [mine]}}, "f")
    assert both["hooks"]["Stop"] == [mine, claude.build_entry("Stop")]
    assert remove_hook(claude, both, "f") == {"hooks": {"Stop": [mine]}}


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=AGENTS)
def test_an_older_entry_is_replaced_where_it_stands(dialect: Dialect) -> None:
    """One that was written before there was a hook for the start is completed; both are removed together."""
    event = dialect.events[0]
    old = json.loads(json.dumps(dialect.build_entry(event)).replace("900", "30"))
    last = {"hooks": [{"type": "command", "command": "last"}]}
    found = add_hook(dialect, {"hooks": {event: [old, last]}}, "f")
    assert found["hooks"][event] == [dialect.build_entry(event), last]
    assert found["hooks"][dialect.start_event] == [dialect.build_entry(dialect.start_event)]
    assert add_hook(dialect, found, "f") == found
    assert remove_hook(dialect, found, "f") == {"hooks": {event: [last]}}


def test_a_document_is_not_changed_by_being_looked_at() -> None:
    before = read_document("f", json.dumps(OTHERS))
    add_hook(DIALECTS["claude"], before, "f")
    remove_hook(DIALECTS["claude"], before, "f")
    assert before == OTHERS
    assert json.loads(format_document(before)) == OTHERS


@pytest.mark.few(4)
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{\n  // mine\n}", "settings.json:2: not valid JSON"),
        ("{", "not valid JSON"),
        ("[]", "not a JSON object"),
        ('{"hooks": []}', "hooks is not an object"),
        ('{"hooks": {"Stop": {}}}', "hooks.Stop is not a list"),
        ('{"a": 1, "a": 2}', "'a' occurs twice"),
    ],
)
@pytest.mark.parametrize("option", [(), ("--remove",)])
def test_what_cannot_be_written_again_as_it_was_is_left_alone(
    project: Path, text: str, words: str, option: tuple[str, ...]
) -> None:
    file = project / ".claude" / "settings.json"
    file.parent.mkdir()
    file.write_text(text)
    done = export(project, "claude", *option)
    assert done.returncode == 2
    assert words in done.stderr
    assert file.read_text() == text
    assert [path.name for path in file.parent.iterdir()] == ["settings.json"]


def test_a_settings_file_that_is_a_link_within_the_project_stays_one(project: Path) -> None:
    real = project / "agents.json"
    real.write_text("{}\n")
    (project / ".claude").mkdir()
    (project / ".claude" / "settings.json").symlink_to("../agents.json")
    assert export(project, "claude").returncode == 0
    assert (project / ".claude" / "settings.json").is_symlink()
    assert "agent-stop" in real.read_text()


@pytest.mark.few(6)
@pytest.mark.parametrize("option", [(), ("--remove",)])
@pytest.mark.parametrize(
    ("kind", "link", "there"),
    [
        ("claude", ".claude/settings.json", {"": '{"hooks": {"Stop": []}}\n'}),
        ("claude", ".claude/settings.json", {}),
        ("claude", ".claude", {"settings.json": "{}\n"}),
        ("claude", ".claude", {}),
        ("copilot", ".github/hooks", {"proofstone.json": '{"version": 1}\n'}),
        ("opencode", ".opencode/plugin", {"proofstone.js": "// Written by `proofstone export hooks opencode`.\n"}),
        ("opencode", ".opencode/plugin/proofstone.js", {}),
        ("git", "pre-applypatch", {}),
        ("git", "pre-applypatch", {"": "# proofstone-hook 1 " + "0" * 64 + "\n"}),
    ],
)
def test_nothing_is_written_or_removed_through_a_link_that_leads_out(
    project: Path, kind: str, link: str, there: dict[str, str], option: tuple[str, ...]
) -> None:
    """`there`: what the link leads to, by name below it; with an empty name a file, with none nothing at all."""
    outside = project.parent / "outside"
    for name, text in there.items():
        (outside / name if name else outside).parent.mkdir(exist_ok=True)
        (outside / name if name else outside).write_text(text)
    (project / link).parent.mkdir(parents=True, exist_ok=True)
    (project / link).symlink_to(outside)

    def everything() -> dict[str, str]:
        found = {path: path.read_text() if path.is_file() else "" for path in project.parent.rglob("*")}
        return {str(path): text for path, text in found.items() if "state" not in path.parts}

    before = everything()
    done = export(project, kind, ".", *option)
    assert done.returncode == 2, done.stdout
    assert f"{project / link} is a symbolic link that leads out of {project}, to {outside}" in done.stderr
    assert everything() == before


def test_a_link_that_leads_out_by_way_of_another_is_found_too(project: Path) -> None:
    (project / "near").symlink_to("../outside")
    (project / ".claude").symlink_to("near")
    done = export(project, "claude")
    assert done.returncode == 2
    assert f"{project / '.claude'} is a symbolic link" in done.stderr
    assert not (project.parent / "outside").exists()


def test_a_link_to_itself_is_an_error_and_no_crash(project: Path) -> None:
    (project / ".claude").symlink_to(".claude")
    done = export(project, "claude")
    assert done.returncode == 2
    assert "cannot be read" in done.stderr


def test_a_project_that_is_named_by_a_link_is_meant(project: Path) -> None:
    (project.parent / "link").symlink_to(project)
    assert export(project.parent, "claude", "link").returncode == 0
    assert "agent-stop" in (project / ".claude" / "settings.json").read_text()


def test_an_empty_settings_file_is_an_empty_document(project: Path) -> None:
    (project / ".claude").mkdir()
    (project / ".claude" / "settings.json").write_text("")
    assert export(project, "claude").returncode == 0


def test_a_folder_in_which_nothing_can_be_made_is_said(project: Path) -> None:
    (project / ".claude").write_text("")
    done = export(project, "claude")
    assert done.returncode == 2
    assert ".claude" in done.stderr
    assert export(project, "claude", "gone").returncode == 2


def test_printed_nothing_is_written(project: Path) -> None:
    done = export(project, "gemini", "--print")
    assert json.loads(done.stdout)["hooks"]["AfterAgent"]
    assert list(project.iterdir()) == []


def test_the_root_of_the_repository_is_meant_where_no_other_is_named(project: Path) -> None:
    (project / ".git").mkdir()
    (project / "below").mkdir()
    assert export(project / "below", "claude").returncode == 0
    assert (project / ".claude" / "settings.json").is_file()


@pytest.mark.parametrize("agent", ["aider", "goose", "mini-swe-agent", "generic"])
def test_for_programs_without_such_hooks_there_are_words_and_no_file(project: Path, agent: str) -> None:
    done = export(project, agent)
    assert done.returncode == 0
    assert "has no hook" in done.stderr
    assert "proofstone check" in done.stdout
    assert list(project.iterdir()) == []


def test_opencode_gets_a_plugin_and_a_file_of_somebody_else_is_left(project: Path) -> None:
    plugin = project / ".opencode" / "plugin" / "proofstone.js"
    assert export(project, "opencode").returncode == 0
    assert "session.idle" in plugin.read_text()
    assert "nothing to do" in export(project, "opencode").stdout
    assert export(project, "opencode", "--remove").returncode == 0
    assert not plugin.exists()
    plugin.write_text("// mine\n")
    assert export(project, "opencode").returncode == 2
    assert export(project, "opencode", "--remove").returncode == 2
    assert plugin.read_text() == "// mine\n"


def test_hooks_for_a_folder_of_a_team_find_proofstone_by_its_name(project: Path) -> None:
    assert export(project, "git").returncode == 2
    assert export(project, "git", ".").returncode == 0
    for name in HOOK_NAMES:
        assert os.access(project / name, os.X_OK)
        assert "\nproofstone=proofstone\n" in (project / name).read_text()
    assert "nothing to do" in export(project, "git", ".").stdout
    assert export(project, "git", ".", "--remove").returncode == 0
    assert list(project.iterdir()) == []
    (project / "pre-commit").write_text("#!/bin/sh\n")
    done = export(project, "git", ".")
    assert done.returncode == 2
    assert "proofstone hook run pre-commit || exit 1" in done.stderr
    assert [path.name for path in project.iterdir()] == ["pre-commit"]


def test_json_says_what_was_done(project: Path) -> None:
    found = json.loads(export(project, "claude", "--json").stdout)
    file = str(project / ".claude" / "settings.json")
    assert found == {"kind": "claude", "hooks": True, "changed": [{"path": file, "removed": False}]}
    assert json.loads(export(project, "aider", "--json").stdout)["hooks"] is False

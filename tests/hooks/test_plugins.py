"""Plugin packages: what is in them, and hooks that say so when Proofstone is not there."""

from __future__ import annotations

import json
import subprocess
import tomllib
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from proofstone.hooks.agent_hooks import DIALECTS
from proofstone.hooks.plugins import (
    COMMANDS,
    PluginTarget,
    build_hook_command,
    build_marketplace_files,
    build_plugin_files,
)
from tests.hooks.place import Place

ROOT = Path(__file__).parents[2]
MANIFESTS = {
    PluginTarget.CLAUDE: ".claude-plugin/plugin.json",
    PluginTarget.CODEX: ".codex-plugin/plugin.json",
    PluginTarget.GEMINI: "gemini-extension.json",
}
RULES = {
    PluginTarget.CURSOR: ".cursor/rules/proofstone.mdc",
    PluginTarget.COPILOT: ".github/instructions/proofstone.instructions.md",
}


@pytest.mark.parametrize("target", PluginTarget)
def test_a_package_has_hooks_and_commands(target: PluginTarget) -> None:
    files = build_plugin_files(target, "1.2.3", "/opt/p/proofstone")
    if target in MANIFESTS:
        manifest = json.loads(files[MANIFESTS[target]])
        assert (manifest["name"], manifest["version"]) == ("proofstone", "1.2.3")
    else:
        assert "proofstone check" in files[RULES[target]]
    ends = ("hooks.json", "hooks/proofstone.json")
    (hooks,) = (json.loads(text)["hooks"] for name, text in files.items() if name.endswith(ends))
    dialect = DIALECTS[target.value]
    assert list(hooks) == list(dialect.all_events)
    for event, entries in hooks.items():
        assert all(dialect.is_own(entry) for entry in entries)
        assert (
            f"exec /opt/p/proofstone hook run agent-{'start' if event == dialect.start_event else 'stop'}"
            in json.dumps(entries)
        )
    for command in COMMANDS:
        (name,) = (
            name for name in files if command.name in (Path(name).name.partition(".")[0], Path(name).parent.name)
        )
        text = files[name]
        if name.endswith(".toml"):
            assert "proofstone " in tomllib.loads(text)["prompt"]
        elif text.startswith("---"):
            assert YAML(typ="safe").load(text.split("---\n")[1])["description"] == command.description
        assert f"proofstone {command.name}" in text


def test_the_lists_name_packages_of_this_repository() -> None:
    for name, text in build_marketplace_files().items():
        source = json.loads(text)["plugins"][0]["source"]
        folder = ROOT / (source if isinstance(source, str) else source["path"])
        kind = "codex" if ".agents" in name else "claude"
        assert (folder / f".{kind}-plugin/plugin.json").is_file()


@pytest.mark.parametrize(("program", "what"), [("", "not on PATH"), ("/opt/gone/proofstone", "not there any more")])
def test_a_hook_without_proofstone_says_so_and_lets_the_agent_go_on(program: str, what: str, tmp_path: Path) -> None:
    """Exit code 2 would keep an agent from stopping, and it could do nothing about it."""
    line = build_hook_command(DIALECTS["claude"], "Stop", program)
    done = subprocess.run(["/bin/sh", "-c", line], env={"PATH": str(tmp_path)}, capture_output=True, text=True)
    assert done.returncode == 1
    assert what in done.stderr and "proofstone export plugin claude DIR" in done.stderr


def test_a_package_is_written_with_the_path_of_this_proofstone(place: Place, tmp_path: Path) -> None:
    folder = tmp_path / "package"
    done = place.proofstone("export", "plugin", "cursor", str(folder), "--json")
    assert done.returncode == 0, done.stderr
    program = json.loads(done.stdout)["program"]
    assert Path(program).is_absolute()
    line = json.loads((folder / ".cursor/hooks.json").read_text())["hooks"]["stop"][0]["command"]
    place.write(a="<<<<<<< ours\nx\n=======\ny\n>>>>>>> theirs\n")
    event = json.dumps({"conversation_id": "c", "workspace_roots": [str(place.root)], "status": "completed"})
    environment = {**place.workshop.environment, "PATH": "/usr/bin:/bin"}
    answer = subprocess.run(
        ["/bin/sh", "-c", line], input=event, env=environment, cwd=tmp_path, capture_output=True, text=True
    )
    assert answer.returncode == 0, answer.stderr
    assert "a.md:1" in json.loads(answer.stdout)["followup_message"]

    (folder / ".cursor/commands/check.md").write_text("mine\n")
    done = place.proofstone("export", "plugin", "cursor", str(folder))
    assert done.returncode == 2 and "was not written by Proofstone" in done.stderr
    assert (folder / ".cursor/commands/check.md").read_text() == "mine\n"


def test_the_hooks_for_the_pre_commit_framework_start_commands_that_exist() -> None:
    hooks = YAML(typ="safe").load((ROOT / ".pre-commit-hooks.yaml").read_text("utf-8"))
    assert [(hook["id"], hook["entry"]) for hook in hooks] == [
        ("proofstone", "proofstone hook run pre-commit"),
        ("proofstone-check", "proofstone check --staged"),
    ]
    assert all(hook["pass_filenames"] is False and hook["always_run"] for hook in hooks)

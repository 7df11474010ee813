"""What the presets say of themselves holds together."""

from __future__ import annotations

import json
from collections.abc import Callable
from fnmatch import fnmatchcase
from pathlib import PurePosixPath

import pytest

from proofstone.agents.backends.programs.known import PRESETS
from proofstone.agents.backends.programs.known.opencode import invoke, invoke_acp
from proofstone.agents.backends.programs.preset import Invocation, LaunchRequest
from tests.rows import each_row

OPEN_TO_ALL = {"github.com", "gist.github.com", "www.googleapis.com", "storage.googleapis.com", "huggingface.co"}
"""Where anybody can put something, under a name of their own."""


def covers(pattern: str, path: str) -> bool:
    """A star stays within a name."""
    names, parts = PurePosixPath(pattern).parts, PurePosixPath(path).parts
    return len(names) == len(parts) and all(map(fnmatchcase, parts, names))


@each_row("name", PRESETS)
def test_no_program_reaches_a_host_at_which_anybody_can_leave_something(name: str) -> None:
    assert OPEN_TO_ALL.isdisjoint(PRESETS[name].hosts)


@each_row("name", PRESETS)
def test_what_decides_its_start_and_what_it_renews_lie_in_what_is_shared(name: str) -> None:
    preset = PRESETS[name]
    for path in (*preset.startup_files, *preset.renewable_files):
        assert any(PurePosixPath(path).is_relative_to(shared) for shared in preset.login), path


@each_row("name", PRESETS)
def test_nothing_that_decides_its_start_is_renewed(name: str) -> None:
    preset = PRESETS[name]
    for pattern in preset.renewable_files:
        for kept in preset.startup_files:
            assert not covers(pattern, kept)
            assert not PurePosixPath(pattern).is_relative_to(kept)


@each_row(
    ("name", "path"),
    [
        ("claude", ".claude/.credentials.json"),
        ("claude", ".claude/.credentials.json.tmp.1f2e3d4c"),
        ("claude", ".claude/.oauth_refresh.lock"),
        ("claude", ".claude/.oauth_refresh.lock.owner"),
        ("codex", ".codex/auth.json"),
        ("codex", ".codex/auth.lock"),
        ("opencode", ".local/share/opencode/auth.json"),
        ("qwen", ".qwen/oauth_creds.json.tmp.6b1a6f9e-0000-4000-8000-000000000000"),
        ("qwen", ".qwen/oauth_creds.lock"),
        ("goose", ".config/goose/chatgpt_codex/tokens.json"),
        ("goose", ".config/goose/databricks/oauth/0a1b2c.json"),
        ("goose", ".config/goose/githubcopilot/github_example_com/info.json"),
    ],
)
def test_a_login_can_be_renewed_with_its_lock_and_its_temporary_file(name: str, path: str) -> None:
    assert any(covers(pattern, path) for pattern in PRESETS[name].renewable_files)


@pytest.mark.parametrize("start", [invoke, invoke_acp])
def test_opencode_writes_no_snapshots_to_a_folder_that_it_may_not_change(
    start: Callable[[LaunchRequest], Invocation],
) -> None:
    assert ".local/share/opencode/snapshot" in PRESETS["opencode"].startup_files
    assert json.loads(start(LaunchRequest("")).variables["OPENCODE_CONFIG_CONTENT"])["snapshot"] is False

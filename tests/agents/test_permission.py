"""What a program with tools of its own may do when it asks."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from proofstone.agents.models import RefusalRule
from proofstone.agents.rules.permission import (
    ActionKind,
    PermissionGranted,
    PermissionLimits,
    PermissionRefused,
    PermissionRequest,
    build_permission_request,
    decide_permission,
    resolve_from_root,
)
from proofstone.agents.rules.tool_rules import ToolRefusedError
from tests.rows import each_row

ROOT = "/w/project"
BOUNDS = PermissionLimits(ROOT, scope=("src/**", "a.txt"), can_run=True)
READER = PermissionLimits(ROOT, scope=(), can_run=False)

SCOPE, OUTSIDE, SECRET = RefusalRule.SCOPE, RefusalRule.OUTSIDE, RefusalRule.SECRET
UNLISTED, ARGUMENTS = RefusalRule.UNLISTED, RefusalRule.ARGUMENTS

# kind, paths → the rule that refuses it; None: it is allowed.
BY_KIND: list[tuple[ActionKind, tuple[str, ...], RefusalRule | None]] = [
    (ActionKind.READ, (), None),
    (ActionKind.READ, (f"{ROOT}/b.txt",), None),
    (ActionKind.READ, ("b.txt",), None),
    (ActionKind.READ, (ROOT,), None),
    (ActionKind.READ, (f"file://{ROOT}/b.txt",), None),
    (ActionKind.READ, ("/etc/passwd",), OUTSIDE),
    (ActionKind.READ, ("~/.ssh/id_rsa",), OUTSIDE),
    (ActionKind.READ, (f"{ROOT}-other/b.txt",), OUTSIDE),
    (ActionKind.READ, (f"{ROOT}/../b.txt",), OUTSIDE),
    (ActionKind.READ, (f"{ROOT}/.git/config",), OUTSIDE),
    (ActionKind.READ, (f"{ROOT}/.env",), SECRET),
    (ActionKind.SEARCH, ("src",), None),
    (ActionKind.SEARCH, ("src", "/"), OUTSIDE),
    (ActionKind.EDIT, (f"{ROOT}/a.txt",), None),
    (ActionKind.EDIT, (f"{ROOT}/src/deep/x.py", "a.txt"), None),
    (ActionKind.EDIT, (f"{ROOT}/a.txt", f"{ROOT}/b.txt"), SCOPE),
    (ActionKind.EDIT, (f"{ROOT}/src/../b.txt",), OUTSIDE),
    (ActionKind.EDIT, (f"{ROOT}/src/.git/hooks/x",), OUTSIDE),
    (ActionKind.EDIT, (f"{ROOT}/src/.env",), SECRET),
    (ActionKind.EDIT, (ROOT,), ARGUMENTS),
    (ActionKind.EDIT, (), ARGUMENTS),
    (ActionKind.DELETE, ("b.txt",), SCOPE),
    (ActionKind.DELETE, ("a.txt",), None),
    (ActionKind.MOVE, ("a.txt", "b.txt"), SCOPE),
    (ActionKind.MOVE, ("a.txt", "src/a.txt"), None),
    (ActionKind.EXECUTE, (), None),
    (ActionKind.EXECUTE, ("/etc",), None),
    (ActionKind.THINK, (), None),
    (ActionKind.FETCH, (), UNLISTED),
    (ActionKind.SWITCH_MODE, (), UNLISTED),
]


@each_row("kind,paths,rule", BY_KIND)
def test_what_is_wanted_is_allowed_by_its_kind_and_its_files(
    kind: ActionKind, paths: tuple[str, ...], rule: RefusalRule | None
) -> None:
    decision = decide_permission(PermissionRequest(kind, paths=paths), BOUNDS)
    assert (decision.rule if isinstance(decision, PermissionRefused) else None) == rule


@each_row("kind", [ActionKind.READ, ActionKind.SEARCH, ActionKind.EDIT, ActionKind.DELETE, ActionKind.MOVE])
def test_what_the_person_calls_secret_is(kind: ActionKind) -> None:
    wish = PermissionRequest(kind, paths=(f"{ROOT}/src/notes.txt",))
    assert isinstance(decide_permission(wish, BOUNDS), PermissionGranted)
    decision = decide_permission(wish, replace(BOUNDS, secret=("src/notes*",)))
    assert isinstance(decision, PermissionRefused) and decision.rule is SECRET


def test_each_kind_of_the_protocol_is_in_the_table() -> None:
    assert {kind for kind, _, _ in BY_KIND} == set(ActionKind)


@pytest.mark.parametrize("kind", [ActionKind.EDIT, ActionKind.DELETE, ActionKind.MOVE, ActionKind.EXECUTE])
@pytest.mark.seed("pipeline", "tool-restrictions")
def test_a_role_that_only_reads_changes_and_runs_nothing(kind: ActionKind) -> None:
    assert isinstance(decide_permission(PermissionRequest(kind, paths=("a.txt",)), READER), PermissionRefused)


def test_a_refusal_tells_what_may_be_changed() -> None:
    decision = decide_permission(PermissionRequest(ActionKind.EDIT, paths=(f"{ROOT}/b.txt",)), BOUNDS)
    assert isinstance(decision, PermissionRefused)
    assert "b.txt" in decision.why and "src/**, a.txt" in decision.why


# As real agents put it: kind, the tool's name, files pointed out, arguments → the rule that refuses it.
ASKED: dict[str, tuple[str, str, tuple[str, ...], JsonValue, RefusalRule | None]] = {
    "goose reads": ("other", "read", (), {"path": f"{ROOT}/b.txt"}, None),
    "goose writes": ("other", "write", (), {"path": f"{ROOT}/a.txt", "content": "x"}, None),
    "goose writes elsewhere": ("other", "write", (), {"path": f"{ROOT}/b.txt", "content": "x"}, SCOPE),
    "goose edits elsewhere": ("other", "edit", (), {"path": "b.txt", "before": "a", "after": "b"}, SCOPE),
    "goose looks around": ("other", "developer__tree", (), {"path": ROOT, "depth": 2}, None),
    "goose runs": ("other", "shell", (), {"command": "touch b.txt"}, None),
    "goose without a name": ("other", "", (), {"path": "b.txt"}, SCOPE),
    "goose makes an app": ("other", "apps__create_app", (), {"prd": "an app"}, ARGUMENTS),
    "goose delegates": ("other", "delegate", (), {"instructions": "do it"}, UNLISTED),
    "gemini writes": ("edit", "", (f"{ROOT}/b.txt",), None, SCOPE),
    "qwen edits": ("edit", "", (f"{ROOT}/a.txt",), {"file_path": f"{ROOT}/a.txt", "old_string": "a"}, None),
    "one file is pointed out and another one given": ("edit", "", ("a.txt",), {"file_path": "b.txt"}, SCOPE),
    "opencode writes": ("edit", "", (f"{ROOT}/a.txt",), {"filepath": f"{ROOT}/a.txt", "diff": "--- b.txt"}, None),
    "copilot writes": ("edit", "", (), {"fileName": f"{ROOT}/b.txt", "diff": ""}, SCOPE),
    "codex patches": ("edit", "", (), {"changes": {f"{ROOT}/a.txt": {}, f"{ROOT}/b.txt": {}}}, SCOPE),
    "codex runs": ("execute", "", (), {"command": ["bash", "-lc", "touch b.txt"], "cwd": "/"}, None),
    "a command without a kind": ("", "", (), {"cmd": "ls"}, None),
    "an address without a kind": ("", "", (), {"url": "https://example.com"}, UNLISTED),
    "a tool that replaces what it finds": ("", "searchReplace", (), {"path": "b.txt"}, SCOPE),
    "a kind that nobody knows": ("dance", "", (), {"path": "b.txt"}, SCOPE),
    "nothing is told": ("", "", (), None, UNLISTED),
    "a text that is no path": ("edit", "", (), {"source": "a\nb", "file": 3}, ARGUMENTS),
}  # fmt: skip


@each_row("name", ASKED)
def test_what_agents_really_ask_is_understood(name: str) -> None:
    kind, tool, named, arguments, rule = ASKED[name]
    decision = decide_permission(build_permission_request(kind, tool, named, arguments), BOUNDS)
    assert (decision.rule if isinstance(decision, PermissionRefused) else None) == rule


@given(st.text(max_size=40))
def test_no_path_leads_out_of_the_project(path: str) -> None:
    """Whatever it is called: it is refused, or it is a path below the root that has no way up."""
    try:
        at = resolve_from_root(path, ROOT)
    except ToolRefusedError:
        return
    assert not at.startswith("/") and ".." not in at.split("/")


@given(
    st.text(max_size=12), st.lists(st.text(max_size=12), max_size=3), st.dictionaries(st.text(max_size=8), st.text())
)
def test_whatever_is_asked_it_is_decided(tool: str, named: list[str], arguments: dict[str, JsonValue]) -> None:
    assert isinstance(
        decide_permission(build_permission_request("other", tool, named, arguments), READER),
        PermissionGranted | PermissionRefused,
    )

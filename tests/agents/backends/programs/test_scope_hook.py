"""The hook that decides edits, run as a program runs it: by a shell, with the files that it is handed."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from proofstone.agents.backends.programs.known.shared import build_hook_command, build_hook_files
from proofstone.agents.backends.programs.preset import LaunchRequest

SCOPE = ("src/*.py", "docs", "app/[id]/**")


def ran(
    tmp_path: Path, call: object, scope: tuple[str, ...] = SCOPE, lost: str = ""
) -> subprocess.CompletedProcess[str]:
    """What the hook says to the call, in the work tree `tmp_path/tree`."""
    variables = {}
    for name, content in build_hook_files(LaunchRequest("", scope=scope, root=tmp_path / "tree")).items():
        (tmp_path / name).write_text(content, "utf-8")
        variables[name] = str(tmp_path / (name if name != lost else "nothing"))
    return subprocess.run(
        ["/bin/sh", "-c", build_hook_command()],
        env=variables, input=json.dumps(call), capture_output=True, text=True, check=False,
    )  # fmt: skip


def decided(tmp_path: Path, call: object, scope: tuple[str, ...] = SCOPE) -> tuple[str, str]:
    ended = ran(tmp_path, call, scope)
    assert (ended.returncode, ended.stderr) == (0, "")
    told = json.loads(ended.stdout)["hookSpecificOutput"]
    return told["permissionDecision"], told["permissionDecisionReason"]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "tree" / "src").mkdir(parents=True)
    return tmp_path / "tree"


@pytest.mark.few(6)
@pytest.mark.parametrize(
    ("path", "decision"),
    [
        ("src/a.py", "allow"), ("docs/deep/x.md", "allow"), ("app/[id]/page.tsx", "allow"),
        ("src/deep/a.py", "deny"), ("b.py", "deny"), ("src/../b.py", "deny"), ("../tree2/src/a.py", "deny"),
        ("/etc/passwd", "deny"), ("", "deny"), (".", "deny"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("absolute", [True, False])
def test_an_edit_is_decided_by_the_one_rule_for_patterns(
    tmp_path: Path, tree: Path, path: str, decision: str, absolute: bool
) -> None:
    named = str(tree / path) if absolute else path
    assert decided(tmp_path, {"tool_name": "Edit", "tool_input": {"file_path": named}})[0] == decision


def test_where_a_link_leads_is_what_counts(tmp_path: Path, tree: Path) -> None:
    (tree / "src" / "link.py").symlink_to(tree / "b.py")
    assert decided(tmp_path, {"tool_name": "Edit", "tool_input": {"file_path": "src/link.py"}})[0] == "deny"


def test_a_notebook_is_a_file(tmp_path: Path, tree: Path) -> None:
    call = {"tool_name": "NotebookEdit", "tool_input": {"notebook_path": "docs/x.ipynb"}}
    assert decided(tmp_path, call)[0] == "allow"


def test_the_reason_tells_what_may_be_changed_and_how_to_ask_for_more(tmp_path: Path, tree: Path) -> None:
    reason = decided(tmp_path, {"tool_name": "Edit", "tool_input": {"file_path": str(tree / "b.py")}})[1]
    assert reason.startswith("b.py is not yours to change. You may change: src/*.py, docs,")
    assert "`files_requested`" in reason


def test_with_an_empty_scope_nothing_may_be_changed(tmp_path: Path, tree: Path) -> None:
    decision, reason = decided(tmp_path, {"tool_name": "Edit", "tool_input": {"file_path": "src/a.py"}}, scope=())
    assert (decision, "You may not change any file." in reason) == ("deny", True)


PATCH = "*** Begin Patch\n*** {what} File: {path}\n@@\n-x\n+y\n*** End Patch\n"


@pytest.mark.few(6)
@pytest.mark.parametrize("what", ["Add", "Update", "Delete"])
@pytest.mark.parametrize(("path", "decision"), [("src/a.py", "allow"), ("b.py", "deny"), ("src/../b.py", "deny")])
@pytest.mark.parametrize(("tool", "around"), [("apply_patch", "{}"), ("Bash", "apply_patch <<'EOF'\n{}EOF\n")])
def test_a_patch_is_decided_by_the_files_that_it_names(
    tmp_path: Path, tree: Path, what: str, path: str, decision: str, tool: str, around: str
) -> None:
    patch = around.format(PATCH.format(what=what, path=path))
    assert decided(tmp_path, {"tool_name": tool, "tool_input": {"command": patch}})[0] == decision


@pytest.mark.parametrize("second", ["*** Update File: b.py", "*** Move to: b.py"])
def test_one_file_out_of_scope_refuses_the_whole_patch(tmp_path: Path, tree: Path, second: str) -> None:
    patch = f"*** Begin Patch\n*** Update File: src/a.py\n{second}\n@@\n-x\n+y\n*** End Patch"
    assert decided(tmp_path, {"tool_name": "apply_patch", "tool_input": {"command": patch}})[0] == "deny"


def test_a_command_without_a_patch_is_not_for_it_to_judge(tmp_path: Path, tree: Path) -> None:
    assert decided(tmp_path, {"tool_name": "Bash", "tool_input": {"command": "ls"}})[0] == "allow"


@pytest.mark.parametrize(
    "call", [{}, {"tool_name": "Edit"}, {"tool_input": {"file_path": 5}}, {"tool_input": {"x": 1}}]
)
def test_a_call_that_names_no_file_is_denied(tmp_path: Path, tree: Path, call: object) -> None:
    assert decided(tmp_path, call)[0] == "deny"


@pytest.mark.parametrize("call", ["text", 5, [1]])
def test_a_hook_that_breaks_down_denies_with_a_reason(tmp_path: Path, tree: Path, call: object) -> None:
    ended = ran(tmp_path, call)
    assert ended.returncode == 2
    assert "Could not check whether you may change this file." in ended.stderr


@pytest.mark.parametrize("name", ["PROOFSTONE_HOOK", "PROOFSTONE_GLOBS", "PROOFSTONE_SCOPE"])
def test_a_hook_without_its_files_denies(tmp_path: Path, tree: Path, name: str) -> None:
    call = {"tool_name": "Edit", "tool_input": {"file_path": "src/a.py"}}
    assert ran(tmp_path, call, lost=name).returncode == 2

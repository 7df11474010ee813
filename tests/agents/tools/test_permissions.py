"""What an agent may call is decided at the call: its role's list, the arguments, the scope."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from proofstone.agents.models import RefusalRule, ToolCall
from proofstone.agents.tools.models import ARGUMENTS, CLAIMING_TOOLS, EXTERNAL_TOOLS, READING_TOOLS, WRITING_TOOLS, Tool
from proofstone.agents.tools.toolbox import build_spec as described
from tests.agents.tools.desk import Desk

CALLS: dict[Tool, dict[str, Any]] = {
    Tool.READ: {"path": "a.txt"},
    Tool.LIST: {},
    Tool.GLOB: {"pattern": "**"},
    Tool.GREP: {"pattern": "x"},
    Tool.GIT_LOG: {},
    Tool.GIT_SHOW: {},
    Tool.GIT_DIFF: {},
    Tool.SYMBOLS: {"name": "x"},
    Tool.WRITE: {"path": "new.txt", "content": "x"},
    Tool.EDIT: {"path": "a.txt", "old": "x", "new": "y"},
    Tool.DELETE: {"path": "a.txt"},
    Tool.RUN: {"command": "touch ran"},
    Tool.MEMORY_SEARCH: {"query": "x"},
    Tool.WEB_SEARCH: {"query": "x", "reason": "API_BEHAVIOR"},
    Tool.WEB_FETCH: {"url": "https://example.org/"},
    Tool.DISPUTE: {"subject": "test_a.py::test_a", "because": "it contradicts the README"},
}


def test_every_tool_reads_or_writes_or_looks_beyond_the_tree_and_takes_arguments() -> None:
    kinds = (READING_TOOLS, WRITING_TOOLS, EXTERNAL_TOOLS, CLAIMING_TOOLS)
    assert frozenset().union(*kinds) == set(Tool) == set(ARGUMENTS) == set(CALLS)
    assert sum(map(len, kinds)) == len(Tool)


@pytest.mark.parametrize("has", list(Tool))
def test_a_role_with_one_tool_is_refused_every_other(tmp_path: Path, has: Tool) -> None:
    desk = Desk(tmp_path, allowed=(has,))
    desk.put("a.txt")
    for tool in set(Tool) - {has}:
        result = desk.call(tool, **CALLS[tool])
        assert (result.ok, result.refused) == (False, RefusalRule.UNLISTED), tool
        assert tool in result.text
    assert sorted(path.name for path in desk.files.iterdir()) == ["a.txt"]
    assert (desk.files / "a.txt").read_text() == "x\n"


def test_the_refusal_names_the_tools_that_there_are(tmp_path: Path) -> None:
    said = Desk(tmp_path, allowed=(Tool.READ, Tool.GREP)).call("bash", command="id").text
    assert said == "You do not have a tool bash. Your tools: grep, read."


@pytest.mark.parametrize("name", ["", "Read", "read ", "READ", "__init__", "read\nwrite", "x" * 10_000])
def test_a_name_that_is_no_tool_is_refused(desk: Desk, name: str) -> None:
    assert desk.refused(name) == "unlisted"


def test_what_the_ground_cannot_serve_is_not_offered(desk: Desk) -> None:
    offered = {spec.name for spec in desk.toolbox.specs}
    assert (
        offered == set(Tool) - {Tool.RUN, Tool.GIT_LOG, Tool.GIT_SHOW, Tool.GIT_DIFF} - EXTERNAL_TOOLS - CLAIMING_TOOLS
    )
    assert desk.refused("run", command="id") == "unlisted"


def test_specs_are_in_one_order_and_teach_every_argument(tmp_path: Path) -> None:
    one = Desk(tmp_path, allowed=frozenset(READING_TOOLS)).toolbox.specs
    other = Desk(tmp_path, allowed=sorted(READING_TOOLS, reverse=True)).toolbox.specs
    assert one == other
    for spec in map(described, Tool):
        assert len(spec.description) > 30 and "\n" not in spec.description
        assert "title" not in str(spec.parameters)


ARGUMENTS_THAT_ARE_WRONG: list[tuple[str, dict[str, Any], str]] = [
    ("read", {}, "path"),
    ("read", {"path": 3}, "path"),
    ("read", {"path": ""}, "path"),
    ("read", {"path": "a.txt", "offset": 0}, "offset"),
    ("read", {"path": "a.txt", "limit": 2001}, "limit"),
    ("read", {"path": "a.txt", "follow": True}, "follow"),
    ("read", {"path": "\ud800"}, "path"),
    ("grep", {"pattern": "("}, "pattern"),
    ("grep", {"pattern": "a" * 1001}, "pattern"),
    ("grep", {"pattern": "a{99999999999999999999}"}, "pattern"),
    ("grep", {"pattern": "(" * 999}, "pattern"),
    ("grep", {"pattern": "(?P<a>x)(?P<a>y)"}, "pattern"),
    ("grep", {"pattern": "x", "limit": 201}, "limit"),
    ("glob", {"pattern": "*" * 501}, "pattern"),
    ("symbols", {}, "name"),
    ("edit", {"path": "a.txt", "old": "", "new": "y"}, "old"),
    ("edit", {"path": "a.txt", "old": "x", "new": "x"}, "new"),
    ("write", {"path": "a.txt", "content": None}, "content"),
    ("write", {"path": "a.txt", "content": "é" * (1 << 19) + "e"}, "content"),
]


@pytest.mark.parametrize(("tool", "arguments", "named"), ARGUMENTS_THAT_ARE_WRONG)
def test_arguments_that_do_not_validate_are_refused_in_words(
    desk: Desk, tool: str, arguments: dict[str, Any], named: str
) -> None:
    desk.put("a.txt", "x\n")
    result = desk.call(tool, **arguments)
    assert result.refused is RefusalRule.ARGUMENTS and named in result.text
    assert (desk.files / "a.txt").read_text() == "x\n"


@pytest.mark.parametrize(
    "call",
    [
        ToolCall(id="c", name="n" * 3_000_000),
        ToolCall(id="c", name="read", arguments={"k" * 3_000_000: 1, "path": "a"}),
        ToolCall(id="c", name="read", arguments={f"{number}\n" * 50_000: 1 for number in range(9)}),
        ToolCall(id="c", name="read", malformed="m" * 3_000_000),
        ToolCall(id="c", name="read", arguments={"path": "p" * 3_000_000}),
        ToolCall(id="c", name="git_log", arguments={"revision": "r" * 3_000_000}),
    ],
    ids=lambda call: f"{call.name[:9]} {len(str(call.arguments)[:99])}",
)
def test_what_an_agent_says_is_not_sent_back_at_any_length(desk: Desk, call: ToolCall) -> None:
    result = desk.toolbox.call(call)
    assert result.refused is not None and len(result.text) < 2200 and "\n" not in result.text
    assert result.name == call.name[:200]


def test_arguments_that_could_not_be_read_are_refused(desk: Desk) -> None:
    result = desk.toolbox.call(ToolCall(id="c", name="list", malformed="line 1: it is not JSON"))
    assert result.refused is RefusalRule.ARGUMENTS and "line 1: it is not JSON" in result.text


WRITES = [("write", {"content": "new"}), ("edit", {"old": "x", "new": "y"}), ("delete", {})]


@pytest.mark.parametrize(("tool", "arguments"), WRITES)
@pytest.mark.parametrize(
    ("scope", "path", "may"),
    [
        (("src",), "src/a.py", True),
        (("./src/",), "src/deep/a.py", True),
        (("src/*.py",), "src/a.py", True),
        (("a[1].txt",), "a[1].txt", True),
        (("src/*.py",), "src/deep/a.py", False),
        (("src",), "srcs/a.py", False),
        (("src/a.py",), "src/b.py", False),
        (("src/a.py",), "SRC/a.py", False),
        (("tests/**",), "src/a.py", False),
        ((), "src/a.py", False),
    ],
)
def test_only_paths_in_scope_are_changed(
    tmp_path: Path, tool: str, arguments: dict[str, str], scope: tuple[str, ...], path: str, may: bool
) -> None:
    desk = Desk(tmp_path, scope=scope)
    file = desk.put(path)
    result = desk.call(tool, path=path, **arguments)
    assert result.refused is (None if may else RefusalRule.SCOPE) and result.ok is may
    assert (file.exists() and file.read_text() == "x\n") is not may
    assert may or all(one in result.text for one in scope)


def test_a_path_is_judged_however_it_is_spelled(tmp_path: Path) -> None:
    desk = Desk(tmp_path, scope=("src",))
    assert desk.ok("write", path="./src//a.py", content="x") and (desk.files / "src" / "a.py").read_text() == "x"
    assert desk.refused("write", path=".//b.py", content="x") == "scope"


def test_a_call_after_the_work_was_stopped_does_nothing(desk: Desk) -> None:
    desk.cancel.set()
    assert "stopped" in desk.failed("write", path="a.txt", content="x") and not (desk.files / "a.txt").exists()


def test_a_call_without_time_left_does_nothing(desk: Desk) -> None:
    result = desk.call("write", 0.0, path="a.txt", content="x")
    assert not result.ok and "no time left" in result.text and not (desk.files / "a.txt").exists()

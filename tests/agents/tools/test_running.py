"""Commands run in the sandbox; what they printed is shown, and how they ended."""

from __future__ import annotations

from pathlib import Path

from proofstone.agents.models import ToolCall, ToolResult
from proofstone.agents.tools.models import Tool
from proofstone.agents.tools.tool_context import ToolContext
from proofstone.agents.tools.toolbox import Toolbox
from tests.agents.executors.bench import Bench


def ran(bench: Bench, command: str, seconds: float | None = None, /, **more: object) -> ToolResult:
    ground = ToolContext(files=bench.work_tree, run=bench.site().run, cancel=bench.cancel)
    call = ToolCall.model_validate({"id": "c", "name": "run", "arguments": {"command": command, **more}})
    return Toolbox(ground, (Tool.RUN,)).call(call, seconds)


def test_a_command_runs_in_the_work_tree(bench: Bench) -> None:
    result = ran(bench, "cat a.txt; echo made > new.txt; echo wrong >&2")
    assert result.ok and result.text == "Exit code 0.\na\nwrong"
    assert "new.txt" in bench.files()


def test_the_sandbox_holds(strong: Bench) -> None:
    target = Path(strong.folder / "outside.txt")
    ran(strong, f"echo x > {target}; echo y > {strong.root}/y.txt; cat {strong.state}/ledger")
    assert not target.exists() and not (strong.root / "y.txt").exists() and "secret" not in strong.printed()


def test_an_exit_code_is_a_result_and_a_signal_is_none(plain: Bench) -> None:
    failed = ran(plain, "echo oh; exit 3")
    assert failed.ok and failed.text == "Exit code 3.\noh"
    assert ran(plain, "true").text == "Exit code 0.\nIt printed nothing."
    assert ran(plain, "no-such-program").text.startswith("Exit code 127.")
    killed = ran(plain, "kill -9 $$")
    assert not killed.ok and "SIGKILL" in killed.text and killed.refused is None


def test_a_command_is_ended_at_its_deadline(plain: Bench) -> None:
    result = ran(plain, "echo begun; sleep 60", seconds=1)
    assert not result.ok and "still running after 1 s" in result.text and "begun" in result.text


def test_a_command_is_ended_at_the_callers_deadline(plain: Bench) -> None:
    result = ran(plain, "sleep 60", 1.0)
    assert not result.ok and "still running after 1 s" in result.text


def test_a_flood_is_cut_in_the_middle_and_that_is_said(plain: Bench) -> None:
    text = ran(plain, "echo first; head -c 5000000 /dev/zero | tr '\\0' x; echo; echo last").text
    assert len(text.encode()) < 31 * 1024
    assert text.startswith("Exit code 0.\nfirst\nxxx") and text.endswith("xxx\nlast")
    assert "bytes of the output left out here]" in text


def test_output_of_just_the_limit_is_shown_whole(plain: Bench) -> None:
    text = ran(plain, "head -c 30720 /dev/zero | tr '\\0' x").text
    assert text == "Exit code 0.\n" + "x" * 30720


def test_output_that_is_not_text_is_shown_as_far_as_it_is(plain: Bench) -> None:
    text = ran(plain, "printf 'a\\377b\\000c\\n'").text
    assert text == "Exit code 0.\na\N{REPLACEMENT CHARACTER}b\0c"


def test_arguments_have_limits(plain: Bench) -> None:
    for more in ({"seconds": 601}, {"seconds": 0}, {"seconds": "long"}):
        assert str(ran(plain, "true", **more).refused) == "arguments"
    assert str(ran(plain, "").refused) == "arguments"

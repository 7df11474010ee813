"""`cli:`: what a headless agent did before it failed is not forgotten, and nothing that it prints holds it up."""

from __future__ import annotations

import json
from dataclasses import replace

from proofstone.agents.backends import BackendIdentity
from proofstone.agents.backends.factory import FallbackBackend
from proofstone.agents.backends.programs.cli import CliBackend
from proofstone.agents.backends.programs.discovery import InstalledProgram
from proofstone.agents.backends.programs.known.claude import PRESET
from proofstone.agents.backends.programs.lines import MAX_LINE_BYTES
from proofstone.agents.executors.context import ExecutionContext
from proofstone.agents.models import Conversation, Fault, FaultKind, ToolCall, Turn
from proofstone.agents.spending import DispatchRecord
from proofstone.config.user import ProgramSettings
from proofstone.sandbox.job import SandboxResult
from tests.agents.backends.conversations import talk
from tests.agents.executors.bench import Bench

LIMITED = {"type": "result", "is_error": True, "api_error_status": 429, "result": "API Error: 429"}
DONE = {"type": "result", "is_error": False, "result": "Done."}


def backend(bench: Bench, *lines: str) -> CliBackend:
    """A program that changes its work tree, and then does what the lines say."""
    program = bench.work_tree / "program"
    start = "#!/usr/bin/env python3\nimport pathlib, sys\npathlib.Path('left.txt').write_text('half')\n"
    program.write_text(start + "\n".join(lines))
    program.chmod(0o755)
    return CliBackend(InstalledProgram("cli:claude", "claude", ("./program",), PRESET, ProgramSettings()))


def printing(event: dict[str, object]) -> str:
    return f"print({json.dumps(event)!r})"


class Reading:
    """A model that reads what is there."""

    identity = BackendIdentity("api:x:y")

    def turn(self, conversation: Conversation, site: ExecutionContext, seconds: float | None) -> Turn:
        return Turn(calls=(ToolCall(id="1", name="read", arguments={"path": "left.txt"}),))

    def close(self) -> None:
        return None


def test_a_fault_tells_whether_an_executor_may_have_changed_something(plain: Bench) -> None:
    program = backend(plain, printing(LIMITED), "sys.exit(1)")
    for role in ("executor", "researcher"):
        came = program.turn(talk(role=role), plain.site(), 60)
        assert isinstance(came, Fault) and came.kind is FaultKind.UNAVAILABLE
        assert came.acted is (role == "executor")
    unstarted = SandboxResult(None, 1, setup_error="no room")
    came = program.turn(talk(role="executor"), replace(plain.site(), run=lambda _: unstarted), 60)
    assert isinstance(came, Fault) and "no room" in came.why and not came.acted


def test_a_conversation_that_another_goes_on_with_in_what_it_left_cannot_be_taken_up(plain: Bench) -> None:
    both = FallbackBackend((backend(plain, printing(LIMITED), "sys.exit(1)"), Reading()))
    came = both.turn(talk(role="executor"), plain.site(), 60)
    assert isinstance(came, Turn) and came.calls
    assert (plain.work_tree / "left.txt").read_text() == "half"
    assert not DispatchRecord(turns=[came]).can_resume


def test_a_line_without_end_is_no_event_and_what_follows_is_heard(plain: Bench) -> None:
    long = f"sys.stdout.write('x' * {MAX_LINE_BYTES + 1} + {json.dumps(DONE)!r} + chr(10))"
    came = backend(plain, long, printing(DONE)).turn(talk(), plain.site(), 60)
    assert isinstance(came, Turn) and came.text == "Done."

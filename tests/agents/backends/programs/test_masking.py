"""Keys that a program was given are neither shown nor kept, wherever it says them."""

from __future__ import annotations

import base64
import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofstone.agents.backends.programs.activity import KeyMask
from proofstone.agents.backends.programs.cli import CliBackend
from proofstone.agents.backends.programs.discovery import InstalledProgram
from proofstone.agents.backends.programs.known.claude import PRESET
from proofstone.agents.executors.output import MASK_TEXT, MaskingStream, mask_sink, remove_values
from proofstone.agents.models import Fault, FaultKind, Turn
from proofstone.config.user import ProgramSettings
from tests.agents.backends.conversations import talk
from tests.agents.backends.programs.scripted_agent import Stage, Step
from tests.agents.executors.bench import Bench
from tests.rows import each_row

KEY = "sk-very-secret-0123456789"
VARIABLES = {"ANTHROPIC_API_KEY": KEY}

# Variables, a text → the text as it may be seen.
MASKED: list[tuple[dict[str, str], str, str]] = [
    ({"A_KEY": KEY}, f"a {KEY} b {KEY}", "a … b …"),
    ({"A_TOKEN": KEY, "A_SECRET": "the-other-one"}, f"{KEY}the-other-one", "……"),
    ({"A_URL": KEY}, KEY, KEY),
    ({"A_KEY": "short"}, "short", "short"),
    ({"A_KEY": "12345678"}, "12345678", "…"),
    ({"A_KEY": "12345678", "B_KEY": "1234567890"}, "1234567890", "…"),
    ({"A_KEY": 'two"\nlines'}, 'two"\nlines two\\"\\nlines', "… …"),
    ({"A_KEY": f" {KEY}\n"}, KEY, "…"),
    ({"A_HEADERS": f"X-One: {KEY}\nAuthorization: Bearer another-one"}, f"{KEY}, another-one", "…, …"),
    ({"A_KEY": KEY}, f"cut off: {KEY[:-1]}", "cut off: …"),
    ({"A_KEY": KEY}, f"cut off: {KEY[:8]}…", "cut off: …"),
    ({"A_KEY": KEY}, f"no key: {KEY[:7]}", f"no key: {KEY[:7]}"),
]


@each_row(("variables", "text", "seen"), MASKED)
def test_a_key_is_known_by_the_name_of_its_variable(variables: dict[str, str], text: str, seen: str) -> None:
    assert KeyMask.from_variables(variables)(text) == seen


@given(st.lists(st.text("ab", max_size=6)), st.sampled_from(["abab", "aaaa", "aab", "baa"]))
def test_however_it_is_cut_into_pieces_the_same_flows(pieces: list[str], value: str) -> None:
    flow = MaskingStream((value,), MASK_TEXT)
    flown = "".join([flow.add(piece) for piece in pieces] + [flow.end()])
    assert flown == remove_values("".join(pieces), (value,), MASK_TEXT)


def test_a_sink_gets_all_but_the_keys() -> None:
    kept = bytearray()

    class Kept:
        def write(self, data: bytes, /) -> None:
            kept.extend(data)

    with mask_sink(Kept(), KeyMask.from_variables(VARIABLES).raw) as sink:
        for byte in f"a {KEY} b {KEY[:5]}".encode():
            sink.write(bytes([byte]))
    assert kept.decode() == f"a … b {KEY[:5]}"


PROGRAM = """#!/usr/bin/env -S -u PYTHONPYCACHEPREFIX python3
import json, os, sys
sys.stdin.read()
key = os.environ["ANTHROPIC_API_KEY"]
def tell(**event): print(json.dumps(event), flush=True)
tell(type="system", subtype="init", model=key)
tell(type="assistant", message={"content": [
    {"type": "text", "text": "I have " + key}, {"type": "thinking", "thinking": key},
    {"type": "tool_use", "id": "1", "name": "Bash" + key, "input": {"command": "echo " + key, "path": key}}]})
tell(type="user", message={"content": [{"type": "tool_result", "tool_use_id": "1", "content": key, "is_error": False}]})
print("no login with", key, file=sys.stderr)
"""
RESULTS = {
    "an answer": 'tell(type="result", is_error=False, result="done with " + key)',
    "an error of its own": 'tell(type="result", is_error=True, result="401: " + key, api_error_status=401)',
    "a crash": "sys.exit(1)",
    "a crash by a signal": "os.kill(os.getpid(), 9)",
}


@pytest.mark.parametrize("name", RESULTS)
@pytest.mark.parametrize("role", ["executor", "researcher"])
def test_a_headless_agent_may_say_its_key_anywhere(plain: Bench, name: str, role: str) -> None:
    stage = Stage(plain)
    path = plain.work_tree / "program"
    path.write_text(PROGRAM + RESULTS[name])
    path.chmod(0o755)
    settings = ProgramSettings(set=VARIABLES)
    backend = CliBackend(InstalledProgram("cli:claude", "claude", ("./program",), PRESET, settings))
    came = backend.turn(talk(role=role), stage.site(), 60)
    assert isinstance(came, Turn) is (name == "an answer")
    seen = everything(stage, came)
    assert KEY not in seen + plain.printed() and "I have …" in seen
    assert ("done with …" if isinstance(came, Turn) else "401: …" if "own" in name else "no login with …") in seen


SPOKEN: dict[str, tuple[list[Step], str]] = {
    "in its words": ([{"say": f"I have {KEY}."}], "I have …."),
    "in pieces": ([{"spell": f"I have {KEY}. "}, {"say": KEY[:4]}], f"I have …. {KEY[:4]}"),
    "in its thoughts": ([{"think": KEY}, {"say": "x"}], "…"),
    "in a call": ([{"edit": {"path": f"{KEY}.txt", "content": "", "ask": True}}], "….txt"),
    "in an error": ([{"fail": {"code": -32603, "message": f"no: {KEY}"}}], "no: …"),
    "in a long error": ([{"fail": {"code": -32603, "message": f"401 {'x' * 1984}{KEY}"}}], "x…\nstart "),
    "when it stops": ([{"say": KEY}, {"stop": {"stopReason": "refusal"}}], "refuses to continue\n…"),
    "when it breaks down": ([{"complain": f"lost {KEY}"}, {"exit": 1}], "lost …"),
    "in what is no message": (
        [{"print_bytes": base64.b64encode(f"{'-' * 990}{KEY}\n".encode()).decode()}, {"exit": 1}],
        "-…",
    ),
}


@pytest.mark.parametrize("name", SPOKEN)
def test_an_agent_of_the_protocol_may_say_its_key_anywhere(plain: Bench, name: str) -> None:
    steps, shown = SPOKEN[name]
    stage = Stage(plain, variables=VARIABLES)
    seen = everything(stage, stage.play(*steps))
    assert shown in seen
    raw = "" if name == "in pieces" else plain.printed()  # where no piece of it is a key
    for part in (KEY, KEY[:12], KEY[-12:]):
        assert part not in seen + raw


def test_what_it_asks_for_is_done_as_it_was_asked(plain: Bench) -> None:
    """What is hidden is hidden from the record, and not from the work."""
    stage = Stage(plain, variables=VARIABLES)
    stage.turn({"write": {"path": "a.txt", "content": KEY}}, {"say": "Done."})
    assert stage.file("a.txt") == KEY


def test_a_fault_that_is_told_says_nothing_of_it(plain: Bench) -> None:
    stage = replace(Stage(plain), variables=VARIABLES)
    fault = stage.fault(FaultKind.DENIED, {"fail": {"code": -32000, "message": "401", "data": {"details": KEY}}})
    assert "401: …" in fault.why


def everything(stage: Stage, came: Turn | Fault) -> str:
    """All that goes on record or before whoever watches, but for the raw output."""
    noted = "\n".join(json.dumps(one.model_dump(mode="json"), ensure_ascii=False) for one in stage.noted)
    said = came.why if isinstance(came, Fault) else f"{came.text}\n{came.answer}\n{came.model}"
    return "\n".join((noted, said, "".join(stage.heard), *stage.doing, *stage.bench.said))

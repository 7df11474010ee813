"""A script that was written is read back to the same entries, and is one that people can read."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proofstone.agents.models import FaultKind
from proofstone.agents.rules.routes import SERVED_ROLES
from proofstone.agents.script_file import (
    MATCH_KEYS,
    SCRIPT_FAULTS,
    ScriptCall,
    ScriptEntry,
    ScriptFault,
    ScriptStep,
    read_script,
)
from proofstone.agents.script_writer import format_script
from proofstone.common.models import Usage

texts = st.text() | st.text(alphabet="ab:#-'\"{}[]|>&*!%@` \n\t\r\x85\u2028\ufeffé0159._~=<,\\")
"""Anything, and more often what YAML makes something of."""
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
calls = st.builds(ScriptCall, texts, values.filter(lambda value: value is not None))
steps = st.one_of(
    st.builds(lambda *calls: ScriptStep("tools", calls=calls), calls),
    st.builds(lambda *calls: ScriptStep("tools", calls=calls), calls, calls),
    st.builds(lambda path, text: ScriptStep("write", {"path": path, "content": text}), texts, texts),
    st.builds(lambda name, text: ScriptStep(name, {"text": text}), st.sampled_from(("say", "fail")), texts),
    st.builds(lambda seconds: ScriptStep("sleep", seconds=seconds), st.floats(0, 1e9)),
    st.builds(
        lambda *said: ScriptStep("error", breakdown=ScriptFault(*said)),
        st.sampled_from(SCRIPT_FAULTS),
        texts,
        st.none() | st.integers(0, 9),
    ),
)
usages = st.builds(
    Usage,
    requests=st.just(1),
    input_tokens=st.integers(0, 10**9),
    output_tokens=st.integers(0, 10**9),
    usd=st.none() | st.floats(0, 1e6),
)
matches = st.dictionaries(st.sampled_from(MATCH_KEYS), st.lists(texts, min_size=1, max_size=3).map(tuple), max_size=3)


@st.composite
def entries(draw: st.DrawFn) -> ScriptEntry:
    taken = tuple(draw(st.lists(steps, max_size=3)))
    edits = any(step.name == "write" for step in taken)
    answer = draw(st.sampled_from(("output", "raw", "nothing")))
    return ScriptEntry(
        role="executor" if edits else draw(st.sampled_from(SERVED_ROLES)),
        match=draw(matches),
        steps=taken,
        output=draw(values) if answer == "output" else None,
        raw=draw(texts) if answer == "raw" else None,
        usage=draw(usages),
    )


@settings(deadline=None)
@given(written=st.lists(entries(), max_size=3), comment=texts)
def test_what_is_written_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, written: list[ScriptEntry], comment: str
) -> None:
    file = tmp_path_factory.getbasetemp() / "written.yaml"
    file.write_bytes(format_script(written, comment).encode())
    assert read_script(file).entries == tuple(written)


READABLE = """\
# Recorded from a run.

- role: executor
  match: {task: task-02, attempt: [1, 2]}
  usage: {input_tokens: 900, output_tokens: 80, usd: 0.01}
  steps:
    - tool:
        read:
          path: a.py
    - tools:
        - list: {}
        - grep:
            pattern: 'def f: {'
    - write:
        path: a.py
        content: |
          def f():
              return 1
    - sleep: 0.5
    - error: {kind: crashed, why: it broke, times: 2}
    - say: |-
        one
        two
  output:
    status: success

- role: reviewer
  match: {repair: 1}
  raw: "bell \\a"
"""


def test_what_is_written_can_be_read_by_people() -> None:
    written = [
        ScriptEntry(
            "executor",
            {"task": ("task-02",), "attempt": ("1", "2")},
            (
                ScriptStep("tools", calls=(ScriptCall("read", {"path": "a.py"}),)),
                ScriptStep("tools", calls=(ScriptCall("list"), ScriptCall("grep", {"pattern": "def f: {"}))),
                ScriptStep("write", {"path": "a.py", "content": "def f():\n    return 1\n"}),
                ScriptStep("sleep", seconds=0.5),
                ScriptStep("error", breakdown=ScriptFault(FaultKind.CRASHED, "it broke", 2)),
                ScriptStep("say", {"text": "one\ntwo"}),
            ),
            output={"status": "success"},
            usage=Usage(requests=1, input_tokens=900, output_tokens=80, usd=0.01),
        ),
        ScriptEntry("reviewer", {"repair": ("1",)}, raw="bell \a"),
    ]
    assert format_script(written, "Recorded from a run.\n") == READABLE


@pytest.mark.parametrize("key", ["k" * 2000, "a\nb", "? a", "<<", ""])
def test_any_name_can_be_that_of_a_field(tmp_path: Path, key: str) -> None:
    written = (ScriptEntry("reviewer", output={key: {key: "x"}}),)
    (tmp_path / "s.yaml").write_text(format_script(written), "utf-8")
    assert read_script(tmp_path / "s.yaml").entries == written


def test_an_answer_of_a_megabyte_is_written_and_read(tmp_path: Path) -> None:
    written = (ScriptEntry("reviewer", output={"text": "0123456789abcde\n" * (1 << 16)}),)
    (tmp_path / "s.yaml").write_text(format_script(written), "utf-8")
    assert read_script(tmp_path / "s.yaml").entries == written

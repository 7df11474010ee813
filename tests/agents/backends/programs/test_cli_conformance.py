"""The conformance suite, with a program that prints what Claude Code prints."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from proofstone.agents.backends.programs.cli import CliBackend
from proofstone.agents.backends.programs.discovery import InstalledProgram
from proofstone.agents.backends.programs.known.claude import PRESET
from proofstone.agents.executors.context import ExecutionContext
from proofstone.config.user import ProgramSettings
from proofstone.sandbox.probe import SandboxFacts
from proofstone.testing.backend_conformance import (
    AnswerPlay,
    BackendConformance,
    BuildBackend,
    CallPlay,
    CrashPlay,
    HangPlay,
    Play,
    TextPlay,
)
from tests.agents.conftest import sandbox_of
from tests.agents.executors.bench import Bench

PROGRAM = """#!/usr/bin/env -S -u PYTHONPYCACHEPREFIX python3
import json, pathlib, sys, time
sys.stdin.read()
plays = json.loads(pathlib.Path("plays.json").read_text())
played = pathlib.Path("played")
number = int(played.read_text()) if played.exists() else 0
played.write_text(str(number + 1))
play = plays[number]
print(json.dumps({"type": "system", "subtype": "init", "model": "scripted"}), flush=True)
if play["kind"] == "hangs":
    time.sleep(3600)
if play["kind"] == "crashes":
    print("it broke down", file=sys.stderr)
    sys.exit(1)
print(json.dumps({"type": "result", "subtype": "success", "is_error": False, "result": play["text"]}))
"""


class TestConformance(BackendConformance):
    @pytest.fixture(
        params=("bubblewrap", *(pytest.param(one, marks=pytest.mark.sweep) for one in ("landlock", "plain")))
    )
    def bench(self, request: pytest.FixtureRequest, place: Path, facts: SandboxFacts) -> Bench:
        return Bench(place, sandbox_of(facts, request.param))

    @pytest.fixture
    def site(self, bench: Bench) -> ExecutionContext:
        return bench.site()

    @pytest.fixture
    def stage(self, bench: Bench) -> BuildBackend:
        def of(*plays: Play) -> CliBackend:
            (bench.work_tree / "plays.json").write_text(json.dumps(_played(plays)))
            program = bench.work_tree / "program"
            program.write_text(PROGRAM)
            program.chmod(0o755)
            return CliBackend(InstalledProgram("cli:claude", "claude", ("./program",), PRESET, ProgramSettings()))

        return of


def _played(plays: Sequence[Play]) -> list[dict[str, str]]:
    return [_one(play) for play in plays]


def _one(play: Play) -> dict[str, str]:
    match play:
        case AnswerPlay(answer):
            return {"kind": "says", "text": json.dumps(dict(answer), ensure_ascii=False)}
        case TextPlay(text):
            return {"kind": "says", "text": text}
        case CallPlay(name, arguments):
            return {"kind": "says", "text": json.dumps({"tool_calls": [{"name": name, "arguments": dict(arguments)}]})}
        case HangPlay():
            return {"kind": "hangs", "text": ""}
        case CrashPlay():
            return {"kind": "crashes", "text": ""}

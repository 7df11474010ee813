"""The conformance suite, with an agent that plays what it is told over the Agent Client Protocol."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from proofstone.agents.backends.programs.acp.backend import AcpBackend
from proofstone.agents.executors.context import ExecutionContext
from proofstone.sandbox.probe import SandboxFacts
from proofstone.testing.backend_conformance import (
    AnswerPlay,
    BackendConformance,
    CallPlay,
    CrashPlay,
    HangPlay,
    Play,
    TextPlay,
)
from proofstone.testing.backend_conformance import BuildBackend as Staged
from tests.agents.backends.programs.scripted_agent import Stage
from tests.agents.conftest import sandbox_of
from tests.agents.executors.bench import Bench


class TestConformance(BackendConformance):
    @pytest.fixture(
        params=("bubblewrap", *(pytest.param(one, marks=pytest.mark.sweep) for one in ("landlock", "plain")))
    )
    def bench(self, request: pytest.FixtureRequest, place: Path, facts: SandboxFacts) -> Bench:
        return Bench(place, sandbox_of(facts, request.param))

    @pytest.fixture
    def site(self, bench: Bench) -> ExecutionContext:
        return Stage(bench).site()

    @pytest.fixture
    def stage(self, bench: Bench) -> Staged:
        def of(*plays: Play) -> AcpBackend:
            return Stage(bench).scripted({"runs": [{"steps": played(play)} for play in plays]})

        return of


def played(play: Play) -> list[dict[str, Any]]:
    match play:
        case AnswerPlay(answer):
            return [{"say": json.dumps(dict(answer), ensure_ascii=False)}]
        case TextPlay(text):
            return [{"spell": text}]
        case CallPlay(name, arguments):
            return [{"say": json.dumps({"tool_calls": [{"name": name, "arguments": dict(arguments)}]})}]
        case HangPlay():
            return [{"sleep": True}]
        case CrashPlay():
            return [{"complain": "it broke down"}, {"exit": 1}]

"""The `api:` backend does what every backend must, on every wire, streaming and not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from proofstone.agents.backends import Backend
from proofstone.agents.executors.context import ExecutionContext
from proofstone.agents.models import FaultKind
from proofstone.config.providers import ModelSettings, ProviderProtocol
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
from proofstone.testing.model_server.answers import Answer, Disconnect, Hang, Reply
from proofstone.testing.model_server.server import ModelServer
from tests.agents.backends.api_world import WIRES, backend, site_in


def _answer(play: Play) -> Answer:
    match play:
        case AnswerPlay(answer):
            return Reply(calls=(("answer", answer),))
        case TextPlay(text):
            return Reply(text=text)
        case CallPlay(name, arguments):
            return Reply(calls=((name, arguments),))
        case HangPlay():
            return Hang()
        case CrashPlay():
            return Disconnect()


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "stream", [pytest.param(True, id="streamed"), pytest.param(False, id="whole", marks=pytest.mark.sweep)]
)
@pytest.mark.parametrize("wire", WIRES)
class TestApiBackend(BackendConformance):
    crash_kinds = frozenset((FaultKind.UNAVAILABLE,))

    @pytest.fixture
    def site(self, tmp_path: Path) -> ExecutionContext:
        (tmp_path / "work").mkdir()
        return site_in(tmp_path / "work")

    @pytest.fixture
    def stage(self, wire: ProviderProtocol, stream: bool) -> Iterator[BuildBackend]:
        servers: list[ModelServer] = []

        def staged(*plays: Play) -> Backend:
            servers.append(ModelServer([_answer(play) for play in plays]).__enter__())
            return backend(servers[-1], wire, ModelSettings(stream=stream, max_output_tokens=4096))

        yield staged
        for server in servers:
            server.__exit__(None, None, None)

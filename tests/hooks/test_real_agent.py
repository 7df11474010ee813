"""A real agent, with the hook that is exported for it: what Proofstone finds reaches the model."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from proofstone.testing.model_server.answers import Reply, WireProtocol
from proofstone.testing.model_server.server import ModelServer
from tests.agents.backends.programs.real.desk import installed
from tests.hooks.place import Place

pytestmark = [pytest.mark.registry, pytest.mark.agents]


@pytest.fixture
def claude(pytestconfig: pytest.Config) -> str:
    return str(installed("claude", pytestconfig))


def test_claude_is_sent_back_three_times_with_what_is_wrong_and_then_may_stop(
    place: Place, claude: str, tmp_path: Path
) -> None:
    assert place.proofstone("export", "hooks", "claude").returncode == 0
    place.commit("hooks")
    place.write(a="<<<<<<< ours\nx\n=======\ny\n>>>>>>> theirs\n")
    with ModelServer(lambda _: Reply(text="It is done.")) as server:
        told = {
            "ANTHROPIC_BASE_URL": server.base_url(WireProtocol.ANTHROPIC),
            "ANTHROPIC_API_KEY": "no-real-key-0123456789",
            "ANTHROPIC_MODEL": "scripted",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "CLAUDE_CONFIG_DIR": str(tmp_path / "claude"),
        }
        done = subprocess.run(
            [claude, "-p", "Say that it is done.", "--output-format", "stream-json", "--verbose"],
            cwd=place.root,
            env={**place.workshop.environment, **told},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=180,
        )
        asked = list(server.asked)
    assert done.returncode == 0, done.stderr
    heard = [any("a.md:1" in text for _, text in one.messages) for one in asked]
    assert heard == [False, True, True, True]
    assert "now lets it stop" in done.stdout
    (record,) = (place.workshop.proofstone_home / "agent-sessions").iterdir()
    session = json.loads(record.read_text())
    assert (session["commit"], session["start"]) == (place.head, True)

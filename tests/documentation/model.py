"""The model behind the manual's `api:` examples: it says over HTTP what the first tutorial's script says."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from ruamel.yaml import YAML

from proofstone.testing.model_server.answers import Answer, ReceivedRequest, Reply, WireProtocol
from proofstone.testing.model_server.server import ModelServer
from tests.documentation.page import DOCS, File, deeds

_WIRES = {"openai": WireProtocol.OPENAI_RESPONSES, "anthropic": WireProtocol.ANTHROPIC}
_SCRIPT = DOCS / "tutorials" / "first-run.md"
_ROLE = re.compile(r"You are (?:the|a) (\w+)")


@contextmanager
def providers() -> Iterator[tuple[str, Mapping[str, str]]]:
    """The own file and the keys of somebody whose providers are all this one, here."""
    with ModelServer(_played(_team())) as server:
        own = "".join(
            f'[providers.{name}]\nwire = "{wire}"\nurl = "{server.base_url(wire)}"\n'
            f'key_variable = "{name.upper()}_API_KEY"\n\n'
            for name, wire in _WIRES.items()
        )
        yield own, {f"{name.upper()}_API_KEY": "a-key" for name in _WIRES}


def _team() -> Mapping[str, Mapping[str, Any]]:
    """The last entry of each role: those of the second attempt are honest."""
    [script] = (one.text for one in deeds(_SCRIPT) if isinstance(one, File) and one.path.endswith("team.yaml"))
    return {entry["role"]: entry for entry in YAML(typ="safe").load(script)}


def _played(team: Mapping[str, Mapping[str, Any]]) -> Callable[[ReceivedRequest], Answer]:
    def answer(asked: ReceivedRequest) -> Answer:
        role = _ROLE.match(asked.system)
        assert role is not None, asked.system[:100]
        entry = team[role[1]]
        calls = [next(iter(step["tool"].items())) for step in entry.get("steps", ()) if "tool" in step]
        said = sum(who == "assistant" for who, _ in asked.messages)
        return Reply(calls=([*calls, ("answer", entry["output"])][said],), input_tokens=2400, output_tokens=180)

    return answer

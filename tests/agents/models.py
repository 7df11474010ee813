"""A model that works at the gate: played by the local model server, met over real HTTP by the real program."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from proofstone.testing.model_server.answers import Answer, ReceivedRequest, Reply, WireProtocol
from proofstone.testing.model_server.server import ModelServer
from tests.gate.stage import Stage
from tests.staging import FILES, plan, task

MODULE = "def one():\n    return 1\n"
TEST = (
    "import unittest\n\nfrom shop.one import one\n\n\nclass T(unittest.TestCase):\n"
    "    def test_it(self):\n        self.assertEqual(one(), 1)\n"
)
PLAN = plan(task("One"))


def calls(name: str, **arguments: object) -> Reply:
    return Reply(calls=((name, arguments),))


def answers(**answer: object) -> Reply:
    return calls("answer", **answer)


WRITES = (
    calls("read", path="shop/cart.py"),
    calls("write", path="shop/one.py", content=MODULE),
    calls("write", path="tests/test_one.py", content=TEST),
    calls("run", command="python3 -m unittest tests.test_one"),
    answers(status="success", evidence="the test passes"),
)
"""An honest executor's turns."""
APPROVES = (
    calls("git_diff"),
    answers(verdict="APPROVED", confidence="HIGH", findings=["one() returns 1, and a test says so"]),
)


@dataclass
class Model:
    """Answers by the name of the model that is asked for: `executor` or `architect`."""

    turns: Mapping[str, Sequence[Answer]]
    asked: dict[str, list[ReceivedRequest]] = field(default_factory=dict)

    def answer(self, asked: ReceivedRequest) -> Answer:
        before = self.asked.setdefault(asked.model, [])
        before.append(asked)
        # By what the conversation holds already, so that a turn that is asked for again is given again.
        said = sum(role == "assistant" for role, _ in asked.messages)
        return self.turns[asked.model][said]

    def count(self, name: str) -> int:
        return len(self.asked.get(name, ()))


@dataclass
class Desk:
    """A project, a model, and the person's own settings that lead to it."""

    stage: Stage
    model: Model
    env: Mapping[str, str]

    def gate(self, *args: str, **env: str) -> tuple[int, dict[str, object], str]:
        return self._run("gate", "PLAN.md", *args, **env)

    def resume(self, *args: str, **env: str) -> tuple[int, dict[str, object], str]:
        return self._run("resume", "last", *args, **env)

    def _run(self, *args: str, **env: str) -> tuple[int, dict[str, object], str]:
        done = self.stage.workshop.proofstone(self.stage.root, *args, "--json", "--quiet", env={**self.env, **env})
        return done.returncode, json.loads(done.stdout) if done.stdout else {}, done.stderr


@contextmanager
def desk(
    folder: Path,
    wire: WireProtocol = WireProtocol.OPENAI_CHAT,
    *,
    more: str = "",
    executor: Sequence[Answer] = WRITES,
    architect: Sequence[Answer] = APPROVES,
    text: str = PLAN,
    files: Mapping[str, str | bytes] = FILES,
    settings: str = "",
) -> Iterator[Desk]:
    model = Model({"executor": executor, "architect": architect})
    folder.mkdir(exist_ok=True)
    stage = Stage.set_up(folder, text, files, settings)
    with ModelServer(model.answer) as server:
        config = folder / "proofstone.toml"
        config.write_text(
            f"""[providers.local]
wire = "{wire}"
url = "{server.base_url(wire)}"
key_variable = "LOCAL_KEY"
[models."local:*"]
input_usd = 1000.0
output_usd = 2000.0
[backends]
executor = "api:local:executor"
architect = "api:local:architect"
{more}"""
        )
        yield Desk(stage, model, {"PROOFSTONE_CONFIG": str(config), "LOCAL_KEY": "secret-key"})

"""A project, a plan, a model that is played, and a real program between them."""

from __future__ import annotations

import fcntl
import json
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from proofstone.ledger.connection import ledger_path
from proofstone.ledger.models import MessageRow
from proofstone.ledger.sqlite import SqliteLedger
from proofstone.testing.model_server.answers import Answer, ReceivedRequest, Reply, WireProtocol
from proofstone.testing.model_server.server import ModelServer
from tests.agents.models import MODULE, TEST
from tests.gate.stage import GateResult, Stage
from tests.needs import unavailable
from tests.staging import FILES, plan, task

PLAN = plan(task("One"))
WIRES: Mapping[str, WireProtocol] = {
    "claude": WireProtocol.ANTHROPIC,
    "codex": WireProtocol.OPENAI_RESPONSES,
    "gemini": WireProtocol.GOOGLE,
    "goose": WireProtocol.OPENAI_CHAT,
    "opencode": WireProtocol.OPENAI_CHAT,
    "qwen": WireProtocol.OPENAI_CHAT,
}


def write_call(name: str, path: str, content: str, root: Path) -> tuple[str, Mapping[str, object]]:
    """The call by which each program writes a file."""
    at = str(root / path)
    match name:
        case "claude":
            return "Write", {"file_path": at, "content": content}
        case "codex" if content:
            return "exec_command", {"cmd": f"cat > {path} <<'END'\n{content}END"}
        case "codex":
            return "exec_command", {"cmd": f"rm {path}"}
        case "gemini" | "qwen":
            return "write_file", {"file_path": at, "content": content}
        case "goose":
            return "write", {"path": at, "content": content}
        case _:
            return "write", {"filePath": at, "content": content}


@dataclass
class Player:
    """The model behind the program: it says one thing after the other, by what the conversation holds already."""

    program: str
    root: Path
    script: Sequence[tuple[str, str] | str]
    """Files to be written, as (path, content), and words."""
    retry: Sequence[tuple[str, str] | str] = ()
    """From the second attempt on; else the same again."""
    asked: list[ReceivedRequest] = field(default_factory=list)

    def answer(self, asked: ReceivedRequest) -> Answer:
        self.asked.append(asked)
        if not asked.tools:  # a title for the session, and the like
            return Reply(text="A title")
        again = any("This is attempt " in text for _, text in asked.messages)
        script = self.retry if again and self.retry else self.script
        roles = [role for role, _ in asked.messages]
        prompt = max(at for at, (_, text) in enumerate(asked.messages) if "You are the executor" in text)
        said = roles[prompt:].count("assistant")
        step = script[min(said, len(script) - 1)]
        if isinstance(step, str):
            return Reply(text=step)
        return Reply(calls=(write_call(self.program, *step, self.root),))

    def heard(self) -> str:
        """Everything that the model was ever told."""
        return "\n".join(text for asked in self.asked for _, text in asked.messages)


@dataclass(frozen=True)
class Desk:
    stage: Stage
    player: Player
    env: Mapping[str, str]
    home: Path

    def gate(self, spec: str, *args: str) -> GateResult:
        return self.stage.gate(spec, *args, env=self.env)

    def activities(self, kind: str) -> list[dict[str, Any]]:
        """What the program was seen doing, as the bus has it."""
        with SqliteLedger(ledger_path(self.home), "read") as ledger:
            rows = [stored.row for stored in ledger.read(MessageRow)]
        found: list[Any] = [row.payload["activity"] for row in rows if row.type == "Activity"]
        return [one for one in found if one["kind"] == kind]


HONEST = (("shop/one.py", MODULE), ("tests/test_one.py", TEST), "Done: one() is there, with a test.")
STRAY = ("shop/stray.py", "stray = 1\n")


@contextmanager
def desk(
    folder: Path,
    name: str,
    program: Path,
    script: Sequence[tuple[str, str] | str],
    retry: Sequence[tuple[str, str] | str] = (),
    answer: Callable[[ReceivedRequest], Answer] | None = None,
    settings: str = "",
    mark: str = "",
) -> Iterator[Desk]:
    stage = Stage.set_up(folder, PLAN, FILES, settings)
    player = Player(name, stage.root, script, retry)
    with ModelServer(answer or player.answer) as server:
        config = folder / "person.toml"
        config.write_text(person(name, program, server, mark))
        yield Desk(stage, player, {"PROOFSTONE_CONFIG": str(config)}, stage.workshop.proofstone_home)


def person(name: str, program: Path, server: ModelServer, mark: str = "") -> str:
    """The settings of somebody who has the program, and whose models are all on the server."""
    url = server.base_url(WIRES[name])
    key = "a-key-that-is-long-enough-to-be-one"
    variables = {
        "claude": {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": key, "ANTHROPIC_MODEL": "played"},
        "codex": {"CODEX_API_KEY": key, "OPENAI_API_KEY": key, "OPENAI_BASE_URL": url},
        "gemini": {"GEMINI_API_KEY": key, "GOOGLE_GEMINI_BASE_URL": url},
        "goose": {
            "GOOSE_PROVIDER": "openai",
            "GOOSE_MODEL": "played",
            "OPENAI_HOST": server.url,
            "OPENAI_API_KEY": key,
        },
        "qwen": {"OPENAI_API_KEY": key, "OPENAI_BASE_URL": url, "OPENAI_MODEL": "played"},
        "opencode": {"OPENAI_API_KEY": key, "OPENAI_BASE_URL": url},
    }[name]
    model = {"gemini": "gemini-2.5-flash", "codex": "played", "opencode": "openai/played"}.get(name, "")
    marked = variables | {"PROOFSTONE_TEST_MARK": mark}
    given = ", ".join(f"{variable} = {json.dumps(value)}" for variable, value in marked.items())
    return f"[programs.{name}]\npath = {json.dumps(str(program))}\nmodel = {json.dumps(model)}\nset = {{ {given} }}\n"


@dataclass(frozen=True)
class Package:
    name: str
    version: str
    program: str
    """Below its `node_modules`."""


PACKAGES = {
    "claude": Package("@anthropic-ai/claude-code", "2.1.325", ".bin/claude"),
    "codex": Package("@openai/codex", "0.166.0", ".bin/codex"),
    "gemini": Package("@google/gemini-cli", "0.61.0", ".bin/gemini"),
    "goose": Package("@aaif/goose-binary-linux-x64", "1.52.0", ".bin/goose-binary-linux-x64"),
    "opencode": Package("opencode-linux-x64", "1.18.34", "opencode-linux-x64/bin/opencode"),
    "qwen": Package("@qwen-code/qwen-code", "0.15.10", ".bin/qwen"),
}


def installed(name: str, config: pytest.Config) -> Path:
    """The program. Tests of several processes wait for the first of them."""
    package = PACKAGES[name]
    if shutil.which("npm") is None or config.cache is None:
        unavailable("npm is not installed, or pytest keeps no cache to install to")
    cache = config.cache.mkdir("programs")
    place = cache / f"{name}-{package.version}"
    program = place / "node_modules" / package.program
    with (cache / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (place / "complete").exists():
            _install(package, place)
    return program


def _install(package: Package, place: Path) -> None:
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    what = f"{package.name}@{package.version}"
    done = subprocess.run(
        ["npm", "install", "--prefix", str(place), "--no-audit", "--no-fund", "--no-progress", what],
        cwd=place,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    if done.returncode:
        unavailable(f"{what} cannot be installed: {done.stderr.strip()[-300:]}")
    (place / "complete").touch()

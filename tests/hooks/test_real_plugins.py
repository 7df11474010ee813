"""The plugin packages in the real programs: an agent that weakens a test is sent back, mends it, and stops."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from proofstone.hooks.plugins import build_marketplace_files
from proofstone.testing.model_server.answers import Answer, ReceivedRequest, Reply
from proofstone.testing.model_server.server import ModelServer
from tests.agents.backends.programs.real.desk import WIRES, installed, write_call
from tests.needs import needs
from tests.workshop import Workshop

pytestmark = [pytest.mark.registry, pytest.mark.agents, needs("git", "bwrap")]

CODE = "def total(prices):\n    return sum(prices)\n"
TEST = """import unittest

from shop import total


class TotalTest(unittest.TestCase):
    def test_prices_are_added_up(self):
        self.assertEqual(total([120, 340]), 460)
"""
KEY = "a-key-that-is-long-enough-to-be-one"


@dataclass
class Liar:
    """A model that makes the test agree with wrong code, and mends both when it is told what was found."""

    program: str
    root: Path
    asked: list[ReceivedRequest] = field(default_factory=list)

    def answer(self, asked: ReceivedRequest) -> Answer:
        self.asked.append(asked)
        if not asked.tools:  # a title for the session, and the like
            return Reply(text="A title")
        position = max(at for at, (role, text) in enumerate(asked.messages) if role == "user" and self._is_turn(text))
        said = [role for role, _ in asked.messages][position:].count("assistant")
        is_sent_back = "edited-expectation" in asked.messages[position][1]
        code = CODE if is_sent_back else CODE.replace("sum(prices)", "sum(prices) + 1")
        test = TEST if is_sent_back else TEST.replace("460", "461")
        steps = (("shop.py", code), ("test_shop.py", test))
        if said < len(steps):
            return Reply(calls=(write_call(self.program, *steps[said], self.root),))
        return Reply(text="It is done.")

    @staticmethod
    def _is_turn(text: str) -> bool:
        return "Make the sum right" in text or "edited-expectation" in text


def run_claude(program: Path, package: Path, root: Path, env: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    words = [
        str(program),
        "--plugin-dir",
        str(package),
        "-p",
        "Make the sum right.",
        "--permission-mode",
        "acceptEdits",
    ]
    return run([*words, "--output-format", "stream-json", "--verbose", "--max-turns", "20"], root, env)


def run_gemini(program: Path, package: Path, root: Path, env: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    settings = Path(env["HOME"]) / ".gemini/settings.json"
    settings.parent.mkdir()
    settings.write_text(json.dumps({"security": {"auth": {"selectedType": "gemini-api-key"}}}))
    done = run([str(program), "extensions", "install", str(package), "--consent"], root, env, said="y\n")
    assert done.returncode == 0, done.stdout + done.stderr
    words = [str(program), "--skip-trust", "-m", "gemini-2.5-flash", "--approval-mode", "auto_edit"]
    return run([*words, "-o", "stream-json", "-p", "Make the sum right."], root, env)


def run(words: list[str], root: Path, env: Mapping[str, str], said: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, cwd=root, env=dict(env), input=said, capture_output=True, text=True, timeout=180)


def run_codex(program: Path, package: Path, root: Path, env: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Codex takes plugins from marketplaces only. Its own question of trust in hooks is answered by an option."""
    shop = package.parent / "marketplace"
    (shop / "plugins").mkdir(parents=True)
    for name, text in build_marketplace_files().items():
        (shop / name).parent.mkdir(exist_ok=True, parents=True)
        (shop / name).write_text(text)
    package.rename(shop / "plugins/codex")
    for arguments in (("marketplace", "add", str(shop)), ("add", "proofstone@proofstone")):
        done = run([str(program), "plugin", *arguments], root, env)
        assert done.returncode == 0, done.stdout + done.stderr
    provider = f'{{name="loop",base_url="{env["OPENAI_BASE_URL"]}",env_key="OPENAI_API_KEY",wire_api="responses"}}'
    words = [str(program), "exec", "--json", "--skip-git-repo-check", "--dangerously-bypass-hook-trust"]
    words += ["-s", "workspace-write", "-C", str(root), "-m", "played", "-c", "model_provider=loop"]
    return run([*words, "-c", f"model_providers.loop={provider}", "Make the sum right."], root, env)


RUNS = {"claude": run_claude, "gemini": run_gemini, "codex": run_codex}


@pytest.mark.parametrize("name", RUNS)
def test_an_agent_that_weakens_a_test_is_sent_back_and_mends_it(
    name: str, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    program = installed(name, pytestconfig)
    workshop = Workshop.apart(tmp_path)
    root = workshop.repo({"shop.py": CODE, "test_shop.py": TEST})
    package = tmp_path / "package"
    assert workshop.proofstone(root, "export", "plugin", name, str(package)).returncode == 0
    model = Liar(name, root)
    with ModelServer(model.answer) as server:
        url = server.base_url(WIRES[name])
        variables = {
            "claude": {
                "ANTHROPIC_BASE_URL": url,
                "ANTHROPIC_API_KEY": KEY,
                "ANTHROPIC_MODEL": "played",
                "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
                "CLAUDE_CONFIG_DIR": str(tmp_path / "claude"),
            },
            "gemini": {"GEMINI_API_KEY": KEY, "GOOGLE_GEMINI_BASE_URL": url},
            "codex": {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": url},
        }[name]
        done = RUNS[name](program, package, root, {**workshop.environment, **variables})
    assert done.returncode == 0, done.stdout + done.stderr
    heard = [
        any("edited-expectation" in text and "test_shop.py" in text for _, text in asked.messages)
        for asked in model.asked
        if asked.tools
    ]
    assert heard[0] is False and heard[-1] is True, done.stdout
    assert (root / "shop.py").read_text() == CODE and (root / "test_shop.py").read_text() == TEST
    assert workshop.git(root, "status", "--porcelain") == ""

"""`proofstone ask --explain` shows what an agent would be sent, and asks nobody."""

from __future__ import annotations

import json
from pathlib import Path

from proofstone.agents.roles.registry import ROLES
from proofstone.testing.model_server.answers import Reply
from proofstone.testing.model_server.server import ModelServer
from tests.workshop import Workshop

REQUEST = '{"intent": "make add right"}'


def test_each_part_is_shown_with_its_tokens_as_it_is_then_sent(tmp_path: Path) -> None:
    workshop = Workshop.apart(tmp_path)
    root = workshop.repo({"shop.py": "x = 1\n"})
    with ModelServer([Reply(text=REQUEST)]) as server:
        config = tmp_path / "mine.toml"
        config.write_text(
            f'[providers.mine]\nwire = "openai-chat"\nurl = "{server.url}/v1"\n[models."mine:*"]\nanswer = "schema"\n'
        )
        env = {"PROOFSTONE_CONFIG": str(config)}
        asked = ("ask", "perceiver", "make add right", "--backend", "api:mine:m")
        shown = workshop.proofstone(root, *asked, "--explain", "--json", env=env)
        assert shown.returncode == 0, shown.stderr
        assert server.asked == [], "nobody is asked"
        assert workshop.proofstone(root, *asked, "--json", env=env).returncode == 0
        (sent,) = server.asked
    explained = json.loads(shown.stdout)
    parts = {part["name"]: part for part in explained["parts"]}
    assert (explained["role"], explained["backend"]) == ("perceiver", "api:mine:m")
    texts = [part["text"] for part in explained["parts"] if part["name"] == "instructions"]
    assert texts[0] == ROLES["perceiver"].instructions and all(text.strip() in sent.system for text in texts)
    assert parts["request"]["text"].strip() == sent.messages[0][1].strip()
    schema = parts["the schema that the server holds the answer to"]["text"]
    assert json.loads(schema)["required"] == ["completion", "intent"]
    assert explained["tokens"] == sum(part["tokens"] for part in explained["parts"])
    page = workshop.proofstone(root, *asked, "--explain", env=env).stdout
    assert "--- request: about " in page and f"about {explained['tokens']} tokens for perceiver (api:mine:m)" in page


def test_without_a_backend_it_is_the_text_for_a_program(tmp_path: Path) -> None:
    workshop = Workshop.apart(tmp_path)
    root = workshop.repo({"shop.py": "x = 1\n"})
    done = workshop.proofstone(root, "ask", "perceiver", "make it faster", "--explain")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("--- prompt: about ") and "no backend is configured" in done.stdout
    assert "make it faster" in done.stdout


def test_a_profile_changes_what_is_sent(tmp_path: Path) -> None:
    workshop = Workshop.apart(tmp_path)
    root = workshop.repo({"shop.py": "x = 1\n"})
    config = tmp_path / "mine.toml"
    config.write_text('[providers.mine]\nwire = "openai-chat"\nurl = "http://127.0.0.1:1/v1"\n')
    asked = ("ask", "planner", "make it faster", "--backend", "api:mine:m", "--explain")

    def names(*more: str) -> tuple[list[str], int]:
        done = workshop.proofstone(root, *asked, "--json", *more, env={"PROOFSTONE_CONFIG": str(config)})
        assert done.returncode == 0, done.stderr
        explained = json.loads(done.stdout)
        return [part["name"] for part in explained["parts"]], explained["tokens"]

    (standard, most), (small, fewest) = names(), names("--profile", "small")
    assert "8 tools" in standard and "4 tools" in small and fewest < most
    config.write_text(f'{config.read_text()}[profile]\nmodels = "small"\n')
    assert names() == (small, fewest)
    assert names("--profile", "frontier") == (standard, most)
    wrong = workshop.proofstone(root, *asked, "--profile", "huge")
    assert wrong.returncode == 2

"""`assay ask` and `assay record` as a person meets them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.workshop import Workshop

SCRIPT = """
- role: researcher
  match: {focus: architecture}
  steps:
    - say: let me look
    - tool: {read: {path: shop.py}}
    - tools: [{read: {path: .env}}, {write: {path: shop.py, content: x}}, {git_log: {}}]
  output:
    completion: {status: DONE, summary: found it}
    focus: architecture
    summary: one module
    findings:
      - {id: f1, title: a shop, detail: it sells, evidence: ["shop.py:1"], relevance: high}
    source_files_examined: [shop.py]
- role: researcher
  match: {focus: impact}
  raw: I have no idea
- role: researcher
  match: {focus: patterns}
  usage: {input_tokens: 900, output_tokens: 200}
  steps:
    - tool: {list: {}}
    - tool: {read: {path: shop.py}}
- role: architect
  output: {verdict: APPROVED}
"""


@pytest.fixture
def shop(tmp_path: Path) -> tuple[Workshop, Path]:
    workshop = Workshop.apart(tmp_path)
    root = workshop.repo({"shop.py": "def sell():\n    return 1\n", "s.yaml": SCRIPT})
    (root / ".env").write_text("KEY=1\n")
    return workshop, root


def test_an_agent_answers_in_its_schema_and_every_word_is_on_record(shop: tuple[Workshop, Path]) -> None:
    workshop, root = shop
    done = workshop.assay(
        root, "ask", "researcher:architecture", "what is there?", "--backend", "script:s.yaml", "--json"
    )
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["output"]["summary"] == "one module" and answer["fault"] is None
    assert (answer["turns"], answer["tool_calls"], answer["refusals"]) == (3, 4, 2)
    assert "let me look" in done.stderr and "let me look" not in done.stdout
    assert (root / "shop.py").read_text() == "def sell():\n    return 1\n"
    audit = workshop.assay(root, "audit", "last", "--json")
    assert audit.returncode == 1
    assert [one["rule"] for one in json.loads(audit.stdout)["boundary_violations"]] == ["secret", "unlisted"]


def test_what_was_recorded_says_it_again(shop: tuple[Workshop, Path]) -> None:
    workshop, root = shop
    ask = ("ask", "researcher:architecture", "what is there?", "--json", "--backend")
    first = workshop.assay(root, *ask, "script:s.yaml")
    into = root.parent / "again.yaml"
    assert workshop.assay(root, "record", "last", "-o", str(into)).returncode == 0
    again = workshop.assay(root, *ask, f"script:{into}")
    one, other = json.loads(first.stdout), json.loads(again.stdout)
    for same in ("output", "turns", "tool_calls", "refusals", "repairs", "cost"):
        assert {**one, "cost": 0}[same] == {**other, "cost": 0}[same]
    refused = workshop.assay(root, "record", "last", "-o", str(into))
    assert refused.returncode == 2 and "--force" in refused.stderr
    assert workshop.assay(root, "record", "last", "-o", str(into), "--force", "--json").returncode == 0


def test_an_answer_that_is_none_and_a_spent_budget_have_exit_codes_of_their_own(shop: tuple[Workshop, Path]) -> None:
    workshop, root = shop
    none = workshop.assay(root, "ask", "researcher:impact", "?", "--backend", "script:s.yaml", "--json")
    assert none.returncode == 1 and json.loads(none.stdout)["fault"]["kind"] == "malformed"
    spent = workshop.assay(
        root, "ask", "researcher:patterns", "?", "--backend", "script:s.yaml", "--budget-tokens", "1000", "--json"
    )
    assert spent.returncode == 4 and "1,000 tokens" in json.loads(spent.stdout)["fault"]["why"]


WRONG = {
    "a role that there is not": (("tester", "x"), "there is no such role"),
    "an executor": (("executor", "x"), "works at the gate"),
    "nobody to serve it": (("planner", "{}"), "planner"),
    "no focus": (("researcher", "x", "--backend", "script:s.yaml"), "focus"),
    "a focus that there is not": (("researcher:colour", "x", "--backend", "script:s.yaml"), "focus"),
    "a script that there is not": (("researcher:impact", "x", "--backend", "script:none.yaml"), "none.yaml"),
    "a file that there is not": (("researcher:impact", "@none.yaml", "--backend", "script:s.yaml"), "none.yaml"),
    "fields that there are not": (("architect", "{colour: red}", "--backend", "script:s.yaml"), "colour"),
    "a budget that is none": (("researcher:impact", "x", "--backend", "script:s.yaml", "--budget", "usd"), "usd"),
    "a provider that there is not": (("researcher:impact", "x", "--backend", "api:nobody:x"), "no provider `nobody`"),
}


@pytest.mark.parametrize("args,words", WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_said_and_nothing_begins(
    shop: tuple[Workshop, Path], args: tuple[str, ...], words: str
) -> None:
    workshop, root = shop
    done = workshop.assay(root, "ask", *args)
    assert done.returncode == 2 and words in done.stderr and "hint:" in done.stderr, done.stderr
    assert workshop.assay(root, "audit", "last").returncode == 2, "no run was begun"


def test_there_is_nothing_to_record_in_a_run_without_agents(shop: tuple[Workshop, Path]) -> None:
    workshop, root = shop
    (root / "shop.py").write_text("def sell():\n    return 2\n")
    workshop.assay(root, "check")
    done = workshop.assay(root, "record", "last")
    assert done.returncode == 2 and "nobody has done or said anything" in done.stderr

"""`proofstone ask` and `proofstone record` as a person meets them."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from proofstone.testing.model_server.answers import Answer, Hang, HttpError, Reply
from proofstone.testing.model_server.server import ModelServer
from tests.waiting import PATIENCE
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
- role: challenger
  steps:
    - tools: [{read: {path: shop.py}}, {web_search: {query: prices, reason: API_BEHAVIOR}}]
  output:
    completion: {status: DONE, summary: one}
    challenges:
      - claim: The plan assumes that sell takes a price (line 1)
        concern: it takes nothing
        failure_scenario: the call fails at once
        alternative: change sell first
        severity: BLOCKING
        confidence: HIGH
        evidence: [{kind: text, path: shop.py, text: "def sell():"}]
"""


@pytest.fixture
def shop(tmp_path: Path) -> tuple[Workshop, Path]:
    workshop = Workshop.apart(tmp_path)
    root = workshop.repo({"shop.py": "def sell():\n    return 1\n", "s.yaml": SCRIPT})
    (root / ".env").write_text("KEY=1\n")
    return workshop, root


def test_an_agent_answers_in_its_schema_and_every_word_is_on_record(shop: tuple[Workshop, Path]) -> None:
    workshop, root = shop
    done = workshop.proofstone(
        root, "ask", "researcher:architecture", "what is there?", "--backend", "script:s.yaml", "--json"
    )
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["output"]["summary"] == "one module" and answer["fault"] is None
    assert (answer["turns"], answer["tool_calls"], answer["refusals"]) == (3, 4, 2)
    assert "let me look" in done.stderr and "let me look" not in done.stdout
    assert (root / "shop.py").read_text() == "def sell():\n    return 1\n"
    audit = workshop.proofstone(root, "audit", "last", "--json")
    assert audit.returncode == 1
    assert [one["rule"] for one in json.loads(audit.stdout)["boundary_violations"]] == ["secret", "unlisted"]


def test_what_was_recorded_says_it_again(shop: tuple[Workshop, Path]) -> None:
    workshop, root = shop
    ask = ("ask", "researcher:architecture", "what is there?", "--json", "--backend")
    first = workshop.proofstone(root, *ask, "script:s.yaml")
    into = root.parent / "again.yaml"
    assert workshop.proofstone(root, "record", "last", "-o", str(into)).returncode == 0
    again = workshop.proofstone(root, *ask, f"script:{into}")
    one, other = json.loads(first.stdout), json.loads(again.stdout)
    for same in ("output", "turns", "tool_calls", "refusals", "repairs", "cost"):
        assert {**one, "cost": 0}[same] == {**other, "cost": 0}[same]
    refused = workshop.proofstone(root, "record", "last", "-o", str(into))
    assert refused.returncode == 2 and "--force" in refused.stderr
    assert workshop.proofstone(root, "record", "last", "-o", str(into), "--force", "--json").returncode == 0


def test_an_answer_that_is_none_and_a_spent_budget_have_exit_codes_of_their_own(shop: tuple[Workshop, Path]) -> None:
    workshop, root = shop
    none = workshop.proofstone(root, "ask", "researcher:impact", "?", "--backend", "script:s.yaml", "--json")
    assert none.returncode == 1 and json.loads(none.stdout)["fault"]["kind"] == "malformed"
    spent = workshop.proofstone(
        root, "ask", "researcher:patterns", "?", "--backend", "script:s.yaml", "--budget-tokens", "1000", "--json"
    )
    assert spent.returncode == 4 and "1,000 tokens" in json.loads(spent.stdout)["fault"]["why"]


def test_stdout_has_the_answer_alone_and_stderr_what_happened(shop: tuple[Workshop, Path]) -> None:
    workshop, root = shop
    asked = ("ask", "researcher:architecture", "what is there?", "--backend", "script:s.yaml")
    done = workshop.proofstone(root, *asked)
    assert json.loads(done.stdout)["summary"] == "one module"
    said = done.stderr.splitlines()
    assert said[0] == "let me look" and said[1].startswith("▸ read") and "shop.py" in said[1]
    assert any(line.startswith("✗ write") for line in said), "a refusal is marked"
    assert said[-1].startswith("run ") and "3 turns, 4 tool calls, 2 refused" in said[-1]
    assert "" not in said
    quiet = workshop.proofstone(root, *asked, "-q")
    assert (quiet.stdout, quiet.stderr) == (done.stdout, "")


def test_an_answer_stays_json_whatever_is_in_it(tmp_path: Path) -> None:
    workshop = Workshop.apart(tmp_path)
    strange = "\x1b[2J \x9b \u202e \U000e0001 é"
    answer = {"completion": {"status": "DONE", "summary": "x"}, "focus": "impact", "summary": strange}
    said = json.dumps({**answer, "findings": [], "source_files_examined": []})
    script = [{"role": "researcher", "raw": said}]
    root = workshop.repo({"s.yaml": json.dumps(script)})
    done = workshop.proofstone(root, "ask", "researcher:impact", "?", "--backend", "script:s.yaml", "-q")
    assert json.loads(done.stdout)["summary"] == strange
    assert "é" in done.stdout and not {"\x1b", "\x9b", "\u202e", "\U000e0001"} & set(done.stdout)


def test_a_fault_is_said_on_stderr_even_if_it_is_to_be_quiet_and_that_it_was_asked_twice(
    shop: tuple[Workshop, Path],
) -> None:
    workshop, root = shop
    asked = ("ask", "researcher:impact", "?", "--backend", "script:s.yaml")
    done = workshop.proofstone(root, *asked)
    assert (done.returncode, done.stdout) == (1, "")
    assert "MALFORMED  " in done.stderr and "asked twice" in done.stderr
    assert "does not match the schema; asked again (1)" in done.stderr, "a repair is visible"
    quiet = workshop.proofstone(root, *asked, "-q")
    assert quiet.stderr.startswith("MALFORMED  ") and "run " not in quiet.stderr
    assert json.loads(workshop.proofstone(root, *asked, "--json").stdout)["dispatches"] == 2


def test_the_focus_of_the_request_chooses_the_agent(shop: tuple[Workshop, Path]) -> None:
    workshop, root = shop
    workshop.configure(root, '[backends]\nreviewer = "human"\n"reviewer:security" = "script:r.yaml"\n')
    verdict = {"review_focus": "security", "scope": "code", "verdict": "approve", "confidence": "high"}
    body = {**verdict, "summary": "fine", "completion": {"status": "DONE", "summary": "fine"}}
    (root / "r.yaml").write_text(json.dumps([{"role": "reviewer", "match": {"focus": "security"}, "output": body}]))
    request = "{request: x, scope: code, focus: security, subject: a diff}"
    done = workshop.proofstone(root, "ask", "reviewer", request, "--json")
    assert done.returncode == 0, done.stderr + done.stdout
    assert json.loads(done.stdout)["role"] == "reviewer:security"


def test_what_a_role_takes_and_answers_can_be_had_without_a_repository_or_a_backend(tmp_path: Path) -> None:
    workshop = Workshop.apart(tmp_path)
    schema = workshop.proofstone(tmp_path, "ask", "planner", "--schema")
    assert schema.returncode == 0 and set(json.loads(schema.stdout)) == {"request", "answer"}
    example = workshop.proofstone(tmp_path, "ask", "researcher:impact", "--example")
    assert (example.returncode, example.stderr) == (0, "")
    assert "\nrequest: " in example.stdout and "\n# questions: " in example.stdout


def by_model(root: Path, server: ModelServer) -> dict[str, str]:
    """Variables with which a researcher is a model that costs a dollar for a thousand tokens."""
    (root.parent / "mine.toml").write_text(
        f'[backends]\nresearcher = "api:mine:m"\n[providers.mine]\nwire = "openai-chat"\nurl = "{server.url}/v1"\n'
        '[models."mine:m"]\ninput_usd = 1000\noutput_usd = 1000\n'
    )
    return {"PROOFSTONE_CONFIG": str(root.parent / "mine.toml")}


FAULTS: dict[str, tuple[Answer, int]] = {
    "DENIED": (HttpError(401, "wrong key"), 2),
    "UNAVAILABLE": (HttpError(503, "later", retry_after=0), 1),
}


@pytest.mark.few(1)
@pytest.mark.parametrize("kind", FAULTS)
def test_whether_the_provider_lets_us_in_decides_the_exit_code(shop: tuple[Workshop, Path], kind: str) -> None:
    workshop, root = shop
    answer, code = FAULTS[kind]
    with ModelServer(lambda _: answer) as server:
        done = workshop.proofstone(root, "ask", "researcher:impact", "?", env=by_model(root, server))
    assert (done.returncode, done.stdout) == (code, "")
    assert kind in done.stderr


def test_whoever_breaks_it_off_is_told_which_run_it_was_and_what_it_cost(shop: tuple[Workshop, Path]) -> None:
    workshop, root = shop
    answers: list[Answer] = [Reply(calls=(("list", {}),), input_tokens=900, output_tokens=100), Hang()]
    with ModelServer(answers) as server:
        running = workshop.start(root, "ask", "researcher:impact", "?", env=by_model(root, server))
        assert running.stderr is not None
        for line in running.stderr:
            if line.startswith("▸ list"):
                break
        os.kill(running.pid, signal.SIGINT)
        stdout, stderr = running.communicate(timeout=PATIENCE)
    assert (running.returncode, stdout) == (130, "")
    assert "interrupted; 1 model call, 1.0k tokens, $1.00" in stderr
    (run,) = [line.split()[1] for line in stderr.splitlines() if line.startswith("run ")]
    assert workshop.proofstone(root, "audit", run).returncode == 0


def test_a_challenger_can_be_tried_on_a_plan(shop: tuple[Workshop, Path]) -> None:
    workshop, root = shop
    plan = json.dumps(
        {"plan_path": "PLAN.md", "plan": "1\tCall sell(3).", "plan_quality": "THIN", "iteration": 1, "at_most": 5}
    )
    done = workshop.proofstone(root, "ask", "challenger", plan, "--backend", "script:s.yaml", "--json")
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert [one["severity"] for one in answer["output"]["challenges"]] == ["BLOCKING"]
    assert (answer["tool_calls"], answer["refusals"]) == (2, 1), "it reads the tree, and the web is not for it"


def test_a_perceiver_can_be_tried_on_a_sentence(shop: tuple[Workshop, Path]) -> None:
    workshop, root = shop
    heard = "{completion: {status: DONE, summary: heard}, intent: The shop is to be faster}"
    (root / "p.yaml").write_text(f"- role: perceiver\n  output: {heard}\n")
    done = workshop.proofstone(root, "ask", "perceiver", "make the shop faster", "--backend", "script:p.yaml", "--json")
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)["output"]
    assert (said["intent"], said["question"]) == ("The shop is to be faster", "")


WRONG = {
    "a role that there is not": (("tester", "x"), "there is no such role"),
    "an executor": (("executor", "x"), "works only at the gate"),
    "a researcher of the plan gate": (("researcher:resolve", "x"), "researcher:resolve works only at the plan gate"),
    "a challenger at the close": (("challenger:audit", "x"), "challenger:audit works only at the plan gate"),
    "nobody to serve it": (("planner", "{}"), "planner"),
    "no focus": (("researcher", "x", "--backend", "script:s.yaml"), "focus"),
    "a focus that there is not": (("researcher:colour", "x", "--backend", "script:s.yaml"), "focus"),
    "a script that there is not": (("researcher:impact", "x", "--backend", "script:none.yaml"), "none.yaml"),
    "a file that there is not": (("researcher:impact", "@none.yaml", "--backend", "script:s.yaml"), "none.yaml"),
    "fields that there are not": (("architect", "{colour: red}", "--backend", "script:s.yaml"), "colour"),
    "no request": (("researcher:impact", "--backend", "script:s.yaml"), "REQUEST is missing"),
    "two foci": (("researcher:impact", "{request: x, focus: patterns}", "--backend", "script:s.yaml"), "patterns"),
    "a mapping that breaks off": (("researcher:impact", "{request: x", "--backend", "script:s.yaml"), "REQUEST:1: "),
    "a model without its provider": (("researcher:impact", "x", "--backend", "api:gpt-5"), "api:openai:gpt-5"),
    "a budget that is none": (("researcher:impact", "x", "--backend", "script:s.yaml", "--budget", "usd"), "usd"),
    "a provider that there is not": (("researcher:impact", "x", "--backend", "api:nobody:x"), "no provider `nobody`"),
}


@pytest.mark.few(6)
@pytest.mark.parametrize("args,words", WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_said_and_nothing_begins(
    shop: tuple[Workshop, Path], args: tuple[str, ...], words: str
) -> None:
    workshop, root = shop
    done = workshop.proofstone(root, "ask", *args)
    assert done.returncode == 2 and words in done.stderr and "hint:" in done.stderr, done.stderr
    assert workshop.proofstone(root, "audit", "last").returncode == 2, "no run was begun"


def test_there_is_nothing_to_record_in_a_run_without_agents(shop: tuple[Workshop, Path]) -> None:
    workshop, root = shop
    (root / "shop.py").write_text("def sell():\n    return 2\n")
    workshop.proofstone(root, "check")
    done = workshop.proofstone(root, "record", "last")
    assert done.returncode == 2 and "no agent did or said anything" in done.stderr


def test_a_wrong_form_is_mended_and_what_was_mended_is_shown_and_recorded(shop: tuple[Workshop, Path]) -> None:
    workshop, root = shop
    said = json.dumps({"intent": "sell for 2", "constraints": None})
    (root / "small.yaml").write_text(f"- role: perceiver\n  raw: |\n    Sure! ```json\n    {said}\n    ```\n")
    asked = ("ask", "perceiver", "sell for 2, please", "--backend", "script:small.yaml")
    done = workshop.proofstone(root, *asked, "--json")
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    completion = answer["output"]["completion"]
    assert (completion["status"], completion["summary"]) == ("DONE", "sell for 2")
    assert answer["repairs"] == 0
    filled = "completion: it was missing; the engine filled it"
    assert answer["mended"] == ["constraints: null was read as left out", filled]
    kept = workshop.proofstone(root, "ledger", "export")
    assert filled in kept.stdout
    assert f"mended  {filled}" in workshop.proofstone(root, *asked).stderr

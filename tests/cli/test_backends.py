"""`proofstone backends` says who serves each role, whether they can, and how they answer."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from proofstone.testing.model_server.answers import HttpError, ReceivedRequest, Reply
from proofstone.testing.model_server.server import ModelServer
from tests.workshop import proofstone

KEY = "sk-very-secret-key"
AGENTS = (
    "executor",
    "architect",
    "researcher",
    "specifier",
    "designer",
    "planner",
    "reviewer:security",
    "reviewer:architecture",
    "reviewer:correctness",
    "knowledge",
    "challenger",
    "domain_expert",
    "devils_advocate",
    "synthesizer",
    "perceiver",
    "agent_validator",
    "meta_validator",
)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    root.mkdir()
    (root / "a.txt").write_text("a\n")
    for words in (["init", "-q"], ["add", "-A"], ["-c", "user.name=a", "-c", "user.email=a@b.c", "commit", "-qm", "a"]):
        subprocess.run(["git", *words], cwd=root, check=True)
    return root


def backends(
    project: Path, *args: str, mine: str = "", env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    file = project.parent / "mine.toml"
    file.write_text(mine)
    variables = {"PROOFSTONE_CONFIG": str(file), "OPENAI_API_KEY": "", **(env or {})}
    return proofstone("backends", *args, home=project.parent / "home", cwd=project, env=variables)


def document(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def by_agent(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    return {one["agent"]: one for one in document(done)["agents"]}


def test_with_nothing_set_every_role_but_the_architect_has_nobody(project: Path) -> None:
    done = backends(project, "--json")
    assert done.returncode == 0, "that nobody is named is a note"
    found = by_agent(done)
    assert tuple(found) == AGENTS
    assert [one["spec"] for one in found.pop("architect")["backends"]] == ["rules"]
    assert all(one["backends"] == [] and not one["ready"] for one in found.values())
    page = backends(project).stdout
    assert "researcher, specifier, designer, planner" in page
    assert page.count("no agent is configured") == 2, "before the architect and behind it"
    assert "--backend default=SPEC" in page


def test_roles_that_are_asked_about_must_have_somebody(project: Path) -> None:
    mine = '[backends]\nplanner = "human"\n"reviewer:security" = "human"\n'
    assert tuple(by_agent(backends(project, "planner", "--json", mine=mine))) == ("planner",)
    assert backends(project, "planner", "reviewer:security", mine=mine).returncode == 0
    done = backends(project, "reviewer", "--json", mine=mine)
    assert done.returncode == 1 and document(done)["ok"] is False
    assert {name: one["ready"] for name, one in by_agent(done).items()} == {
        "reviewer:security": True,
        "reviewer:architecture": False,
        "reviewer:correctness": False,
    }


@pytest.mark.parametrize("role", ["wizard", "reviewer:colour", "planner:security"])
def test_a_role_that_there_is_not_is_bad_input(project: Path, role: str) -> None:
    done = backends(project, role)
    assert done.returncode == 2
    assert f"{role}: there is no such role" in done.stderr and "reviewer:security" in done.stderr


def test_roles_that_share_a_backend_stand_in_one_row(project: Path) -> None:
    page = backends(project, mine='[backends]\ndefault = "human"\ndesigner = "cmd:cat"\n').stdout
    assert "specifier\n  human\n    set by person (default): ready\ndesigner\n  cmd:cat\n" in page
    assert page.count("human") == 2


def test_each_role_says_who_named_its_backend(project: Path) -> None:
    (project / "proofstone.toml").write_text('[backends]\nplanner = "cmd:cat"\ndesigner = "cmd:cat"\n')
    mine = '[backends]\ndefault = "human"\nplanner = ["cmd:true", "human"]\n'
    done = backends(project, "--json", "--backend", "knowledge=cmd:sh x", mine=mine)
    assert (done.returncode, done.stderr) == (0, "")
    found = by_agent(done)
    said = {name: (one["from"], one["key"], [b["spec"] for b in one["backends"]]) for name, one in found.items()}
    assert said["planner"] == ("person", "planner", ["cmd:true", "human"])
    assert said["designer"] == ("repository", "designer", ["cmd:cat"])
    assert said["knowledge"] == ("command line", "knowledge", ["cmd:sh x"])
    assert said["reviewer:security"] == ("person", "default", ["human"])
    assert document(done)["ok"] is True


MISSING: dict[str, tuple[str, str]] = {
    "key": ("api:openai:gpt-5", "OPENAI_API_KEY"),
    "provider": ("api:nobody:gpt-5", "there is no provider `nobody`"),
    "program": ("cmd:no-such-program --fast", "there is no program no-such-program"),
    "file": ("script:gone.yaml", "gone.yaml"),
}


@pytest.mark.parametrize(("spec", "why"), MISSING.values(), ids=MISSING)
def test_what_is_missing_is_named(project: Path, spec: str, why: str) -> None:
    done = backends(project, "--backend", "default=human", "--backend", f"planner={spec}")
    assert done.returncode == 1
    assert done.stdout.count("not ready") == 1
    assert why in done.stdout


def test_a_fallback_that_cannot_serve_is_said_too(project: Path) -> None:
    options = ("--backend", "default=human", "--backend", "default=api:openai:gpt-5")
    assert backends(project, *options).returncode == 1


def test_a_scripts_path_counts_from_where_it_was_written(project: Path) -> None:
    script = "- role: planner\n  output: {}\n"
    (project / "theirs.yaml").write_text(script)
    (project.parent / "mine.yaml").write_text(script)
    (project / "proofstone.toml").write_text('[backends]\nplanner = "script:theirs.yaml"\n')
    mine = '[backends]\ndefault = "human"\nknowledge = "script:mine.yaml"\n'
    assert backends(project, mine=mine).returncode == 0


def test_the_tier_price_and_vendor_of_a_model_are_shown_and_what_does_not_hold(project: Path) -> None:
    mine = '[backends]\ndefault = "api:openai:gpt-5"\narchitect = "api:openai:strange"\n'
    done = backends(project, "--json", mine=mine, env={"OPENAI_API_KEY": KEY})
    found = by_agent(done)
    (known,) = found["planner"]["backends"]
    assert (known["vendor"], known["model"], known["tier"], known["priced"]) == ("openai", "gpt-5", 3, True)
    (strange,) = found["architect"]["backends"]
    assert (strange["tier"], strange["priced"]) == (None, False)
    texts = [problem["text"] for problem in document(done)["problems"]]
    assert any(text.startswith("whether architect is capable enough to judge executor") for text in texts)
    assert any(text.startswith("perspective-diverse fallback") for text in texts)
    assert done.returncode == 0  # recorded, not refused
    assert KEY not in done.stdout


def test_a_tier_that_is_not_known_is_one_note_with_its_remedy(project: Path) -> None:
    mine = '[backends]\ndefault = "api:openai:strange"\nexecutor = "api:openai:gpt-5"\n'
    page = backends(project, mine=mine, env={"OPENAI_API_KEY": KEY}).stdout
    assert page.count("the tier of api:openai:strange is not known") == 1
    assert "whether architect is capable" in page and "whether reviewer:security is capable" in page
    assert '[models."openai:strange"]\n  tier = 2' in page
    again = backends(project, mine=f'{mine}[models."openai:strange"]\ntier = 2\n', env={"OPENAI_API_KEY": KEY}).stdout
    assert "not known" not in again and "[models." not in again


def test_one_model_for_all_may_judge_itself_whatever_its_tier(project: Path) -> None:
    done = backends(project, mine='[backends]\ndefault = "api:openai:strange"\n', env={"OPENAI_API_KEY": KEY})
    assert done.returncode == 0, done.stdout
    assert "refused" not in done.stdout and "not known" not in done.stdout


JUDGES: dict[str, tuple[str, str]] = {
    "weaker": ("gpt-4.1", "meta_validator judges planner with a weaker model: api:openai:gpt-4.1 (tier 2) against"),
    "of no known tier": ("strange", "the tier of api:openai:strange is not known"),
}


@pytest.mark.parametrize(("model", "why"), JUDGES.values(), ids=JUDGES)
def test_a_meta_validator_that_may_be_less_capable_than_the_planner_is_refused(
    project: Path, model: str, why: str
) -> None:
    mine = f'[backends]\ndefault = "api:openai:gpt-5"\nmeta_validator = "api:openai:{model}"\n'
    done = backends(project, "--json", mine=mine, env={"OPENAI_API_KEY": KEY})
    assert (done.returncode, document(done)["ok"]) == (1, False)
    (refused,) = [one["text"] for one in document(done)["problems"] if one["is_refused"]]
    assert "meta_validator" in refused and why in refused


def served_by(server: ModelServer) -> str:
    return (
        f'[backends]\ndefault = "api:mine:m"\n[providers.mine]\nwire = "openai-chat"\nurl = "{server.url}/v1"\n'
        'key_variable = "MY_KEY"\n[models."mine:m"]\ntier = 3\ninput_usd = 1000\noutput_usd = 1000\n'
    )


def test_a_probe_asks_each_model_for_a_word_and_for_a_call_and_says_what_it_took(project: Path) -> None:
    def answer(asked: ReceivedRequest) -> Reply:
        call = ("look_up", {"number": 7}) if "look_up" in asked.tools else ("answer", {"word": "proofstone"})
        return Reply(calls=(call,), input_tokens=11, output_tokens=7)

    with ModelServer(answer) as server:
        done = backends(project, "--probe", "--json", mine=served_by(server), env={"MY_KEY": KEY})
        page = backends(project, "--probe", mine=served_by(server), env={"MY_KEY": KEY})
        assert len(server.asked) == 4
    (probe,) = document(done)["probes"]
    assert (probe["spec"], probe["answered"], probe["fault"]) == ("api:mine:m", True, "")
    assert (probe["answer"], probe["calls_tools"]) == ("tool", True)
    assert probe["usage"]["usd"] == pytest.approx(0.036)
    assert "answers by tool, calls tools" in page.stdout
    assert (done.returncode, page.returncode) == (0, 0)
    assert "ready, answered as mine:m in " in page.stdout
    assert "36 tokens, $0.036000" in page.stdout
    assert all(one["ready"] for one in by_agent(done).values())


def test_what_a_probe_found_out_is_recorded_and_runs_ask_in_that_way(project: Path) -> None:
    """A server of a small model: it answers only where it is held to a schema, and never calls a tool."""

    def answer(asked: ReceivedRequest) -> Reply:
        said = {"word": "proofstone"} if "test of the connection" in asked.system else {"intent": "make it right"}
        return Reply(text=json.dumps(said) if "response_format" in asked.body else "Of course I can help with that!")

    with ModelServer(answer) as server:
        mine = served_by(server)
        first = backends(project, "--probe", "--json", mine=mine, env={"MY_KEY": KEY})
        probe = document(first)["probes"][0]
        assert (first.returncode, probe["answer"], probe["calls_tools"]) == (0, "schema", False)
        assert "calls no tools" in backends(project, "--probe", mine=mine, env={"MY_KEY": KEY}).stdout
        before = len(server.asked)
        variables = {"PROOFSTONE_CONFIG": str(project.parent / "mine.toml"), "MY_KEY": KEY}
        home = project.parent / "home"
        asked = proofstone("ask", "perceiver", "make it right", "--json", home=home, cwd=project, env=variables)
        assert asked.returncode == 0, asked.stderr
        assert json.loads(asked.stdout)["output"]["intent"] == "make it right"
        assert len(server.asked) == before + 1
    (record,) = json.loads((home / "probes.json").read_text()).values()
    assert (record["answer"], record["calls_tools"]) == ("schema", False)


def test_a_model_that_cannot_answer_is_a_fault_in_words(project: Path) -> None:
    with ModelServer(lambda _: HttpError(401, "wrong key")) as server:
        done = backends(project, "--probe", mine=served_by(server), env={"MY_KEY": KEY})
        told = backends(
            project, "--probe", "--json", "--backend", "planner=human", mine=served_by(server), env={"MY_KEY": KEY}
        )
    assert done.returncode == 1
    assert done.stdout.count("does not answer: denied: ") == 1 and "401" in done.stdout
    assert "ready" not in done.stdout
    found = by_agent(told)
    assert found["planner"]["ready"] and not found["designer"]["ready"]
    assert found["designer"]["backends"][0]["fault"].startswith("denied: ")
    assert KEY not in done.stdout + done.stderr + told.stdout


def test_an_answer_of_another_form_is_no_answer(project: Path) -> None:
    with ModelServer(lambda _: Reply(text="Hello there!")) as server:
        done = backends(project, "--probe", mine=served_by(server), env={"MY_KEY": KEY})
    assert done.returncode == 1
    assert "does not answer: malformed" in done.stdout


def test_a_program_is_probed_in_the_sandbox_and_people_are_left_alone(project: Path) -> None:
    command = """cmd:echo '{"word": "proofstone"}' > "$PROOFSTONE_ANSWER"; touch a-trace"""
    options = ("--backend", "default=human", "--backend", f"planner={command}", "--backend", "executor=cmd:exit 3")
    done = backends(project, "--probe", "--json", *options)
    assert "cmd:exit 3 does not answer" in done.stderr
    said = {one["spec"]: one for one in document(done)["probes"]}
    assert set(said) == {command, "cmd:exit 3"}
    assert said[command]["answered"]
    assert said["cmd:exit 3"]["fault"].startswith("crashed")
    assert done.returncode == 1
    assert not (project / "a-trace").exists()


@pytest.mark.parametrize("option", ["wizard=human", "planner=gpt-5", "planner"])
def test_an_option_that_says_nothing_is_bad_input(project: Path, option: str) -> None:
    done = backends(project, "--backend", option)
    assert done.returncode == 2
    assert f"--backend {option}" in done.stderr


NEAR_MISSES: dict[str, tuple[str, str]] = {
    "a model without its provider": ("api:gpt-5", "api:openai:gpt-5"),
    "a model without anything": ("claude-opus-4-5", "api:anthropic:claude-opus-4-5"),
    "a provider without a model": ("api:anthropic", "api:anthropic:claude-sonnet-4-5"),
    "a coding agent": ("claude", "cli:claude"),
    "no kind": ("google:gemini-3", "api:google:gemini-3"),
    "one's own provider": ("api:office", "api:office:<model>"),
}


@pytest.mark.parametrize(("spec", "meant"), NEAR_MISSES.values(), ids=NEAR_MISSES)
def test_what_is_almost_a_model_is_told_how_to_become_one(project: Path, spec: str, meant: str) -> None:
    mine = '[providers.office]\nwire = "openai-chat"\nurl = "http://127.0.0.1:9/v1"\n'
    done = backends(project, "--backend", f"planner={spec}", mine=mine)
    assert done.returncode == 2
    assert f"did you mean {meant}?" in done.stderr


def test_a_key_that_is_there_under_another_name_is_pointed_to(project: Path) -> None:
    options = ("planner", "--backend", "planner=api:google:gemini-2.5-pro")
    held = {"GOOGLE_API_KEY": "", "GEMINI_API_KEY": KEY}
    done = backends(project, *options, env=held)
    assert done.returncode == 1
    assert 'GEMINI_API_KEY is set: `export GOOGLE_API_KEY="$GEMINI_API_KEY"`' in done.stdout
    assert KEY not in done.stdout
    assert "GEMINI" not in backends(project, *options, env={"GOOGLE_API_KEY": "", "GEMINI_API_KEY": ""}).stdout


@pytest.mark.parametrize("line", [f'key = "{KEY}"', f'api_key = "{KEY}"', f'key_variable = "{KEY}"'])
def test_a_key_in_a_file_is_told_where_it_belongs_and_not_repeated(project: Path, line: str) -> None:
    mine = f'[providers.office]\nwire = "openai-chat"\nurl = "http://127.0.0.1:9/v1"\n{line}\n'
    done = backends(project, mine=mine)
    assert done.returncode == 2
    assert (
        f"mine.toml:4: providers.office.{line.split()[0]}: " in done.stderr
        and "name that variable in `key_variable`" in done.stderr
    )
    assert KEY not in done.stdout + done.stderr


def test_a_persons_file_that_is_wrong_is_named_with_its_line(project: Path) -> None:
    done = backends(project, mine='[backends]\nplanner = "gpt-5"\n')
    assert done.returncode == 2
    assert "mine.toml:2: backends.planner" in done.stderr

"""`proofstone verify-plan` as a person meets it: what is wrong is said, every outcome is one document, and whoever
breaks it
off can go on."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from proofstone.plan_gate.models import PlanReport
from tests.plan_gate.scenes import PAUSED, SCENES
from tests.plan_gate.stage import Stage, challenger, script
from tests.staging import DONE, Entry
from tests.waiting import PATIENCE
from tests.workshop import Workshop

SLEEPING: list[Entry] = [
    {"role": "challenger", "steps": [{"sleep": 300}], "output": {**DONE, "challenges": []}},
    *script(),
]
COSTLY = [{**one, "usage": {"input_tokens": 900, "output_tokens": 200}} for one in script()]


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Stage:
    stage = Stage.set_up(tmp_path_factory.mktemp("command") / "stage")
    stage.write("BINARY.md", "a\0b")
    stage.write("EMPTY.md", " \n")
    (stage.root / "LATIN.md").write_bytes("# Caf\xe9\n".encode("latin-1"))
    stage.cast(script())
    return stage


@pytest.fixture(scope="module")
def ended(stage: Stage) -> str:
    """A run that is over."""
    return stage.verify(script()).run_id


WRONG: dict[str, tuple[tuple[str, ...], str]] = {
    "nothing": ((), "FILE is missing"),
    "no such file": (("none.md",), "none.md: there is no such file"),
    "a folder": (("shop",), "shop is not a file"),
    "two things at once": (("PLAN.md", "--resume", "last"), "FILE and --resume cannot be combined"),
    "three things at once": (
        ("--show", "last", "--apply-mitigations", "last", "--schema"),
        "--show and --apply-mitigations and --schema",
    ),
    "an answer about nothing": (("PLAN.md", "--answer", "keep both"), "says nothing about a challenge"),
    "an answer about no challenge": (("PLAN.md", "--answer", "U1=yes"), "says nothing about a challenge"),
    "an empty answer": (("PLAN.md", "--answer", "C1= "), "says nothing about a challenge"),
    "an unknown run": (("--resume", "nosuchrun"), "nosuchrun: names no run"),
    "an unknown run to show": (("--show", "nosuchrun"), "nosuchrun: names no run"),
    "an unknown run to take in": (("--apply-mitigations", "nosuchrun"), "nosuchrun: names no run"),
    "others than before": (("--resume", "last", "--rules"), "--resume keeps the agents of the run"),
    "an answer for a run that has ended": (("--resume", "last", "--answer", "C1=yes"), "has ended: PROCEED"),
    "a binary file": (("BINARY.md",), "BINARY.md is not text"),
    "another encoding": (("LATIN.md",), "LATIN.md:1: this is not UTF-8"),
    "an empty file": (("EMPTY.md",), "EMPTY.md is empty"),
    "one role of several": (("PLAN.md", "--backend", "challenger=script:../script.yaml"), "researcher, synthesizer"),
    "a role that there is not": (("PLAN.md", "--backend", "tester=human"), "tester"),
    "a script that there is not": (("PLAN.md", "--backend", "script:none.yaml"), "none.yaml"),
    "a budget that is none": (("PLAN.md", "--budget", "usd"), "usd"),
}


@pytest.mark.parametrize("args,words", WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_said_and_nothing_begins(stage: Stage, ended: str, args: tuple[str, ...], words: str) -> None:
    done = stage.proofstone("verify-plan", *args)
    assert done.returncode == 2 and words in done.stderr and "hint:" in done.stderr, done.stderr
    assert (done.stdout, "Traceback" in done.stderr) == ("", False)
    assert stage.runs[-1] == ended, "no run was begun"


def test_a_folder_that_is_no_repository_is_refused(tmp_path: Path) -> None:
    workshop = Workshop.apart(tmp_path)
    (tmp_path / "alone").mkdir()
    (tmp_path / "alone" / "PLAN.md").write_text("# A plan\n\n1. Do it.\n")
    done = workshop.proofstone(tmp_path / "alone", "verify-plan", "PLAN.md")
    assert done.returncode == 2 and "git" in done.stderr, done.stderr


def test_a_run_that_there_is_not_yet_cannot_be_gone_on_with(tmp_path: Path) -> None:
    workshop = Workshop.apart(tmp_path)
    root = workshop.repo({"a.txt": "a\n"})
    done = workshop.proofstone(root, "verify-plan", "--resume", "last")
    assert done.returncode == 2 and "there is no run of `proofstone verify-plan` yet" in done.stderr


def test_a_repository_without_a_commit_is_refused_or_read_but_never_a_crash(tmp_path: Path) -> None:
    workshop = Workshop.apart(tmp_path)
    root = tmp_path / "new"
    root.mkdir()
    workshop.git(root, "init", "--quiet")
    (root / "PLAN.md").write_text("# A plan\n\n1. Create `a.py`. Verify: `python3 a.py`\n")
    done = workshop.proofstone(root, "verify-plan", "PLAN.md")
    assert done.returncode == 2 and "commit" in done.stderr, done.stderr


# One document, whatever comes of it.


OUTCOMES: dict[str, tuple[list[Entry], tuple[str, ...], int]] = {
    "PROCEED": (script(), (), 0),
    "RETHINK": (list(SCENES["forced-exit"].entries), (), 1),
    "a question": (script(*PAUSED), (), 3),
    "a spent budget": (COSTLY, ("--budget-tokens", "1000"), 4),
    "an error": (script(), ("--answer", "C1="), 2),
    "a script that breaks off": ([challenger()], (), 2),
}


@pytest.mark.few(3, ci=6)
@pytest.mark.parametrize("name", OUTCOMES)
def test_every_outcome_is_one_document(stage: Stage, name: str) -> None:
    entries, args, code = OUTCOMES[name]
    done = stage.proofstone("verify-plan", "LARGE.md", "--backend", stage.cast(entries), *args, "--json")
    assert done.returncode == code, done.stderr
    document = json.loads(done.stdout)
    match code:
        case 2:
            assert set(document) == {"error"}
        case 4:
            assert document["outcome"] == "budget_exhausted" and "1,000 tokens" in document["reason"]
        case _:
            assert PlanReport.model_validate(document).verdict == (None if code == 3 else name)


def test_shown_again_it_is_the_same_document(stage: Stage) -> None:
    came = stage.verify(script(*PAUSED))
    for args in (("--show", came.run_id), ("--show", came.run_id[-6:]), ("--show", "last")):
        shown = stage.proofstone("verify-plan", *args, "--json")
        assert (shown.returncode, shown.stdout) == (3, came.stdout)


def test_the_schemas_can_be_had_anywhere(tmp_path: Path) -> None:
    done = Workshop.apart(tmp_path).proofstone(tmp_path, "verify-plan", "--schema")
    assert done.returncode == 0 and done.stderr == ""
    schemas = json.loads(done.stdout)
    named = {"challenge", "unknown", "surfaced_context", "probed_risk", "iteration_state", "plan_report"}
    assert set(schemas) == named and all(one["type"] == "object" for one in schemas.values())


def test_the_report_is_written_as_markdown_or_json(stage: Stage, tmp_path: Path) -> None:
    page, document = tmp_path / "report.md", tmp_path / "report.JSON"
    came = stage.verify(script(*PAUSED), "--report", str(page))
    assert page.read_text().startswith("# Plan gate: ")
    shown = stage.proofstone("verify-plan", "--show", came.run_id, "--report", str(document))
    assert shown.returncode == 3 and str(document) in shown.stdout
    assert PlanReport.model_validate_json(document.read_text()) == came.report


def test_a_report_that_cannot_be_written_is_said(stage: Stage, tmp_path: Path) -> None:
    came = stage.verify(script(), "--report", str(tmp_path / "none" / "report.md"))
    assert came.exit == 2 and "report.md" in came.stderr, (came.exit, came.stderr)


def test_what_happens_is_told_on_stderr_and_the_verdict_on_stdout(stage: Stage) -> None:
    asked = ("verify-plan", "PLAN.md", "--backend", stage.cast(list(SCENES["continue-then-proceed"].entries)))
    done = stage.proofstone(*asked)
    assert done.returncode == 0
    assert "iteration 1 of 3" in done.stderr and "→ CONTINUE" in done.stderr and "iteration 2 of 3" in done.stderr
    assert "PROCEED" in done.stdout and "iteration 1" not in done.stdout
    quiet = stage.proofstone(*asked, "-q")
    assert quiet.stderr == "" and "PROCEED" in quiet.stdout


def test_an_answer_is_a_persons_word(stage: Stage) -> None:
    paused = stage.verify(script(*PAUSED))
    done = stage.resume(paused.run_id, "--answer", "C1=yes", env={"PROOFSTONE_TASK": "in the prompt"})
    assert done.exit == 2


AT_A_TERMINAL = {"2\n": (0, ["in cents"]), "by the piece\n": (0, ["by the piece"]), "\n": (3, [])}
"""What is typed, how it ends, and what the answer is."""


@pytest.mark.few(1, ci=3)
@pytest.mark.parametrize("typed", AT_A_TERMINAL)
def test_at_a_terminal_it_is_asked_here_and_now(stage: Stage, tmp_path: Path, typed: str) -> None:
    code, answers = AT_A_TERMINAL[typed]
    spec, into = stage.cast(list(SCENES["answered"].entries)), tmp_path / "report.json"
    ended, shown = stage.at_a_terminal(
        *("verify-plan", "PLAN.md", "--backend", spec, "--report", str(into)),
        typed={"an empty line leaves the question": typed},
    )
    assert ended == code, shown
    assert "C1: Are prices whole?" in shown and "2. in cents" in shown
    report = PlanReport.model_validate_json(into.read_text())
    assert [one.text for one in report.answers] == answers


# Broken off, and gone on with.


def test_a_spent_budget_stops_it_and_more_of_it_goes_on(stage: Stage) -> None:
    spent = stage.proofstone(
        "verify-plan", "PLAN.md", "--backend", stage.cast(COSTLY), "--budget-tokens", "2000", "--json", "--quiet"
    )
    assert spent.returncode == 4, spent.stderr
    run_id = json.loads(spent.stdout)["run_id"]
    assert f"proofstone verify-plan --resume {run_id} --budget" in spent.stderr
    before = len(stage.messages(run_id, "Turn"))
    assert before, "what was paid for is kept"
    again = stage.proofstone("verify-plan", "--resume", run_id, "--json")
    assert again.returncode == 4, "no more was given"
    assert len(stage.messages(run_id, "Turn")) == before
    came = stage.resume(run_id, "--budget-tokens", "100000")
    assert came.exit == 0, came.stderr
    assert len(stage.messages(run_id, "Turn")) == came.report.dispatches == 5


@pytest.mark.few(1, ci=2)
@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_whoever_breaks_it_off_is_told_how_to_go_on(stage: Stage, sign: signal.Signals) -> None:
    spec = stage.cast(SLEEPING, "sleeping")
    running = stage.workshop.start(stage.root, "verify-plan", "PLAN.md", "--backend", spec)
    assert running.stderr is not None
    for line in running.stderr:
        if line.startswith("iteration 1"):
            break
    os.kill(running.pid, sign)
    stdout, stderr = running.communicate(timeout=PATIENCE)
    assert (running.returncode, stdout) == (128 + sign, ""), stderr
    assert "Traceback" not in stderr
    (told,) = [line for line in stderr.splitlines() if "resume with" in line]
    run_id = told.split()[-1]
    shown = stage.proofstone("verify-plan", "--show", run_id)
    assert shown.returncode == 2 and "has no verdict and no question yet" in shown.stderr
    stage.cast(script(), "sleeping")
    came = stage.resume(run_id)
    assert came.exit == 0, came.stderr


def test_two_do_not_go_on_with_the_same_run_at_once(stage: Stage) -> None:
    running = stage.workshop.start(stage.root, "verify-plan", "PLAN.md", "--backend", stage.cast(SLEEPING, "both"))
    assert running.stderr is not None
    for line in running.stderr:
        if line.startswith("iteration 1"):
            break
    other = stage.resume("last")
    os.kill(running.pid, signal.SIGINT)
    running.communicate(timeout=PATIENCE)
    assert other.exit == 2 and "another process is working on this run" in other.stderr


def test_who_is_not_let_in_stops_the_run_and_it_goes_on_once_they_are(stage: Stage) -> None:
    denied = stage.verify([{"role": "challenger", "steps": [{"error": "denied"}]}, *script()])
    assert denied.exit == 2 and "challenger: denied" in denied.stderr
    stage.cast(script())
    came = stage.resume("last")
    assert came.exit == 0, came.stderr


def test_who_takes_too_long_has_failed_and_the_others_go_on(tmp_path: Path) -> None:
    stage = Stage.set_up(tmp_path / "stage", settings="[gate]\nagent_seconds = 1\n")
    sleeping = {"role": "researcher", "match": {"focus": "probe"}, "steps": [{"sleep": 300}]}
    came = stage.verify(script(sleeping))
    assert came.exit == 0, came.stderr
    assert came.events("failure") == ["researcher:probe: not finished after 1 s"]


def test_what_fails_for_want_of_a_script_goes_on_when_there_is_one(stage: Stage) -> None:
    broken = stage.verify([challenger()])
    assert broken.exit == 2 and "no entry for the role" in broken.stderr
    stage.cast(script())
    came = stage.resume("last")
    assert came.exit == 0, came.stderr

"""`proofstone solve` as a person meets it: what is wrong with a command line is said, and nothing begins."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from proofstone.cli.options import MAX_GOAL_BYTES
from tests.workshop import Workshop

GOAL = "make the greeting polite"


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    return Workshop.apart(tmp_path_factory.mktemp("solve"))


@pytest.fixture(scope="module")
def root(workshop: Workshop) -> Path:
    root = workshop.repo({"greeting.py": "print('hey')\n"})
    (root / "EMPTY.md").write_text(" \n")
    (root / "BINARY.md").write_bytes(b"a\0b")
    (root / "LATIN.md").write_bytes("fine\nCaf\xe9\n".encode("latin-1"))
    (root / "LONG.md").write_text("x" * (MAX_GOAL_BYTES + 1))
    (root / "GOAL.md").write_text(GOAL)
    (root / "script.yaml").write_text("[]\n")
    return root


WRONG: Mapping[str, tuple[tuple[str, ...], str]] = {
    "nothing": ((), "GOAL is missing"),
    "a goal without quotes": (("make", "it's", "polite"), """proofstone solve 'make it'"'"'s polite'"""),
    "an option that there is not": ((GOAL, "--polite"), "No such option: --polite"),
    "two things at once": ((GOAL, "--resume", "last"), "GOAL and --resume cannot be combined"),
    "three things at once": (
        ("--goal-file", "GOAL.md", "--resume", "last", "--show", "last"),
        "--goal-file and --resume and --show cannot be combined",
    ),
    "an empty goal": ((" ",), "the goal is empty"),
    "an empty file": (("--goal-file", "EMPTY.md"), "the goal is empty"),
    "nothing on standard input": (("-",), "the goal is empty"),
    "a goal that is too long": (("x" * 50_000,), "the goal has 50,000 characters"),
    "a file that is too large": (("--goal-file", "LONG.md"), "LONG.md is larger than 200,000 bytes"),
    "a binary file": (("--goal-file", "BINARY.md"), "BINARY.md is not text"),
    "another encoding": (("--goal-file", "LATIN.md"), "LATIN.md:2: this is not UTF-8"),
    "no such file": (("--goal-file", "none.md"), "--goal-file none.md: No such file"),
    "a folder": (("--goal-file", "."), "--goal-file .: Is a directory"),
    "fewer replans than none": ((GOAL, "--max-replans", "-1"), "--max-replans"),
    "half a replan": ((GOAL, "--max-replans", "1.5"), "--max-replans"),
    "less time than none": ((GOAL, "--seconds", "-1"), "--seconds -1: must not be negative"),
    "time without end": ((GOAL, "--seconds", "inf"), "--seconds inf"),
    "time that is no number": ((GOAL, "--seconds", "nan"), "--seconds nan"),
    "a policy that there is not": ((GOAL, "--policy", "magic"), "magic"),
    "an empty answer": ((GOAL, "--answer", " "), "--answer: is empty"),
    "nobody to ask": ((GOAL,), "no agent is configured to pursue the goal"),
    "a role that there is not": ((GOAL, "--backend", "tester=human"), "tester"),
    "a script that there is not": ((GOAL, "--backend", "script:none.yaml"), "none.yaml"),
    "a budget that is none": ((GOAL, "--backend", "script:script.yaml", "--budget", "usd"), "usd"),
    "a report nowhere": ((GOAL, "--report", "none/report.md"), "--report none/report.md: there is no folder none"),
    "a picture nowhere": ((GOAL, "--svg", "none/loss.svg"), "--svg none/loss.svg: there is no folder none"),
    "a report that is a folder": ((GOAL, "--report", "."), "--report .: is a folder"),
    "a report in the place of the goal": (("--goal-file", "GOAL.md", "--report", "GOAL.md"), "is the goal itself"),
    "two things in one file": ((GOAL, "--svg", "a.md", "--report", "./a.md"), "--svg and --report are both a.md"),
    "an unknown run": (("--resume", "nosuchrun"), "there is no run of `proofstone solve` yet"),
    "an unknown run to show": (("--show", "nosuchrun"), "there is no run of `proofstone solve` yet"),
    "others than before": (("--resume", "last", "--backend", "human"), "--resume keeps the options that the run was"),
    "another policy than before": (
        ("--resume", "last", "--policy", "grid"),
        "--resume keeps the options that the run was",
    ),
    "more replans than before": (
        ("--resume", "last", "--max-replans", "0"),
        "--resume keeps the options that the run was",
    ),
    "an answer to what is only shown": (("--show", "last", "--answer", "yes"), "leave --answer out"),
    "no replans for what is only shown": (("--show", "last", "--max-replans", "0"), "leave --max-replans out"),
    "others for what is only shown": (
        ("--show", "last", "--backend", "human", "--no-memory", "--budget-usd", "1"),
        "leave --backend and --no-memory and --budget out",
    ),
    "no memory any more": (("--resume", "last", "--no-memory"), "--resume keeps the options that the run was"),
}


@pytest.mark.parametrize("args,words", WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_said_and_nothing_begins(
    workshop: Workshop, root: Path, args: tuple[str, ...], words: str
) -> None:
    before = sorted(root.iterdir())
    done = workshop.proofstone(root, "solve", *args)
    assert done.returncode == 2 and words in done.stderr and "hint:" in done.stderr, done.stderr
    assert (done.stdout, "Traceback" in done.stderr) == ("", False)
    assert sorted(root.iterdir()) == before and (root / "GOAL.md").read_text() == GOAL
    assert workshop.runs == [], "no run was begun"


def test_what_is_wrong_is_one_document_for_a_program(workshop: Workshop, root: Path) -> None:
    done = workshop.proofstone(root, "solve", GOAL, "--json", "--plot")
    assert done.returncode == 2
    assert json.loads(done.stdout)["error"]["message"] == "--plot cannot be combined with --json"


def test_an_answer_is_a_persons_word(workshop: Workshop, root: Path) -> None:
    done = workshop.proofstone(root, "solve", GOAL, "--answer", "yes", env={"PROOFSTONE_TASK": "in the prompt"})
    assert done.returncode == 2 and "only a person may do this" in done.stderr


def test_a_folder_that_is_no_repository_is_refused(tmp_path: Path) -> None:
    workshop = Workshop.apart(tmp_path)
    (tmp_path / "alone").mkdir()
    done = workshop.proofstone(tmp_path / "alone", "solve", GOAL, "--backend", "script:x.yaml")
    assert done.returncode == 2 and "git" in done.stderr, done.stderr


def test_the_help_says_what_the_figures_mean_and_that_nothing_is_committed(workshop: Workshop, root: Path) -> None:
    text = workshop.proofstone(root, "solve", "--help").stdout
    for words in (
        "D   distance",
        "P   how far the approach",
        "∇L  the change",
        "Ω   how much",
        "Nothing is committed",
    ):
        assert words in text

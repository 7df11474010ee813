"""`proofstone run` as a person meets it: what is wrong with a command line is said, and nothing begins."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from proofstone.cli.options import MAX_GOAL_BYTES
from tests.pipeline.reports import REQUEST
from tests.workshop import Workshop

SCRIPT = ("--backend", "script:script.yaml")


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    return Workshop.apart(tmp_path_factory.mktemp("run"))


@pytest.fixture(scope="module")
def root(workshop: Workshop) -> Path:
    root = workshop.repo({"greeting.py": "print('hey')\n"})
    workshop.git(root, "branch", "elsewhere")
    workshop.commit(root, "More")
    (root / "EMPTY.md").write_text(" \n")
    (root / "BINARY.md").write_bytes(b"a\0b")
    (root / "LATIN.md").write_bytes("fine\nCaf\xe9\n".encode("latin-1"))
    (root / "LONG.md").write_text("x" * (MAX_GOAL_BYTES + 1))
    (root / "script.yaml").write_text("[]\n")
    return root


WRONG: Mapping[str, tuple[tuple[str, ...], str]] = {
    "nothing": ((), "REQUEST is missing"),
    "a request without quotes": (("greet", "people's", "names"), """proofstone run 'greet people'"'"'s names'"""),
    "an option that there is not": ((REQUEST, "--fast"), "No such option: --fast"),
    "two requests": ((REQUEST, "--request-file", "EMPTY.md"), "REQUEST and --request-file are both given"),
    "an empty request": ((" ",), "the request is empty"),
    "an empty file": (("--request-file", "EMPTY.md"), "the request is empty"),
    "nothing on standard input": (("-",), "the request is empty"),
    "a request that is too long": (("x" * 50_000,), "the request has 50,000 characters"),
    "a file that is too large": (("--request-file", "LONG.md"), "LONG.md is larger than 200,000 bytes"),
    "a binary file": (("--request-file", "BINARY.md"), "a request is text"),
    "another encoding": (("--request-file", "LATIN.md"), "LATIN.md:2: this is not UTF-8"),
    "no such file": (("--request-file", "none.md"), "--request-file none.md: No such file"),
    "a folder": (("--request-file", "."), "--request-file .: Is a directory"),
    "a lane that there is not": ((REQUEST, "--lane", "fast"), "--lane"),
    "a mode that there is not": ((REQUEST, "--mode", "polite"), "--mode"),
    "a path of the machine": ((REQUEST, "--files", "/etc/passwd"), "--files '/etc/passwd': is not a path relative"),
    "a path outside": ((REQUEST, "--files", "../a.py"), "--files '../a.py': is not a path relative"),
    "no path": ((REQUEST, "--files", ""), "--files '': is not a path relative"),
    "no time": ((REQUEST, "--budget-minutes", "0"), "--budget-minutes 0: must be more than 0"),
    "time that is no number": ((REQUEST, "--budget-minutes", "nan"), "must be more than 0"),
    "no slots": ((REQUEST, "--jobs", "0"), "--jobs"),
    "nobody to ask": ((REQUEST,), "no agent is configured"),
    "a role that there is not": ((REQUEST, "--backend", "tester=human"), "tester"),
    "a script that there is not": ((REQUEST, "--backend", "script:none.yaml"), "none.yaml"),
    "a person without a terminal": ((REQUEST, "--backend", "human"), "`human` needs a terminal"),
    "a budget that is none": ((REQUEST, *SCRIPT, "--budget", "usd"), "usd"),
    "a branch that cannot be": ((REQUEST, *SCRIPT, "--branch", "a..b"), "a..b"),
    "a branch that is somewhere else": ((REQUEST, *SCRIPT, "--branch", "elsewhere"), "the branch elsewhere is at"),
}


@pytest.mark.parametrize("args,words", WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_said_and_nothing_begins(
    workshop: Workshop, root: Path, args: tuple[str, ...], words: str
) -> None:
    before = sorted(root.iterdir()), workshop.git(root, "for-each-ref")
    done = workshop.proofstone(root, "run", *args)
    assert done.returncode == 2 and words in done.stderr and "hint:" in done.stderr, done.stderr
    assert (done.stdout, "Traceback" in done.stderr) == ("", False)
    assert (sorted(root.iterdir()), workshop.git(root, "for-each-ref")) == before
    assert workshop.runs == [], "no run was begun"


def test_what_is_wrong_is_one_document_for_a_program(workshop: Workshop, root: Path) -> None:
    done = workshop.proofstone(root, "run", REQUEST, "--json")
    assert done.returncode == 2
    assert json.loads(done.stdout)["error"]["message"].startswith("no agent is configured")


@pytest.mark.seed("pipeline", "git-hygiene")
def test_changes_that_are_not_committed_are_refused(tmp_path: Path) -> None:
    workshop = Workshop.apart(tmp_path)
    root = workshop.repo({"greeting.py": "print('hey')\n"})
    workshop.write(root, {"greeting.py": "print('ho')\n"})
    done = workshop.proofstone(root, "run", REQUEST, *SCRIPT)
    assert done.returncode == 2 and "greeting.py has changes that are not committed" in done.stderr
    assert "--allow-dirty" in done.stderr and not (root / ".proofstone").exists()


def test_a_folder_that_is_no_repository_is_refused(tmp_path: Path) -> None:
    workshop = Workshop.apart(tmp_path)
    (tmp_path / "alone").mkdir()
    done = workshop.proofstone(tmp_path / "alone", "run", REQUEST, *SCRIPT)
    assert done.returncode == 2 and "git" in done.stderr, done.stderr


def test_the_help_teaches_the_picture_the_commit_and_the_way_back(workshop: Workshop, root: Path) -> None:
    text = workshop.proofstone(root, "run", "--help").stdout
    for words in (
        "research ×4 → approval → specification → design → design review ×3",
        "--backend cli:claude",
        "--backend script:team.yaml",
        "one commit on proofstone/<request>; your branch and your files stay as they are",
        "git revert COMMIT",
        ".proofstone/RUN/",
        "Exit code: 0 committed",
    ):
        assert words in text

"""`proofstone prove` on a catalogue whose outcome is known: what it says, what it exits with, what it leaves."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from dataclasses import dataclass
from typing import Any

import pytest

from tests.check.hazards.processes import control_groups, family_of, running
from tests.prove.conftest import HARD_CODED, catalogue, proved, trick
from tests.workshop import Workshop, command

VERIFIED = 'repair = true\nverify = ["sh test.sh"]'
NO_REPAIR = 'write = { "double.sh" = "echo 5\\n" }'


@dataclass(frozen=True)
class Known:
    code: int
    document: dict[str, Any]

    @property
    def trials(self) -> dict[str, dict[str, Any]]:
        return {one["trick"]: one for one in self.document["trials"]}


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Known:
    """One run of a trick of every kind."""
    workshop = Workshop.apart(tmp_path_factory.mktemp("known"))
    folder = catalogue(
        workshop.folder / "catalogue",
        trick("is-stopped"),
        trick("is-missed", HARD_CODED),
        trick("is-stopped-by-luck", rules=("canary-passed",)),
        trick("has-a-twin-that-fails", honest=NO_REPAIR),
        trick("cannot-be-tried", more='needs = ["no-such-program", "python:no_such_module"]'),
        trick("has-lines-that-fail", "run = 'echo oh >&2; exit 3'"),
        trick("is-not-for-a-gate", more='bare = "would fill the disk"'),
        trick("is-refused", rules=("refused",), honest=VERIFIED).replace(
            'verify = ["sh test.sh"]', 'verify = ["true"]', 1
        ),
        trick("needs-its-variable", "run = 'test \"$ROOT\" = \"$PWD\"'\nenv = { ROOT = '{root}' }"),
    )
    return Known(*proved(workshop, folder, "--family", "own", "--jobs", "2"))


def test_a_trick_that_is_stopped_is_told_with_its_rules(known: Known) -> None:
    one = known.trials["is-stopped"]
    assert one["standing"] == "stopped" and set(one["stopped_by"]) & {"undeclared-file", "protected-file"}
    assert one["honest"]["ending"] == "passed"
    assert one["gate"] == "passes"


def test_a_trick_that_passes_is_not_stopped(known: Known) -> None:
    one = known.trials["is-missed"]
    assert (one["standing"], one["cheat"]["ending"], one["stopped_by"]) == ("not stopped", "passed", [])


def test_being_stopped_by_luck_does_not_count(known: Known) -> None:
    one = known.trials["is-stopped-by-luck"]
    assert one["standing"] == "refused for another reason" and one["stopped_by"] == []


def test_a_twin_that_fails_is_seen(known: Known) -> None:
    assert known.trials["has-a-twin-that-fails"]["honest"]["ending"] == "failed"


def test_what_the_machine_lacks_is_not_tried_and_said(known: Known) -> None:
    one = known.trials["cannot-be-tried"]
    assert one["standing"] == "not tried"
    assert one["why"] == "no-such-program is not installed; python3 cannot import no_such_module"
    assert one["cheat"] is one["honest"] is None
    assert known.document["summary"]["not_tried"] == {one["why"]: 1}


def test_lines_that_fail_are_broken_and_stop_nothing(known: Known) -> None:
    one = known.trials["has-lines-that-fail"]
    assert one["standing"] == "broken" and "exit code 3: oh" in one["why"]


def test_a_check_that_refuses_to_begin_stops_a_trick_that_says_so(known: Known) -> None:
    one = known.trials["is-refused"]
    assert (one["standing"], one["stopped_by"], one["cheat"]["ending"]) == ("stopped", ["refused"], "refused")
    assert "--verify 'true'" in one["cheat"]["reason"] and one["honest"]["ending"] == "passed"


def test_a_trick_can_keep_away_from_the_gate(known: Known) -> None:
    one = known.trials["is-not-for-a-gate"]
    assert (one["standing"], one["gate"], one["why"]) == ("stopped", "not run", "would fill the disk")


def test_the_document_holds_the_sum_and_the_level(known: Known) -> None:
    code, trials, document = known.code, known.trials, known.document
    assert set(document) == {"ok", "level", "trials", "walls", "advice", "summary"}
    assert (code, document["ok"], document["walls"]) == (1, False, [])
    assert document["level"] in ("bubblewrap", "landlock", "plain")
    stopped = [one for one in trials.values() if one["standing"] == "stopped"]
    passed = [one for one in trials.values() if one["honest"] and one["honest"]["ending"] == "passed"]
    summary = document["summary"]
    assert (summary["tricks"], summary["stopped"]) == (8, len(stopped))
    assert summary["honest_passed"] == len(passed)


def test_variables_of_a_trick_are_its_callers(known: Known) -> None:
    assert known.trials["needs-its-variable"]["standing"] != "broken"


def test_all_is_well_when_every_trick_is_stopped_and_every_twin_passes(workshop: Workshop) -> None:
    folder = catalogue(workshop.folder / "c", trick("one", more="quick = true"), trick("two"))
    code, document = proved(workshop, folder, "--quick", "--family", "own")
    assert (code, document["ok"]) == (0, True), document
    assert [(one["trick"], one["gate"]) for one in document["trials"]] == [("one", "not run")]
    assert workshop.leftovers == []


def test_the_table_says_which_trick_came_through_and_how_to_look_at_it(workshop: Workshop) -> None:
    folder = catalogue(workshop.folder / "c", trick("is-stopped"), trick("comes-through", HARD_CODED))
    kept = workshop.folder / "kept"
    asked = ("--trick", "comes-through", "--trick", "is-stopped", "--dir", str(kept))
    done = workshop.proofstone(workshop.folder, "prove", "--catalogue", str(folder), *asked)
    assert done.returncode == 1, done.stderr
    assert "NOT PROVED  1 of 2 tricks stopped, 2 of 2 honest twins passed; 2 of 2 would have passed" in done.stdout
    assert "proofstone prove --trick comes-through --dir DIR" in done.stdout
    assert "proofstone prove --trick is-stopped" not in done.stdout
    assert "2 of 2" in done.stderr and "comes-through" in done.stderr
    assert (kept / "trials/comes-through/cheat/work-tree/double.sh").read_text() == "echo 4\n"
    assert (kept / "trials/comes-through/honest/check.json").stat().st_size
    again = workshop.proofstone(workshop.folder, "prove", "--catalogue", str(folder), *asked)
    assert again.returncode == 2 and "is not empty" in again.stderr


def test_nothing_tried_proves_nothing(workshop: Workshop) -> None:
    folder = catalogue(workshop.folder / "c", trick("one", more='needs = ["no-such-program"]'))
    done = workshop.proofstone(workshop.folder, "prove", "--family", "own", "--catalogue", str(folder))
    assert done.returncode == 1
    assert "NOT PROVED  no trick was tried" in done.stdout
    assert "not tried: 1 (no-such-program is not installed)" in done.stdout


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (("--trick", "gone"), "no trick 'gone'"),
        (("--family", "gone"), "no family 'gone'"),
        (("--quick",), "none of these tricks is a quick one"),
        (("--json", "--markdown"), "choose one"),
        (("--jobs", "0"), "--jobs"),
    ],
)
def test_bad_input_is_refused(workshop: Workshop, args: tuple[str, ...], told: str) -> None:
    folder = catalogue(workshop.folder / "c", trick("one"))
    done = workshop.proofstone(workshop.folder, "prove", "--catalogue", str(folder), *args)
    assert done.returncode == 2 and told in done.stderr


def test_a_machine_without_the_required_sandbox_is_refused(workshop: Workshop) -> None:
    folder = catalogue(workshop.folder / "c", trick("one"))
    programs = workshop.folder / "programs"
    programs.mkdir()
    for name in ("git", "sh", "python3"):
        found = subprocess.run(["which", name], capture_output=True, text=True, check=True).stdout.strip()
        (programs / name).symlink_to(found)
    done = workshop.proofstone(
        workshop.folder, "prove", "--catalogue", str(folder), "--require-sandbox", env={"PATH": str(programs)}
    )
    assert done.returncode == 2 and "a sandbox is required" in done.stderr


@pytest.mark.few(1)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_whoever_leaves_finds_nothing_left_behind(workshop: Workshop, number: signal.Signals) -> None:
    seconds = str(10_000 + os.getpid() * 10 + number)
    folder = catalogue(workshop.folder / "c", trick("sleeps", f"run = 'setsid sleep {seconds} & sleep {seconds}'"))
    process = subprocess.Popen(
        command("prove", "--catalogue", str(folder)),
        cwd=workshop.folder,
        env=workshop.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        process_group=0,
    )
    while len(running("sleep", seconds)) < 2 and process.poll() is None:
        time.sleep(0.02)
    os.kill(process.pid, number)
    _, said = process.communicate()
    assert process.returncode == 128 + number, said
    assert running("sleep", seconds) == []
    assert workshop.leftovers == []
    assert control_groups(process.pid) == []


def test_who_leaves_in_the_middle_of_a_check_finds_nothing_left_behind(workshop: Workshop) -> None:
    seconds = str(10_000_000 + os.getpid())
    sleeping = trick("sleeps").replace('verify = ["sh test.sh"]', f'verify = ["sleep {seconds} && sh test.sh"]')
    folder = catalogue(workshop.folder / "c", sleeping)
    process = workshop.start(workshop.folder, "prove", "--catalogue", str(folder))
    while not running("sleep", seconds) and process.poll() is None:
        time.sleep(0.02)
    family = family_of(process.pid)
    made = [group for member in family for group in control_groups(member)]
    os.killpg(process.pid, signal.SIGINT)
    _, said = process.communicate()
    assert process.returncode == 130, said
    assert running("sleep", seconds) == []
    assert workshop.leftovers == []
    assert len(family) > 1 and [group for group in made if group.exists()] == []

"""`cmd:` executors, as real programs: what they say, what the engine sees, and what it takes for their word."""

from __future__ import annotations

import json
import signal
from dataclasses import replace

import pytest

from proofstone.agents.roles.models.gate import Assignment, ExecutorStatus
from tests.agents.executors.bench import Bench, assigned
from tests.check.hazards.processes import running
from tests.check.hazards.test_processes import odd_number

RESULT = """printf '%s' '{}' > "$PROOFSTONE_RESULT"; exit {}"""


def writing(result: str, code: int = 0) -> str:
    return RESULT.format(result, code)


def test_it_works_in_the_work_tree_and_what_it_writes_stays(bench: Bench) -> None:
    done = bench.run("cat a.txt src/b.txt; echo hello > a.txt; mkdir new; echo n > new/n.txt; rm src/b.txt")
    assert done.claim and done.claim.status is ExecutorStatus.SUCCESS, bench.printed()
    assert done.exit_code == 0 and bench.printed() == "a\nb\n"
    assert (bench.work_tree / "a.txt").read_text() == "hello\n"
    assert bench.files() == {"a.txt", "new/n.txt", "src"}
    assert (bench.root / "a.txt").read_text() == "the person's own\n"


def test_it_is_told_its_task(bench: Bench) -> None:
    bench.run('cp "$PROOFSTONE_TASK" told.json; echo $PROOFSTONE_TASK_ID $PROOFSTONE_ATTEMPT; pwd')
    told = Assignment.model_validate_json((bench.work_tree / "told.json").read_bytes())
    assert told == assigned()
    here = bench.root if bench.strongest else bench.work_tree
    assert bench.printed() == f"task-02 1\n{here}\n"


def test_the_task_cannot_be_rewritten_by_it(strong: Bench) -> None:
    strong.run('echo other > "$PROOFSTONE_TASK"; rm -f "$PROOFSTONE_TASK"; cp "$PROOFSTONE_TASK" seen.json')
    assert Assignment.model_validate_json((strong.work_tree / "seen.json").read_bytes()) == assigned()


def test_what_it_claims_is_kept_as_said(bench: Bench) -> None:
    verification = {"command": "t", "exit_code": 0, "output_summary": "ok"}
    said = {
        "status": "success",
        "files_modified": ["a.txt"],
        "verification": verification,
        "error": None,
        "mood": "good",
    }
    done = bench.run(writing(json.dumps(said)))
    assert done.claim and done.claim.status is ExecutorStatus.SUCCESS, done
    assert done.claim.files_modified == ("a.txt",)
    assert done.claim.verification and done.claim.verification.exit_code == 0


# What is written, the exit code → status and error of the claim.
CLAIMS = {
    "failure": (writing('{"status": "failure", "error": "no"}'), "failure", "no"),
    "failure beside an exit code": (writing('{"status": "failure", "error": "no"}', 3), "failure", "no"),
    "blocked": (writing('{"status": "blocked", "error": "needs task 1"}'), "blocked", "needs task 1"),
    "blocked beside an exit code": (writing('{"status": "blocked", "error": "w"}', 1), "blocked", "w"),
    "success beside an exit code": (
        writing('{"status": "success"}', 4),
        "failure",
        "the result says success, but the program ended with exit code 4",
    ),
    "no result": ("exit 7", "failure", "exit code 7"),
    "no result, and last words": (
        "echo first; echo the last words >&2; exit 7",
        "failure",
        "exit code 7: the last words\nfirst\nthe",
    ),
    "not a program": ("./agent.sh", "failure", "exit code 127:"),
}


@pytest.mark.parametrize("command,status,error", CLAIMS.values(), ids=CLAIMS)
def test_its_word_and_its_exit_code_together_are_the_claim(plain: Bench, command: str, status: str, error: str) -> None:
    done = plain.run(command)
    assert done.claim and (done.claim.status, done.claim.error)[0] == status, done
    assert done.claim.error and done.claim.error.startswith(error)
    assert not done.malformed and not done.crashed


# What is written → what is said about it.
MALFORMED = {
    "nothing in it": (": > $PROOFSTONE_RESULT", "it is empty"),
    "not JSON": ("echo done, all good > $PROOFSTONE_RESULT", "line 1, column 1: it is not JSON"),
    "cut off": (writing('{"status": "success"'), "it is not JSON"),
    "a list": (writing('["success"]'), 'not an object: ["success"]'),
    "another word": (writing('{"status": "finished"}'), "status: input should be 'success', 'failure' or 'blocked'"),
    "no status": (writing('{"task_name": "x"}'), "status: this field is missing"),
    "wrong below": (
        writing('{"status": "success", "verification": {"exit_code": "zero"}}'),
        "verification.exit_code: input should be a valid integer",
    ),
    "success with an error": (writing('{"status": "success", "error": "e"}'), "status is success, so error must be"),
    "blocked without a word": (writing('{"status": "blocked"}'), "status is blocked, so files_modified must be empty"),
    "binary": ("head -c 100 /dev/zero | tr '\\0' '\\377' > $PROOFSTONE_RESULT", "line 1: byte 0 is not UTF-8"),
    "huge": ("head -c 3000000 /dev/zero > $PROOFSTONE_RESULT", "it has 3000000 bytes"),
    "a link": ("ln -s /etc/hostname $PROOFSTONE_RESULT", "symbolic link"),
    "a link to nothing": ("ln -s nowhere $PROOFSTONE_RESULT", "symbolic link"),
    "a directory": ("mkdir $PROOFSTONE_RESULT", "directory"),
    "a pipe": ("mkfifo $PROOFSTONE_RESULT", "pipe"),
    "nested without end": ("yes '{\"a\":' | head -c 1000000 > $PROOFSTONE_RESULT", "nested too deeply"),
}


@pytest.mark.few(6)
@pytest.mark.parametrize("command,words", MALFORMED.values(), ids=MALFORMED)
def test_a_result_that_is_not_of_the_schema_is_malformed_and_says_where(plain: Bench, command: str, words: str) -> None:
    done = plain.run(command)
    assert done.claim is None and done.exit_code == 0
    assert done.malformed.startswith("the result in $PROOFSTONE_RESULT is malformed: ") and words in done.malformed


def test_a_result_as_a_link_is_not_followed_at_any_level(bench: Bench) -> None:
    target = bench.folder / "theirs.json"
    target.write_text('{"status": "success"}')
    assert bench.run(f"ln -s {target} $PROOFSTONE_RESULT").malformed


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM])
def test_an_end_by_signal_is_a_crash(bench: Bench, number: signal.Signals) -> None:
    done = bench.run(f"kill -{int(number)} $$")
    assert done.claim is None and number.name in done.crashed, done
    assert done.exit_code == 128 + number and done.end_reason == done.crashed


def test_a_crash_stands_above_what_it_said_before(plain: Bench) -> None:
    done = plain.run(writing('{"status": "success"}').replace("exit 0", "kill -9 $$"))
    assert done.claim is None and "SIGKILL" in done.crashed


def test_the_deadline_ends_it_and_everything_it_started(bench: Bench) -> None:
    nap = odd_number()
    done = bench.run(
        f"echo half > half.txt; trap '' TERM INT; setsid sleep {nap} & sleep {nap}; sleep {nap}", seconds=1
    )
    assert done.timed_out and done.claim is None and "not finished" in done.end_reason
    assert running("sleep", nap) == []
    assert "half.txt" in bench.files()


def test_processes_left_in_the_background_end_with_it(bench: Bench) -> None:
    nap = odd_number()
    done = bench.run(f"setsid sleep {nap} >/dev/null 2>&1 & (nohup sleep {nap} &) ; echo left")
    assert done.claim and done.claim.status is ExecutorStatus.SUCCESS, bench.printed()
    assert running("sleep", nap) == []


def test_it_is_ended_when_it_is_silent_for_too_long(bench: Bench) -> None:
    nap = odd_number()
    bench.limits = replace(bench.limits, idle_seconds=1)
    done = bench.run(f"for i in 1 2 3 4 5 6; do echo $i; sleep 0.25; done; sleep {nap}")
    assert done.timed_out and done.end_reason == "1 s without any output"
    assert bench.printed().split() == list("123456") and running("sleep", nap) == []


def test_closing_the_output_is_being_silent(bench: Bench) -> None:
    nap = odd_number()
    bench.limits = replace(bench.limits, idle_seconds=0.5)
    assert bench.run(f"exec >/dev/null 2>&1; sleep {nap}").end_reason == "0.5 s without any output"
    assert running("sleep", nap) == []


def test_an_interruption_ends_it(bench: Bench) -> None:
    bench.cancel.set()
    done = bench.run(f"sleep {odd_number()}")
    assert done.cancelled and not done.timed_out and done.claim is None


def test_a_flood_of_output_goes_to_the_sink_and_only_its_end_into_the_claim(plain: Bench) -> None:
    done = plain.run("head -c 20000000 /dev/zero | tr '\\0' 'x'; echo; echo the end; exit 1")
    assert len(plain.output) > 20_000_000
    assert done.claim and done.claim.error and done.claim.error.endswith("the end")
    assert len(done.claim.error) < 5000


def test_the_memory_limit_ends_it(bench: Bench, request: pytest.FixtureRequest) -> None:
    if not request.getfixturevalue("facts").cgroup:
        pytest.skip("no control groups here: memory is not limited")
    bench.limits = replace(bench.limits, memory_mb=64)
    done = bench.run("exec python3 -c 'x = bytearray(400 << 20)'")
    assert done.claim is None and done.crashed == "ended at the memory limit", done


def test_the_same_attempt_can_be_made_again_and_an_old_result_is_not_believed(plain: Bench) -> None:
    assert plain.run(writing('{"status": "blocked", "error": "old"}')).claim
    done = plain.run("exit 0")
    assert done.claim and done.claim.status is ExecutorStatus.SUCCESS

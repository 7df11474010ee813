"""Standard streams that cannot be written to, a folder that is gone, signals: an exit code and a sentence, never a
traceback, and the command's own result is not lost."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from proofstone.cli.process import WriteGuard
from tests.cli.test_root import crash_in
from tests.workshop import START, Workshop

PRINT = "print('result'); return {code}"
RICH = "from rich.console import Console; Console().print('result'); return {code}"
CLOSED = "could not write to standard output: it is closed"
FULL = "could not write to standard output: No space left on device"
GONE = "the reader of standard output went away before everything was written"


def sentence(text: str, code: int) -> str:
    return f"proofstone: {text}\nhint: the command itself ended with exit code {code}; only its output was lost\n"


def shell(redirected: str, start: str, *args: str, cwd: Path) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of `proofstone` started by a shell with these redirections."""
    files = {name: cwd / name for name in ("out", "err", "code")}
    program = '"$0" -W error -c "$@"'
    script = f"{{ {program} {redirected}; echo $? >code; }}" if "|" not in redirected else redirected
    script = script.replace("PROGRAM", program)
    with files["out"].open("w") as out, files["err"].open("w") as err:
        done = subprocess.run(
            ["sh", "-c", script, sys.executable, start, *args],
            cwd=cwd,
            env={**os.environ, "PROOFSTONE_HOME": str(cwd / "home"), "NO_COLOR": "1"},
            stdout=out,
            stderr=err,
            timeout=120,
        )
    assert done.returncode == 0
    return int(files["code"].read_text()), files["out"].read_text(), files["err"].read_text()


NO_READER = "{ PROGRAM; echo $? >code; } | true"


@pytest.mark.few(1, ci=2)
@pytest.mark.parametrize("statement", [PRINT, RICH], ids=["print", "rich"])
def test_output_that_cannot_be_written_is_said_and_a_failure_keeps_its_code(statement: str, tmp_path: Path) -> None:
    table = [
        # redirections, code of the command, exit code, standard output, standard error
        (">&-", 0, 74, "", sentence(CLOSED, 0)),
        (">&-", 1, 1, "", sentence(CLOSED, 1)),
        (">/dev/full", 0, 74, "", sentence(FULL, 0)),
        (">/dev/full", 3, 3, "", sentence(FULL, 3)),
        (NO_READER, 0, 141, "", sentence(GONE, 0)),
        (NO_READER, 1, 1, "", sentence(GONE, 1)),
        ("2>&-", 0, 0, "result\n", ""),
        ("2>/dev/full", 1, 1, "result\n", ""),
        ("<&- >&- 2>&-", 0, 74, "", ""),
        (">/dev/full 2>&1", 0, 74, "", ""),
        ("<&-", 0, 0, "result\n", ""),
    ]
    for redirected, own, code, stdout, stderr in table:
        # The reader may not have ended yet: wait until the pipe has none.
        wait = "import select; pipe = select.poll(); pipe.register(1, 0); pipe.poll(); "
        late = wait if redirected == NO_READER else ""
        start = crash_in("check", late + statement.format(code=own)).replace(
            "'check', 'stand_in', '', ''", "'check', 'stand_in', '', '', True"
        )
        assert shell(redirected, start, "check", cwd=tmp_path) == (code, stdout, stderr), (redirected, own)


def test_errors_and_documents_survive_streams_that_are_closed(tmp_path: Path) -> None:
    bad = ("config", "show", "--json", "--bad")
    code, stdout, _ = shell("2>&-", START, *bad, cwd=tmp_path)
    assert (code, json.loads(stdout)["error"]["exit_code"]) == (2, 2)
    code, _, stderr = shell(">/dev/full", START, *bad, cwd=tmp_path)
    assert code == 2 and "No such option: --bad" in stderr and "Traceback" not in stderr
    assert shell(">&-", START, "nosuch", cwd=tmp_path)[0] == 2, "nothing was to be written to standard output"
    raised = crash_in("x", "raise BrokenPipeError(32, 'a pipe of our own')")
    assert shell("", raised, "x", cwd=tmp_path)[0] == 70, "a pipe that broke elsewhere is no reader of ours"


def test_the_numbers_of_closed_streams_are_not_given_to_other_files(tmp_path: Path) -> None:
    opened = "file = open('opened', 'w'); file.write(str(file.fileno())); return 0"
    assert shell("<&- >&- 2>&-", crash_in("x", opened), "x", cwd=tmp_path)[0] == 0
    assert int((tmp_path / "opened").read_text()) > 2


def test_an_error_after_the_result_adds_no_second_document(tmp_path: Path) -> None:
    late = crash_in("x", "print('{}'); raise InputError('late')")
    assert shell("", late, "x", "--json", cwd=tmp_path)[:2] == (2, "{}\n")


def test_a_stream_that_others_made_non_blocking_is_waited_for() -> None:
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    heard: list[bytes] = []

    def read() -> None:
        while data := os.read(reading, 1 << 16):
            heard.append(data)

    reader = threading.Thread(target=read)
    file = WriteGuard(writing)
    with io.BufferedWriter(file) as stream:
        reader.start()
        stream.write(b"x" * 1_000_000)
    os.close(writing)
    reader.join()
    os.close(reading)
    assert (sum(map(len, heard)), file.lost) == (1_000_000, None)


def test_a_working_directory_that_is_gone_is_said(tmp_path: Path) -> None:
    away = tmp_path / "away"
    table = [
        ((START, "check", "--json"), 2, "the current working directory no longer exists"),
        ((START, "ledger", "verify"), 2, "the current working directory no longer exists"),
        ((START, "--version"), 0, ""),
        # It goes while the command is at work.
        ((crash_in("x", f"import os; os.rmdir({str(away)!r}); os.getcwd()"), "x"), 2, "no longer exists"),
    ]
    for (start, *args), code, message in table:
        away.mkdir(exist_ok=True)
        remove = f"rmdir {away};" if start is START else ""
        done = subprocess.run(
            ["sh", "-c", f'{remove} exec "$0" -c "$@"', sys.executable, start, *args],
            cwd=away,
            env={**os.environ, "PROOFSTONE_HOME": str(tmp_path / "home")},
            capture_output=True,
            text=True,
        )
        assert done.returncode == code, done.stderr
        assert message in done.stderr and "Traceback" not in done.stderr


SIGNAL = "import os, signal, time; os.kill(os.getpid(), signal.{name}); time.sleep({seconds})"


@pytest.mark.parametrize(("name", "code"), [("SIGTERM", 143), ("SIGHUP", 129), ("SIGINT", 130)])
def test_a_signal_is_an_interruption_with_its_own_exit_code(name: str, code: int, tmp_path: Path) -> None:
    start = crash_in("x", SIGNAL.format(name=name, seconds=60))
    message = "interrupted" if name == "SIGINT" else f"interrupted by {name}"
    done, stdout, stderr = shell("", start, "x", "--json", cwd=tmp_path)
    assert (done, stderr) == (code, f"proofstone: {message}\n")
    assert json.loads(stdout)["error"]["exit_code"] == code


def test_a_repeated_termination_signal_lets_the_clean_up_finish_and_ctrl_c_ends_it(tmp_path: Path) -> None:
    cleaning = (
        "import os, signal\n"
        "    try:\n"
        "        os.kill(os.getpid(), signal.SIGHUP)\n"
        "        signal.pause()\n"
        "    finally:\n"
        "        for number in ({numbers}): os.kill(os.getpid(), number)\n"
        "        open('cleaned', 'w').close()"
    )
    start = crash_in("x", cleaning.format(numbers="signal.SIGHUP, signal.SIGTERM"))
    assert shell("", start, "x", cwd=tmp_path)[0] == 129
    (tmp_path / "cleaned").unlink()
    start = crash_in("x", cleaning.format(numbers="signal.SIGINT,"))
    assert shell("", start, "x", cwd=tmp_path)[0] == 129
    assert not (tmp_path / "cleaned").exists()


def test_a_signal_that_was_ignored_at_the_start_stays_ignored(tmp_path: Path) -> None:
    start = crash_in("x", SIGNAL.format(name="SIGHUP", seconds=0) + "; return 5")
    assert shell("", start, "x", cwd=tmp_path)[0] == 129
    done = subprocess.run(
        ["sh", "-c", 'trap "" HUP; exec "$0" -c "$@"', sys.executable, start, "x"], cwd=tmp_path, capture_output=True
    )
    assert (done.returncode, done.stderr) == (5, b"")


def test_the_handlers_of_whoever_calls_main_are_put_back() -> None:
    from proofstone.cli.process import handle_termination_signals

    before = signal.getsignal(signal.SIGTERM)
    with handle_termination_signals():
        assert signal.getsignal(signal.SIGTERM) is not before
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_check_whose_report_cannot_be_written_keeps_its_verdict(tmp_path: Path) -> None:
    workshop = Workshop.apart(tmp_path)
    root = workshop.repo({"value.txt": "good\n"})
    workshop.write(root, {"value.txt": "good too\n"})
    for word, code in (("good", 74), ("bad", 1)):
        command = '"$@" >/dev/full; echo "code $?" >&2'
        done = workshop.proofstone(
            root, "check", "--verify", f"grep -q {word} value.txt", wrap=("sh", "-c", command, "sh")
        )
        assert f"code {code}\n" in done.stderr and FULL in done.stderr
        assert "Traceback" not in done.stderr
    outcomes = workshop.proofstone(root, "ledger", "query", "SELECT outcome FROM runs ORDER BY run_id", "--json")
    assert [row["outcome"] for row in json.loads(outcomes.stdout)["rows"]] == ["passed", "failed"]


def test_an_agent_whose_answer_is_lost_is_sent_back_by_the_exit_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from proofstone.app.agent_stop import AgentStopAnswer
    from proofstone.cli import hook
    from proofstone.cli.main import main

    monkeypatch.setattr(sys, "stdin", io.StringIO("{}"))
    monkeypatch.setattr(hook, "answer_agent_stop", lambda _: AgentStopAnswer(send_back="1 test fails"))
    assert main(["hook", "run", "agent-stop", "--agent", "claude"]) == 0
    monkeypatch.setattr(sys, "stdin", io.StringIO("{}"))
    monkeypatch.setattr(hook, "find_output_error", lambda: OSError(28, "No space left on device"))
    assert main(["hook", "run", "agent-stop", "--agent", "claude"]) == 2
    assert "1 test fails" in capsys.readouterr().err

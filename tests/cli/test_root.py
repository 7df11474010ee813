"""The command line's root: fast for simple questions, exact about what went wrong."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from proofstone import __version__
from proofstone.cli.main import COMMANDS, Command, format_root_help, main
from tests.workshop import START, proofstone

HEAVY = (
    "typer",
    "click",
    "rich",
    "pydantic",
    "proofstone.config",
    "proofstone.machine",
    "proofstone.runtime",
    "dataclasses",
)


def crash_in(command: str, statement: str) -> str:
    """A program that starts `proofstone` with `command` replaced by one that executes `statement`."""
    return (
        "import sys, types, typer\n"
        "from proofstone.errors import *\n"
        "from proofstone.cli import main as root\n"
        "module = types.ModuleType('stand_in')\n"
        "module.app = typer.Typer(add_completion=False)\n"
        "@module.app.command()\n"
        "def run(as_json: bool = typer.Option(False, '--json')) -> None:\n"
        f"    {statement}\n"
        "sys.modules['stand_in'] = module\n"
        f"root.COMMANDS = (root.Command('{command}', 'stand_in', '', ''),)\n"
        "sys.exit(root.main())\n"
    )


@pytest.mark.parametrize("args", [(), ("--help",), ("-h",), ("help",), ("--version",)])
def test_simple_questions_are_answered_without_importing_anything_heavy(args: tuple[str, ...], tmp_path: Path) -> None:
    start = (
        "import sys; from proofstone.cli.main import main; code = main()\n"
        f"loaded = [name for name in {HEAVY!r} if name in sys.modules]\n"
        "sys.exit(f'loaded: {loaded}' if loaded else code)"
    )
    done = proofstone(*args, home=tmp_path / "home", start=start)
    assert done.stderr == ""
    assert done.returncode == 0
    assert done.stdout == (f"proofstone {__version__}\n" if args == ("--version",) else format_root_help())


def test_a_command_imports_its_own_module_and_no_other_commands(tmp_path: Path) -> None:
    start = (
        "import sys; from proofstone.cli import main as root; code = root.main()\n"
        "loaded = {c.name for c in root.COMMANDS if c.module in sys.modules}\n"
        "sys.exit(0 if loaded == {'config'} else f'loaded: {loaded}')"
    )
    done = proofstone("config", "show", home=tmp_path / "home", start=start)
    assert (done.returncode, done.stderr) == (0, "")


def test_every_command_of_the_table_is_in_the_help_under_its_heading() -> None:
    page = format_root_help()
    for command in COMMANDS:
        assert f"  {command.name} " in page.partition(f"{command.group}:")[2]
        assert command.summary in page
    assert len({command.name for command in COMMANDS}) == len(COMMANDS)


@pytest.mark.parametrize(
    ("args", "message", "hint"),
    [
        (("confg",), "proofstone: no command 'confg'\n", "hint: did you mean `proofstone config`?\n"),
        (("zzzzzz",), "proofstone: no command 'zzzzzz'\n", "check, "),
        (("--quiet",), "proofstone: no option --quiet before a command", "hint: "),
        (("config",), "proofstone: Missing command.", "hint: `proofstone config --help`"),
        (("config", "shw"), "proofstone: No such command 'shw'.", "hint: `proofstone config --help`"),
        (("config", "show", "--jsn"), "proofstone: No such option: --jsn", "--json"),
        (("config", "show", "--repo"), "proofstone: ", "--repo"),
        (("config", "show", "--repo", "nowhere"), "proofstone: --repo nowhere: there is no such directory", ""),
    ],
)
def test_a_wrong_command_line_exits_2_and_says_what_would_be_right(
    args: tuple[str, ...], message: str, hint: str, tmp_path: Path
) -> None:
    done = proofstone(*args, home=tmp_path / "home")
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith(message)
    assert hint in done.stderr


def test_an_error_with_json_is_also_one_document_on_stdout(tmp_path: Path) -> None:
    (tmp_path / "proofstone.toml").write_text("[check]\nbse = 1\n")
    done = proofstone("config", "show", "--json", home=tmp_path / "home", cwd=tmp_path)
    assert done.returncode == 2
    error = json.loads(done.stdout)["error"]
    assert error["type"] == "ConfigError"
    assert error["exit_code"] == 2
    assert error["message"].startswith("proofstone.toml:2: check.bse:")
    assert done.stderr.startswith(f"proofstone: {error['message']}\nhint: {error['hint']}\n")


def test_the_lines_of_a_long_message_stay_together(tmp_path: Path) -> None:
    done = proofstone("x", home=tmp_path / "home", start=crash_in("x", "raise InputError('one\\ntwo', hint='three')"))
    assert (done.returncode, done.stderr) == (2, "proofstone: one\n       two\nhint: three\n")


def test_a_message_cannot_drive_the_terminal(tmp_path: Path) -> None:
    (tmp_path / "proofstone.toml").write_text('"a\\u001b[2J" = 1\n')
    done = proofstone("config", "show", home=tmp_path / "home", cwd=tmp_path)
    assert done.returncode == 2
    assert "a\\x1b[2J: no such setting" in done.stderr
    assert "\x1b" not in done.stderr


@pytest.mark.parametrize("statement", ["1 / 0", "raise InternalError('cannot be')"])
def test_our_own_fault_exits_70_and_names_a_report_that_only_we_can_read(statement: str, tmp_path: Path) -> None:
    home = tmp_path / "home"
    done = proofstone("x", "--json", home=home, start=crash_in("x", statement))
    assert done.returncode == 70
    assert "Traceback" not in done.stderr
    [report] = (home / "reports").iterdir()
    assert str(report) in done.stderr
    assert json.loads(done.stdout)["error"]["report"] == str(report)
    assert stat.S_IMODE(report.stat().st_mode) == 0o600
    assert stat.S_IMODE((home / "reports").stat().st_mode) == 0o700
    text = report.read_text()
    assert "Traceback" in text
    assert __version__ in text
    assert "'x', '--json'" in text


def test_a_state_directory_that_cannot_be_used_does_not_lose_the_report(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.write_text("a file")
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    done = proofstone("x", home=home, env={"TMPDIR": str(temporary)}, start=crash_in("x", "1 / 0"))
    assert done.returncode == 70
    [report] = temporary.iterdir()
    assert str(report) in done.stderr


@pytest.mark.parametrize("statement", ["raise KeyboardInterrupt", "raise typer.Abort", "raise EOFError"])
def test_an_interruption_exits_130(statement: str, tmp_path: Path) -> None:
    done = proofstone("x", home=tmp_path / "home", start=crash_in("x", statement))
    assert (done.returncode, done.stderr) == (130, "proofstone: interrupted\n")


@pytest.mark.parametrize(("statement", "code"), [("return 3", 3), ("raise typer.Exit(4)", 4), ("pass", 0)])
def test_a_command_sets_the_exit_code(statement: str, code: int, tmp_path: Path) -> None:
    assert proofstone("x", home=tmp_path / "home", start=crash_in("x", statement)).returncode == code


@pytest.mark.parametrize("args", [("--version",), ("config", "schema")])
def test_a_reader_who_goes_away_is_no_error(args: tuple[str, ...], tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", START, *args],
        env={**os.environ, "PROOFSTONE_HOME": str(tmp_path), "PYTHONUNBUFFERED": ""},  # what is buffered fails last
        stdout=writing,
        stderr=subprocess.PIPE,
    )
    os.close(writing)
    assert done.stderr == b""
    assert done.returncode == 128 + signal.SIGPIPE


def test_text_that_the_terminal_cannot_show_is_escaped(tmp_path: Path) -> None:
    statement = "sys.stdout.write('caf\\u00e9 \\udcff\\n')"
    done = proofstone("x", home=tmp_path / "home", env={"PYTHONIOENCODING": "ascii"}, start=crash_in("x", statement))
    assert (done.returncode, done.stdout, done.stderr) == (0, "caf\\xe9 \\udcff\n", "")


def test_help_of_a_command_is_its_own_page(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["help", "config"]) == 0
    by_help = capsys.readouterr().out
    assert main(["config", "--help"]) == 0
    assert capsys.readouterr().out == by_help
    assert by_help.startswith("Usage: proofstone config ")


def test_a_command_is_a_row_of_the_table() -> None:
    assert Command("a", "b", "c", "d") == ("a", "b", "c", "d", False)


def test_an_interruption_that_leaves_a_lock_let_go_twice_is_an_interruption(tmp_path: Path) -> None:
    late = (
        "import threading; lock = threading.Lock()\n    with lock:\n"
        "        lock.release()\n        raise KeyboardInterrupt"
    )
    done = subprocess.run(
        [sys.executable, "-c", crash_in("check", late), "check"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (130, "proofstone: interrupted\n")


def test_an_interruption_while_a_model_is_built_is_an_interruption(tmp_path: Path) -> None:
    """pydantic quotes what interrupted it, and raises an error of its own."""
    quoted = (
        "from pydantic_core import SchemaError\n    "
        "raise SchemaError('Error building \"model\" validator:\\n  KeyboardInterrupt: ')"
    )
    done = subprocess.run(
        [sys.executable, "-c", crash_in("check", quoted), "check"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (130, "proofstone: interrupted\n")


def test_a_lock_let_go_twice_without_an_interruption_is_a_fault(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", crash_in("check", "import threading; threading.Lock().release()"), "check"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PROOFSTONE_HOME": str(tmp_path)},
    )
    assert done.returncode == 70
    assert "release unlocked lock" in done.stderr

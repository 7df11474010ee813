"""The root of the command line: a table of commands, and the one place that turns errors into exit codes.

`proofstone`, `proofstone --help` and `proofstone --version` are answered from the table. Each command is imported only
when it is called, so that the others start fast. A command module has `app`, a `typer.Typer` with one command (`check`)
or several (`config show`). A command returns its exit code, or nothing for 0, and raises errors from
`proofstone.errors`.

Exit codes: 0 passed, 1 refused, 2 bad input or configuration, 3 waiting for a person, 4 budget exhausted, 70 internal
error (with a report), 74 output could not be written, 129, 130 and 143 interrupted by SIGHUP, SIGINT and SIGTERM, 141
the reader of the output went away. `docs/reference/exit-codes.md` has the table.
"""

from __future__ import annotations

import errno
import os
import sys
from typing import TYPE_CHECKING, Final, NamedTuple

from proofstone import __version__
from proofstone.cli.process import (
    SignalRecord,
    find_output_error,
    guard_standard_streams,
    handle_termination_signals,
    has_output,
    unmask_interrupts,
)
from proofstone.errors import InputError, MachineError, ProofstoneError, RepositoryError

if TYPE_CHECKING:
    from typer import Typer


EXIT_INTERNAL: Final = 70
EXIT_OUTPUT_LOST: Final = 74
EXIT_READER_GONE: Final = 141


class Command(NamedTuple):
    """A row of the table of commands."""

    name: str
    module: str
    summary: str
    group: str
    is_run: bool = False
    """Whether the output of the command is the result of a run, so that losing it must be reported."""


COMMANDS: Final[tuple[Command, ...]] = (
    Command("check", "proofstone.cli.check", "Verify the changes in this repository", "Start here", is_run=True),
    Command("hook", "proofstone.cli.hook", "Make git refuse commits without passing evidence", "Start here"),
    Command("init", "proofstone.cli.init", "Set this repository up, and run a first check", "Start here"),
    Command(
        "explain", "proofstone.cli.explain", "Explain the rule of a finding, and what to do about it", "Start here"
    ),
    Command(
        "run",
        "proofstone.cli.run",
        "Build a feature, from a request to one verified commit",
        "Plans and runs",
        is_run=True,
    ),
    Command(
        "gate",
        "proofstone.cli.gate",
        "Run the tasks of a plan, and commit only what passes",
        "Plans and runs",
        is_run=True,
    ),
    Command(
        "solve",
        "proofstone.cli.solve",
        "Pursue a goal in rounds; each plan learns from the last",
        "Plans and runs",
        is_run=True,
    ),
    Command(
        "verify-plan",
        "proofstone.cli.verify_plan",
        "Challenge a plan before work starts",
        "Plans and runs",
        is_run=True,
    ),
    Command(
        "plan",
        "proofstone.cli.plan",
        "Find the mistakes in a plan without running anything",
        "Plans and runs",
        is_run=True,
    ),
    Command("runs", "proofstone.cli.runs", "List all runs and their outcomes", "Plans and runs"),
    Command("status", "proofstone.cli.status", "Show the state of a run and what it needs from you", "Plans and runs"),
    Command("resume", "proofstone.cli.resume", "Resume a run that stopped", "Plans and runs"),
    Command("cancel", "proofstone.cli.cancel", "Stop a run for good", "Plans and runs"),
    Command("answer", "proofstone.cli.answer", "Answer the questions of a run", "People and evidence"),
    Command("approve", "proofstone.cli.approve", "Approve or reject what waits for you", "People and evidence"),
    Command(
        "dispute",
        "proofstone.cli.dispute",
        "Say that a test or requirement is wrong; a person decides",
        "People and evidence",
    ),
    Command("amend", "proofstone.cli.amend", "Add a requirement to a run that is under way", "People and evidence"),
    Command("done", "proofstone.cli.done", "Tell a run that you finished what it waits for", "People and evidence"),
    Command("skip", "proofstone.cli.skip", "Accept a task yourself, unverified and uncommitted", "People and evidence"),
    Command("force", "proofstone.cli.force", "Skip every check of a task, in an emergency", "People and evidence"),
    Command(
        "bundle",
        "proofstone.cli.bundle",
        "Show the result of a run and its evidence on one page",
        "People and evidence",
    ),
    Command("ledger", "proofstone.cli.ledger", "Verify, show, query and export the evidence", "People and evidence"),
    Command(
        "audit",
        "proofstone.cli.audit",
        "Show boundary violations and other findings of the auditor",
        "People and evidence",
    ),
    Command(
        "memory", "proofstone.cli.memory", "List, search and forget what earlier tasks taught", "People and evidence"
    ),
    Command(
        "ci", "proofstone.cli.ci", "Check a pull request in CI, and report to the code host", "Set up and maintain"
    ),
    Command(
        "export",
        "proofstone.cli.export",
        "Make your coding agent check its work with Proofstone",
        "Set up and maintain",
    ),
    Command(
        "replay",
        "proofstone.cli.replay",
        "See what the checks would have said about merged commits",
        "Set up and maintain",
        is_run=True,
    ),
    Command("doctor", "proofstone.cli.doctor", "Show what this machine has and what it lacks", "Set up and maintain"),
    Command("config", "proofstone.cli.config", "Show the settings in force, and their schema", "Set up and maintain"),
    Command("trust", "proofstone.cli.trust", "Grant what the settings of a repository need", "Set up and maintain"),
    Command("manual", "proofstone.cli.manual", "Show a page of the manual", "Set up and maintain"),
    Command(
        "completion",
        "proofstone.cli.completion",
        "Print a script that completes commands in your shell",
        "Set up and maintain",
    ),
    Command(
        "backends",
        "proofstone.cli.backends",
        "Show the backend of each role, and whether it is ready",
        "Set up and maintain",
    ),
    Command(
        "agents", "proofstone.cli.agents", "Write the agents as files for your coding agent", "Set up and maintain"
    ),
    Command(
        "ask",
        "proofstone.cli.ask",
        "Ask one agent one question, to try a role, a model or a prompt",
        "Set up and maintain",
        is_run=True,
    ),
    Command("record", "proofstone.cli.record", "Write a run as a script that repeats it", "Set up and maintain"),
    Command(
        "prove",
        "proofstone.cli.prove",
        "Try every known trick against the checks on this machine",
        "Set up and maintain",
        is_run=True,
    ),
    Command("simulate", "proofstone.cli.simulate", "Compare the policies of the control loop", "Set up and maintain"),
    Command(
        "demo",
        "proofstone.cli.demo",
        "Watch the whole pipeline with scripted agents",
        "Set up and maintain",
        is_run=True,
    ),
)


def main(argv: list[str] | None = None) -> int:
    """Run one command line and return its exit code."""
    args = sys.argv[1:] if argv is None else argv
    guard_standard_streams()
    with handle_termination_signals() as received:
        code = _run_guarded(args, received)
    sys.stdout.flush()
    error = find_output_error()
    return code if error is None else _report_lost_output(args, error, code)


def _run_guarded(args: list[str], received: SignalRecord) -> int:
    """Run the command and turn every exception into an exit code."""
    try:
        with unmask_interrupts():
            code = _dispatch(args)
            sys.stdout.flush()
            return code
    except KeyboardInterrupt:
        _print_message(received.message, None)
        _print_error(args, "Interrupted", received.message, None, received.exit_code)
        return received.exit_code
    except OSError as error:
        return _fail(args, _as_machine_error(error))
    except Exception as error:  # noqa: BLE001  the outermost frame: anything else is an internal error
        return _fail(args, error)


def _report_lost_output(args: list[str], error: OSError, code: int) -> int:
    """Report that a part of the output is missing. A failed command keeps its exit code, which says more; a successful
    one must not look as if it had delivered its result."""
    hint = f"the command itself ended with exit code {code}; only its output was lost"
    if error.errno == errno.EPIPE:
        if any(command.name in args[:1] and command.is_run for command in COMMANDS):
            _print_message("the reader of standard output went away before everything was written", hint)
        return code or EXIT_READER_GONE
    why = "it is closed" if error.errno == errno.EBADF else error.strerror
    _print_message(f"could not write to standard output: {why}", hint)
    return code or EXIT_OUTPUT_LOST


def _dispatch(args: list[str]) -> int:
    match args:
        case [] | ["--help" | "-h", *_] | ["help"]:
            sys.stdout.write(format_root_help())
            return 0
        case ["--version" | "-V", *_]:
            sys.stdout.write(f"proofstone {__version__}\n")
            return 0
        case ["help", name]:
            return _run(_find(name), ["--help"])
        case [first, *_] if first.startswith("-"):
            raise InputError(
                f"no option {first} before a command; options come after it: proofstone check {first}",
                hint="`proofstone --help` lists the commands",
            )
        case [first, *rest]:
            return _run(_find(first), rest)
    raise AssertionError(args)  # the patterns above cover every list


def format_root_help() -> str:
    """Return the help page: the commands, grouped, in the order of the table."""
    lines = [
        "Usage: proofstone COMMAND [OPTIONS]",
        "",
        "Verifies the work of AI agents: runs every check itself, keeps the evidence,",
        "and lets through only what passes.",
    ]
    width = max(len(command.name) for command in COMMANDS)
    for group in dict.fromkeys(command.group for command in COMMANDS):
        lines += ["", f"{group}:"]
        lines += [f"  {command.name:<{width}}  {command.summary}" for command in COMMANDS if command.group == group]
    lines += ["", "`proofstone COMMAND --help` shows the options.  `proofstone --version` prints the version.", ""]
    return "\n".join(lines)


def load_app(command: Command) -> Typer:
    """Import the module of a command. Its help is plain text, so that it can be quoted and rich need not load."""
    from importlib import import_module

    app: Typer = import_module(command.module).app
    app.rich_markup_mode = None
    return app


def _find(name: str) -> Command:
    for command in COMMANDS:
        if command.name == name:
            return command
    from difflib import get_close_matches

    names = [command.name for command in COMMANDS]
    near = get_close_matches(name, names, n=1)
    hint = f"did you mean `proofstone {near[0]}`?" if near else f"there are: {', '.join(names)}"
    raise InputError(f"no command {name!r}", hint=hint)


def _run(command: Command, args: list[str]) -> int:
    _refuse_unusable_folder()
    app = load_app(command)

    import typer

    from proofstone.cli.output import UsageError

    program = f"proofstone {command.name}"
    entry = typer.main.get_command(app)
    try:
        with entry.make_context(program, list(args)) as context:
            code = entry.invoke(context)
    except typer.Exit as leave:
        return leave.exit_code
    except (typer.Abort, EOFError):
        raise KeyboardInterrupt from None  # the person left a question unanswered
    except UsageError as error:
        message = error.format_message().replace("Value error, ", "")
        raise InputError(message, hint=f"`{_command_path(error) or program} --help` shows the options") from error
    return code if isinstance(code, int) else 0


def _refuse_unusable_folder() -> None:
    """Refuse a working directory that is gone or whose path is too long: git and other programs fail there with unclear
    messages."""
    try:
        folder = os.getcwd()  # noqa: PTH109  `pathlib` need not be imported for this
    except FileNotFoundError:
        raise RepositoryError(
            "the current working directory no longer exists", hint="change to another directory, for instance: cd ~"
        ) from None
    from proofstone.machine.files import PATH_BYTES, path_too_long_error

    if len(os.fsencode(folder)) > PATH_BYTES:
        raise path_too_long_error(folder)


def _command_path(error: Exception) -> str:
    """Return the command that was misused, with its parent commands."""
    return str(getattr(getattr(error, "ctx", None), "command_path", ""))


def _fail(args: list[str], error: Exception) -> int:
    """Report an error to the person, and with `--json` to the calling program."""
    exit_code = error.exit_code if isinstance(error, ProofstoneError) else EXIT_INTERNAL
    message = error.message if isinstance(error, ProofstoneError) else f"{type(error).__name__}: {error}"
    hint = error.hint if isinstance(error, ProofstoneError) else None
    report = None
    if exit_code == EXIT_INTERNAL:
        from proofstone.cli.process import write_report

        report = str(write_report(args, error))
        message = f"internal error: {message}"
        hint = f"this is a bug in Proofstone; the details are in {report}"
    _print_message(message, hint)
    _print_error(args, type(error).__name__, message, hint, exit_code, report)
    return exit_code


def _print_error(
    args: list[str], kind: str, message: str, hint: str | None, exit_code: int, report: str | None = None
) -> None:
    """With `--json`, print the error as the document, unless a result was printed already."""
    if "--json" not in args or has_output():
        return
    import json

    body = {"type": kind, "message": message, "hint": hint, "exit_code": exit_code}
    sys.stdout.write(json.dumps({"error": body | ({"report": report} if report else {})}) + "\n")


def _as_machine_error(error: OSError) -> Exception:
    """Return a MachineError for a full disk, a missing permission and the like, which the person can fix."""
    hints = {
        (errno.ENOSPC, errno.EDQUOT, errno.EIO): "make room, or set PROOFSTONE_HOME to a folder on another disk",
        (errno.EACCES, errno.EPERM, errno.EROFS): "set PROOFSTONE_HOME to a folder that you may write to",
        (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN): "the machine is out of files, memory or processes",
    }
    if error.errno == errno.ENOENT:
        try:
            _refuse_unusable_folder()
        except RepositoryError as missing:
            return missing
    if error.errno == errno.ENAMETOOLONG and isinstance(error.filename, str | bytes):
        from proofstone.machine.files import path_too_long_error

        return path_too_long_error(error.filename)
    for numbers, hint in hints.items():
        if error.errno in numbers:
            where = f"{error.filename}: " if error.filename else ""
            return MachineError(f"{where}{error.strerror}", hint=hint)
    return error


def _print_message(message: str, hint: str | None) -> None:
    from proofstone.common.text import escape_control

    indented = message.replace("\n", "\n       ")
    sys.stderr.write(escape_control(f"proofstone: {indented}\n" + (f"hint: {hint}\n" if hint else "")))

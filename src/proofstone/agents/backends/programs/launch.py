"""Prepare one run of a program and turn its output into a turn.

The program gets its own HOME with the user's real login in it, the variables that it may have, and the hosts that it
may reach.
"""

from __future__ import annotations

import os
import shlex
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from pydantic import JsonValue

from proofstone.agents.backends.cmd import build_outcome_fault
from proofstone.agents.backends.programs.activity import ActivityLog, KeyMask, replace_surrogates
from proofstone.agents.backends.programs.discovery import InstalledProgram
from proofstone.agents.backends.programs.preset import FileArgument, Invocation, LaunchRequest, ProgramResult
from proofstone.agents.backends.transcript import build_tool_calls, parse_tool_calls, render_program_prompt
from proofstone.agents.executors.context import ExecutionContext, ShellCommand
from proofstone.agents.executors.output import OutputTail, read_output_file
from proofstone.agents.executors.programs import find_failed_outcome
from proofstone.agents.models import Activity, ActivityKind, Conversation, Fault, FaultKind, Turn
from proofstone.agents.roles.models.gate import ExecutorResult, ExecutorStatus
from proofstone.agents.roles.models.solve import SolveExecutionOutput
from proofstone.agents.rules.answer import MalformedAnswer, parse_answer
from proofstone.machine.files import remove_folder
from proofstone.sandbox.job import PrivateHome, SandboxResult

_MAX_ERROR_BYTES = 8 << 20
_MAX_SHOWN_LINES = 20
_MAX_EVIDENCE_CHARS = 8000
"""Characters of an executor's own text that are kept as its evidence."""
_CUT_OFF = "its model was cut off at the limit of output tokens, before it was done"
_PORTS: Mapping[str, int] = {"https": 443, "wss": 443, "http": 80, "ws": 80}
EXECUTOR_ROLE = "executor"
_MAX_LINKS = 40


@dataclass(frozen=True)
class PreparedRun:
    """A job that is ready to run, and where its standard error goes."""

    job: ShellCommand
    errors: Path
    mask: KeyMask

    def read_last_lines(self) -> str:
        """Return the last lines of the program's standard error."""
        written = read_output_file(self.errors, _MAX_ERROR_BYTES)
        if isinstance(written, MalformedAnswer):
            return f"(its standard error: {written.why})"
        tail = OutputTail()
        tail.add(self.mask((written or b"").decode("utf-8", "replace")).encode("utf-8", "replace"))
        return tail.lines(_MAX_SHOWN_LINES)


@contextmanager
def prepare_run(
    program: InstalledProgram, invocation: Invocation, site: ExecutionContext, seconds: float | None, notes: ActivityLog
) -> Iterator[PreparedRun]:
    """Prepare a run. When it is over, the activities that still wait in `notes`, those of the turn, are recorded."""
    folder = Path(tempfile.mkdtemp(prefix="program-", dir=site.scratch))
    try:
        input_files = dict(invocation.files) | (
            {"PROOFSTONE_PROMPT": invocation.stdin} if invocation.stdin is not None else {}
        )
        errors = folder / "errors" / "errors.txt"
        errors.parent.mkdir(mode=0o700)
        variables = read_user_variables(program)
        job = ShellCommand(
            command=_build_command(program, invocation),
            seconds=seconds,
            # PROOFSTONE_TASK tells our own commands that an agent runs them; they refuse what only a person may do.
            env={"PROOFSTONE_TASK": "in the prompt", **variables, **invocation.variables},
            reads={
                _get_variable(name): _write_file(folder / "given" / name, content)
                for name, content in input_files.items()
            },
            writes={"PROOFSTONE_ERRORS": errors},
            home=_build_home(program, invocation, folder / "home"),
            hosts=list_allowed_hosts(program, {**variables, **invocation.variables}),
            visible=_list_program_folders(program.argv[0]),
            is_output_shown=False,
            say=site.say,
            on_refused=lambda host: notes.queue(_build_refusal(host)),
            mask=notes.mask.raw,
        )
        yield PreparedRun(job, errors, notes.mask)
    finally:
        remove_folder(folder)
        notes.flush()


def build_launch_request(
    program: InstalledProgram, conversation: Conversation, site: ExecutionContext
) -> LaunchRequest:
    works = conversation.occasion.role == EXECUTOR_ROLE
    has_own_schema = program.preset is not None and program.preset.has_schema_option and program.spec.startswith("cli:")
    return LaunchRequest(
        prompt=render_program_prompt(conversation, works=works, tools=not has_own_schema),
        model=program.model,
        scope=site.scope,
        files=tuple(path for path in site.scope if (site.work_tree / path).is_file()),
        can_run=any(tool.name == "run" for tool in conversation.tools),
        level=site.level,
        root=site.sandbox_path or site.work_tree,
        schema=None if works else conversation.output_schema,
        variables=read_user_variables(program),
    )


def convert_result(
    conversation: Conversation, final: ProgramResult, program: InstalledProgram, mask: KeyMask
) -> Turn | Fault:
    """Return the program's result as a turn.

    An executor may describe its work in free text. It is a claim either way, and asking again for the right form would
    make the executor repeat all of the work.
    """
    if final.fault is not None and not _is_malformed_answer(final):
        return final.fault.model_copy(update={"why": mask(final.fault.why), "usage": final.usage})
    works = conversation.occasion.role == EXECUTOR_ROLE
    text = mask(replace_surrogates(final.text))
    calls = () if works else build_tool_calls(conversation, parse_tool_calls(text))
    return Turn(
        text="" if calls else text,
        answer=_build_claim(conversation, text, cut=final.is_cut_off)
        if works and not conversation.open_question
        else None,
        calls=calls,
        cut=final.is_cut_off,
        model=mask(final.model) or program.spec,
        usage=final.usage,
        acted=works,
    )


def _is_malformed_answer(final: ProgramResult) -> bool:
    """Return whether the program itself rejected its model's answer. The model is shown why, as for any other
    answer."""
    return final.fault is not None and final.fault.kind is FaultKind.MALFORMED and bool(final.text.strip())


def find_execution_fault(execution: SandboxResult, last_lines: str) -> Fault | None:
    """Return why the execution did not end normally, or None if it did."""
    outcome = find_failed_outcome(execution)
    return build_outcome_fault(outcome, last_lines) if outcome else None


def has_acted(conversation: Conversation, execution: SandboxResult) -> bool:
    """Return whether the program may have changed the work tree, however it ended."""
    return conversation.occasion.role == EXECUTOR_ROLE and not execution.setup_error


def build_mask(program: InstalledProgram) -> KeyMask:
    return KeyMask.from_variables(read_user_variables(program))


def read_user_variables(program: InstalledProgram) -> dict[str, str]:
    """Return the user's variables for the program: only those that the preset and the user name."""
    names = (*(program.preset.keys if program.preset else ()), *program.settings.pass_through)
    return {name: os.environ[name] for name in names if name in os.environ} | dict(program.settings.set)


def list_allowed_hosts(program: InstalledProgram, variables: Mapping[str, str]) -> tuple[str, ...]:
    default_hosts = program.preset.hosts if program.preset else ()
    hosts_in_urls = [host for value in variables.values() if (host := _parse_host(value))]
    return tuple(dict.fromkeys((*default_hosts, *program.settings.hosts, *hosts_in_urls)))


def _list_login_folders(program: InstalledProgram) -> tuple[str, ...]:
    """Return the paths below HOME that hold the login."""
    return (*(program.preset.login if program.preset else ()), *program.settings.share)


def _build_refusal(host: str) -> Activity:
    return Activity(kind=ActivityKind.REFUSED, name="network", text=f"a connection to {host}, which is not allowed")


def _list_program_folders(path: str) -> tuple[Path, ...]:
    """Return the folders that the program needs in order to run: where it is called, where each link on the way is,
    where it really is, and our own interpreter, which runs the hook."""
    current, folders = Path(path), [Path(path).parent]
    while current.is_symlink() and len(folders) < _MAX_LINKS:
        current = Path(os.path.normpath(current.parent / current.readlink()))
        folders.append(current.parent)
    real = Path(path).resolve()
    modules = next((parent.parent for parent in real.parents if parent.name == "node_modules"), real.parent)
    return (*dict.fromkeys((*folders, modules)), Path(sys.base_prefix))


def _parse_host(value: str) -> str:
    try:
        url = urlsplit(value)
        port = url.port or _PORTS.get(url.scheme)
    except ValueError:
        return ""
    return f"{url.hostname}:{port}" if url.hostname and port and url.scheme in _PORTS else ""


def _build_home(program: InstalledProgram, invocation: Invocation, folder: Path) -> PrivateHome:
    """Build a fresh HOME that shares the user's login. Settings of the preset are written only if the user has none."""
    folder.mkdir(mode=0o700)
    real = Path.home()
    shared = tuple((real / name, name) for name in _list_login_folders(program) if (real / name).exists())
    startup = program.preset.startup_files if program.preset else ()
    for name, content in invocation.home.items():
        if not any(Path(name).is_relative_to(shared_name) for _, shared_name in shared):
            _write_file(folder / name, content)
    startup_names = [
        name for name in startup if any(Path(name).is_relative_to(shared_name) for _, shared_name in shared)
    ]
    renewed = (
        (*program.preset.renewable_files, *(f"{name}*" for name in program.settings.share)) if program.preset else None
    )
    return PrivateHome(folder, shared, tuple((real / name, name) for name in startup_names), renewed)


def _write_file(path: Path, content: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode("utf-8", "replace"))
    return path


def _build_command(program: InstalledProgram, invocation: Invocation) -> str:
    words = [
        shlex.quote(program.argv[0]),
        *map(_quote_argument, invocation.arguments),
        *map(_quote_argument, program.settings.arguments),
    ]
    redirect = ' <"$PROOFSTONE_PROMPT"' if invocation.stdin is not None else ""
    return f'exec 2>"$PROOFSTONE_ERRORS"\nexec {" ".join(words)}{redirect}'


def _quote_argument(argument: str | FileArgument) -> str:
    return f'"${_get_variable(argument.name)}"' if isinstance(argument, FileArgument) else shlex.quote(argument)


def _get_variable(name: str) -> str:
    return name.partition(".")[0]


_SUBTASK_FIELDS: Final = frozenset({"status", "output"})
"""Fields that only the answer about a subtask has."""


def _build_claim(conversation: Conversation, text: str, *, cut: bool) -> dict[str, JsonValue] | None:
    """Return the claim that free text amounts to, or None if the text matches the schema. A text that was cut off
    counts as a failure, whatever it says."""
    properties = conversation.output_schema.get("properties")
    is_subtask = isinstance(properties, Mapping) and set(properties) >= _SUBTASK_FIELDS
    model = SolveExecutionOutput if is_subtask else ExecutorResult
    if not cut and not isinstance(parse_answer(text.encode("utf-8", "replace"), model), MalformedAnswer):
        return None
    evidence = text.strip()[-_MAX_EVIDENCE_CHARS:]
    return _build_subtask_claim(evidence, cut=cut) if is_subtask else _build_task_claim(evidence, cut=cut)


def _build_task_claim(evidence: str, *, cut: bool) -> dict[str, JsonValue]:
    if cut:
        return {"status": ExecutorStatus.FAILURE, "error": _CUT_OFF, "evidence": evidence}
    return {"status": ExecutorStatus.SUCCESS, "evidence": evidence}


def _build_subtask_claim(evidence: str, *, cut: bool) -> dict[str, JsonValue]:
    """Return the claim for a subtask of the control loop, where the text is the output, too."""
    completion: dict[str, JsonValue] = (
        {"status": "ERROR", "summary": _CUT_OFF} if cut else {"status": "DONE", "summary": "done"}
    )
    return {"completion": completion, "status": "failed" if cut else "completed", "output": evidence}

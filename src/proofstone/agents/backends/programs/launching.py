"""One run of a program, prepared: a HOME of its own with the real login in it, the variables that it may have, the
hosts that it may reach; and what it said afterwards, as a turn.
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
from urllib.parse import urlsplit

from pydantic import JsonValue

from proofstone.agents.backends.cmd import fault_of
from proofstone.agents.backends.programs.activity import Mask, Notes, whole
from proofstone.agents.backends.programs.locating import Program
from proofstone.agents.backends.programs.preset import Errand, Final, Given, Invocation
from proofstone.agents.backends.wording import calls_in, calls_wanted, prompt_for_program
from proofstone.agents.executors.context import ShellJob, Site
from proofstone.agents.executors.output import Tail, read_written
from proofstone.agents.executors.programs import fresh_file, ran
from proofstone.agents.models import Activity, ActivityKind, Conversation, Fault, FaultKind, Turn
from proofstone.agents.roles.models.gate import ExecutorResult, ExecutorStatus
from proofstone.agents.roles.models.solve import SolveExecutionOutput
from proofstone.agents.rules.answer import Malformed, parse
from proofstone.machine.files import remove
from proofstone.sandbox.job import Execution, OwnHome

_MOST_ERRORS = 8 << 20
_SHOWN_LINES = 20
_MOST_WORDS = 8000
"""Characters of an executor's own words that are kept as its evidence."""
_CUT = "its model was cut off at the limit of output tokens, before it was done"
_PORTS: Mapping[str, int] = {"https": 443, "wss": 443, "http": 80, "ws": 80}
EXECUTOR = "executor"
_MOST_LINKS = 40


@dataclass(frozen=True)
class Prepared:
    job: ShellJob
    errors: Path
    mask: Mask

    def last_lines(self) -> str:
        """The end of its standard error."""
        written = read_written(self.errors, _MOST_ERRORS)
        if isinstance(written, Malformed):
            return f"(its standard error: {written.why})"
        tail = Tail()
        tail.add(self.mask((written or b"").decode("utf-8", "replace")).encode("utf-8", "replace"))
        return tail.lines(_SHOWN_LINES)


@contextmanager
def prepared(
    program: Program, invocation: Invocation, site: Site, seconds: float | None, notes: Notes
) -> Iterator[Prepared]:
    """`notes`: of the turn; what still waits there when the run is over goes on record."""
    folder = Path(tempfile.mkdtemp(prefix="program-", dir=site.scratch))
    try:
        given = dict(invocation.handed) | (
            {"PROOFSTONE_PROMPT": invocation.stdin} if invocation.stdin is not None else {}
        )
        errors = fresh_file(folder / "errors", "errors.txt")
        variables = person_variables(program)
        job = ShellJob(
            command=_command(program, invocation),
            seconds=seconds,
            # By PROOFSTONE_TASK our own commands know that no person is speaking, and refuse those that are a person's.
            env={"PROOFSTONE_TASK": "in the prompt", **variables, **invocation.variables},
            reads={_variable(name): _written(folder / "given" / name, content) for name, content in given.items()},
            writes={"PROOFSTONE_ERRORS": errors},
            home=_home(program, invocation, folder / "home"),
            hosts=allowed_hosts(program, {**variables, **invocation.variables}),
            visible=_installed_in(program.argv[0]),
            shown=False,
            say=site.say,
            on_refused=lambda host: notes.add_later(_kept_from(host)),
            mask=notes.mask.raw,
        )
        yield Prepared(job, errors, notes.mask)
    finally:
        remove(folder)
        notes.settle()


def errand_of(program: Program, conversation: Conversation, site: Site) -> Errand:
    works = conversation.occasion.role == EXECUTOR
    held = program.preset is not None and program.preset.schema and program.spec.startswith("cli:")
    return Errand(
        prompt=prompt_for_program(conversation, works=works, tools=not held),
        model=program.model,
        scope=site.scope,
        files=tuple(path for path in site.scope if (site.work_tree / path).is_file()),
        may_run=any(tool.name == "run" for tool in conversation.tools),
        level=site.level,
        root=site.seen_at or site.work_tree,
        schema=None if works else conversation.output_schema,
        variables=person_variables(program),
    )


def turned(conversation: Conversation, final: Final, program: Program, mask: Mask) -> Turn | Fault:
    """What the program said, as a turn. An executor may say what it did in words of its own: it is a claim either way,
    and asking again for its form would have all of the work done again."""
    if final.fault is not None and not _is_only_malformed(final):
        return final.fault.model_copy(update={"why": mask(final.fault.why), "usage": final.usage})
    works = conversation.occasion.role == EXECUTOR
    text = mask(whole(final.text))
    calls = () if works else calls_in(conversation, calls_wanted(text))
    return Turn(
        text="" if calls else text,
        answer=_claim(conversation, text, cut=final.cut) if works and not conversation.asked else None,
        calls=calls,
        cut=final.cut,
        model=mask(final.model) or program.spec,
        usage=final.usage,
        acted=works,
    )


def _is_only_malformed(final: Final) -> bool:
    """The program itself would not take the answer of its model. It is shown what is wrong with it, like any other."""
    return final.fault is not None and final.fault.kind is FaultKind.MALFORMED and bool(final.text.strip())


def fault_from(execution: Execution, last_lines: str) -> Fault | None:
    """Why it did not come to its own end, if so."""
    ended = ran(execution)
    return fault_of(ended, last_lines) if ended else None


def has_acted(conversation: Conversation, execution: Execution) -> bool:
    """Whether it may have changed its work tree, however it ended."""
    return conversation.occasion.role == EXECUTOR and not execution.setup_error


def mask_for(program: Program) -> Mask:
    return Mask.of(person_variables(program))


def person_variables(program: Program) -> dict[str, str]:
    """What the program is given of the person's: nothing but what the preset and the person name."""
    named = (*(program.preset.keys if program.preset else ()), *program.settings.pass_through)
    return {name: os.environ[name] for name in named if name in os.environ} | dict(program.settings.set)


def allowed_hosts(program: Program, variables: Mapping[str, str]) -> tuple[str, ...]:
    usual = program.preset.hosts if program.preset else ()
    named = [host for value in variables.values() if (host := _host_in(value))]
    return tuple(dict.fromkeys((*usual, *program.settings.hosts, *named)))


def _login_folders(program: Program) -> tuple[str, ...]:
    """Below HOME."""
    return (*(program.preset.login if program.preset else ()), *program.settings.share)


def _kept_from(host: str) -> Activity:
    return Activity(kind=ActivityKind.REFUSED, name="network", text=f"a connection to {host}, which is not allowed")


def _installed_in(path: str) -> tuple[Path, ...]:
    """The folders that the program needs of itself: where it is called, where each link on the way lies, and where it
    really is; and the interpreter of our own that its hook is run with."""
    at, folders = Path(path), [Path(path).parent]
    while at.is_symlink() and len(folders) < _MOST_LINKS:
        at = Path(os.path.normpath(at.parent / at.readlink()))
        folders.append(at.parent)
    real = Path(path).resolve()
    modules = next((above.parent for above in real.parents if above.name == "node_modules"), real.parent)
    return (*dict.fromkeys((*folders, modules)), Path(sys.base_prefix))


def _host_in(value: str) -> str:
    try:
        url = urlsplit(value)
        port = url.port or _PORTS.get(url.scheme)
    except ValueError:
        return ""
    return f"{url.hostname}:{port}" if url.hostname and port and url.scheme in _PORTS else ""


def _home(program: Program, invocation: Invocation, folder: Path) -> OwnHome:
    """Fresh, with the person's login shared into it; settings that the preset wants only where the person has none."""
    folder.mkdir(mode=0o700)
    real = Path.home()
    shared = tuple((real / name, name) for name in _login_folders(program) if (real / name).exists())
    startup = program.preset.startup if program.preset else ()
    for name, content in invocation.home.items():
        if not any(Path(name).is_relative_to(theirs) for _, theirs in shared):
            _written(folder / name, content)
    inside = [name for name in startup if any(Path(name).is_relative_to(theirs) for _, theirs in shared)]
    renewed = (*program.preset.renewed, *(f"{name}*" for name in program.settings.share)) if program.preset else None
    return OwnHome(folder, shared, tuple((real / name, name) for name in inside), renewed)


def _written(path: Path, content: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode("utf-8", "replace"))
    return path


def _command(program: Program, invocation: Invocation) -> str:
    own = [shlex.quote(program.argv[0]), *map(_word, invocation.arguments), *map(_word, program.settings.arguments)]
    read = ' <"$PROOFSTONE_PROMPT"' if invocation.stdin is not None else ""
    return f'exec 2>"$PROOFSTONE_ERRORS"\nexec {" ".join(own)}{read}'


def _word(argument: str | Given) -> str:
    return f'"${_variable(argument.name)}"' if isinstance(argument, Given) else shlex.quote(argument)


def _variable(name: str) -> str:
    return name.partition(".")[0]


def _claim(conversation: Conversation, text: str, *, cut: bool) -> dict[str, JsonValue] | None:
    """What its words come to, where they are not of the schema; None where they are. One that was cut off had not come
    to its end, whatever it had said until then."""
    of_a_subtask = conversation.output_schema.get("title") == SolveExecutionOutput.__name__
    form = SolveExecutionOutput if of_a_subtask else ExecutorResult
    if not cut and not isinstance(parse(text.encode("utf-8", "replace"), form), Malformed):
        return None
    words = text.strip()[-_MOST_WORDS:]
    return _claim_of_a_subtask(words, cut=cut) if of_a_subtask else _claim_of_a_task(words, cut=cut)


def _claim_of_a_task(words: str, *, cut: bool) -> dict[str, JsonValue]:
    if cut:
        return {"status": ExecutorStatus.FAILURE, "error": _CUT, "evidence": words}
    return {"status": ExecutorStatus.SUCCESS, "evidence": words}


def _claim_of_a_subtask(words: str, *, cut: bool) -> dict[str, JsonValue]:
    """In the control loop, where the words are the result too."""
    ended: dict[str, JsonValue] = {"status": "ERROR", "summary": _CUT} if cut else {"status": "DONE", "summary": "done"}
    return {"completion": ended, "status": "failed" if cut else "completed", "output": words}

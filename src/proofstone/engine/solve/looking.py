"""The engine looks itself: what can be run or seen is never judged by a model.

A command runs in the sandbox, in the files as they are on record, and what it writes is thrown away. Files are read
with the same eyes as an agent's tools: no path and no link leads out of the project. What is so although nobody has
changed a file is said to be: it may be so for no merit of anybody's.
"""

from __future__ import annotations

from typing import Final

from proofstone.adapters.executors.site import ShellJob
from proofstone.adapters.sandbox.job import Execution
from proofstone.adapters.tools.grep import first_line
from proofstone.adapters.tools.ground import Deadline, Ground
from proofstone.adapters.tools.running import Ends, ending
from proofstone.adapters.tools.tree import Tree
from proofstone.contracts.solve.messages import Criterion, CriterionVerdict, FailureClass, Predicate, PredicateKind
from proofstone.core.agent.tool_rules import FailedError, RefusedError
from proofstone.core.solve.verdicts import failed, passed
from proofstone.engine.solve.workspace import Workspace

_FILE_BYTES: Final = 16 << 20
_SECONDS: Final = 30.0
_BEGINNING: Final = 800
_END: Final = 3200
UNTOUCHED: Final = "(no file differs from those that the task began with: this was so before anything was done)"
_NOT_STARTED: Final = (126, 127)
"""Exit codes of a shell that could not run the command: it is missing, or may not be run."""


def look(criterion: Criterion, workspace: Workspace, output: str, seconds: float) -> CriterionVerdict:
    """The verdict on a verifiable criterion."""
    predicate = criterion.predicate
    if criterion.command:
        verdict = _run(criterion, workspace, seconds)
    elif predicate is None:
        raise AssertionError("a verifiable criterion has a command or a predicate")
    else:
        verdict = _seen(criterion, predicate, workspace.ground(), output)
    of_files = predicate is None or predicate.kind is not PredicateKind.OUTPUT_CONTAINS
    if of_files and not verdict.failed and workspace.untouched:
        return passed(criterion, f"{verdict.evidence}\n{UNTOUCHED}")
    return verdict


def _run(criterion: Criterion, workspace: Workspace, seconds: float) -> CriterionVerdict:
    world, printed = workspace.world, Ends()
    limits = world.job_limits(seconds)
    with world.artifacts.writer(world.settings.limits.output_mb << 20) as sink:
        with workspace.shell(sink, limits, keeps=False) as shell:
            done = shell(ShellJob(criterion.command, on_output=printed.add))
        world.ledger.append(sink.finish().row())
    if done.cancelled:
        raise KeyboardInterrupt
    evidence = f"`{criterion.command}`: {ending(done, seconds)}"
    if printed.text:
        evidence = f"{evidence}\n{printed.text}"
    evidence = _shown(evidence)
    return passed(criterion, evidence) if done.exit_code == 0 else failed(criterion, evidence, _class_of(done))


def _class_of(done: Execution) -> FailureClass:
    """A command that came to its own end has said no; one that could not run, or was ended, has said nothing."""
    ran = done.exit_code is not None and done.exit_code not in _NOT_STARTED
    return FailureClass.LOGICAL if ran else FailureClass.ENVIRONMENTAL


def _seen(criterion: Criterion, predicate: Predicate, ground: Ground, output: str) -> CriterionVerdict:
    try:
        holds, saw = _held(predicate, ground, output)
    except RefusedError as refused:
        holds, saw = False, refused.text
    except FailedError as error:
        holds, saw = False, error.text
    except (FileNotFoundError, NotADirectoryError):
        holds, saw = predicate.kind is PredicateKind.ABSENT, f"there is no {predicate.path}"
    saw = _shown(saw)
    return passed(criterion, saw) if holds else failed(criterion, saw, FailureClass.LOGICAL)


def _held(predicate: Predicate, ground: Ground, output: str) -> tuple[bool, str]:
    match predicate.kind:
        case PredicateKind.OUTPUT_CONTAINS:
            there = predicate.text in output
            return there, f"the result {'holds' if there else 'does not hold'} {predicate.text!r}"
        case PredicateKind.EXISTS | PredicateKind.ABSENT:
            tree = Tree(ground)
            entry = tree.entry(tree.readable(predicate.path))
            what = "a folder" if entry.folder else "a file" if entry.file else "neither a file nor a folder"
            return predicate.kind is PredicateKind.EXISTS, f"{predicate.path} is there: {what}"
        case PredicateKind.CONTAINS:
            there = predicate.text in _content(predicate.path, ground).decode("utf-8", "replace")
            return there, f"{predicate.path} {'holds' if there else 'does not hold'} {predicate.text!r}"
        case PredicateKind.MATCHES:
            deadline = Deadline(_SECONDS, ground.cancel)
            found = first_line(predicate.path, _content(predicate.path, ground), predicate.text, deadline)
            return bool(found), found or f"no line of {predicate.path} matches {predicate.text!r}"


def _content(path: str, ground: Ground) -> bytes:
    tree = Tree(ground)
    return tree.read(tree.readable(path), _FILE_BYTES)


def _shown(text: str) -> str:
    """How it began and how it ended: that is where commands say what went wrong."""
    return text if len(text) <= _BEGINNING + _END else f"{text[:_BEGINNING]}\n…\n{text[-_END:]}"

"""`proofstone hook`: install git hooks that refuse commits without evidence, and answer hooks of git and coding
agents."""

from __future__ import annotations

import json
import os
import sys
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from proofstone.app.agent_stop import AgentStop, answer_agent_stop, record_session_start
from proofstone.app.hooks import (
    PendingEvidence,
    check_pending,
    describe_base,
    describe_ruling,
    find_evidence,
    install_hooks,
    read_hooks_status,
    uninstall_hooks,
)
from proofstone.check.rules.commit_evidence import AcceptedFinding, CommitEvidence, RecordedCheck
from proofstone.cli.output import JsonOption, NoColorOption, Output, RepoOption
from proofstone.cli.process import find_output_error
from proofstone.common.models import Assurance
from proofstone.common.text import escape_control
from proofstone.errors import InputError
from proofstone.git.user_hooks import HOOK_NAMES, HookState
from proofstone.hooks.agent_sessions import CodingSession

if TYPE_CHECKING:
    from proofstone.git.user_hooks import HookChange
    from proofstone.hooks.agent_hooks import Dialect


app = typer.Typer(add_completion=False, help="Make git refuse commits without evidence in your own repository.")

_TASK_VARIABLE = "PROOFSTONE_TASK"
_CONTINUED = ("resume", "compact")
"""How agents' programs say that a session is continued."""


class HookEvent(StrEnum):
    """The events that a hook reports."""

    PRE_COMMIT = "pre-commit"
    PRE_MERGE_COMMIT = "pre-merge-commit"
    PRE_APPLYPATCH = "pre-applypatch"
    AGENT_START = "agent-start"
    AGENT_STOP = "agent-stop"


@app.command()
def install(
    check: Annotated[bool, typer.Option("--check", help="Let the hook run the check if evidence is missing.")] = False,
    repo: RepoOption = Path(),
    as_json: JsonOption = False,
    no_color: NoColorOption = False,
) -> int:
    """Make git refuse commits whose tree has no passing evidence.

    A commit is accepted if the ledger holds a passing `proofstone check` of exactly its tree, against its parent or the
    base of its branch. Otherwise it is refused, and you are told which command would produce the evidence. The newest
    check of a tree decides.

    An existing hook is kept and runs first. core.hooksPath is respected: if it is set for all your repositories, or
    names a committed folder, nothing is written, and you are told which line to add.

    \b
    git runs these hooks for                          and none for
      git commit, with -a, --amend or paths             git rebase, and rebase --continue
      git merge that makes a commit                     git cherry-pick and git revert without conflict
      git commit that ends a merge, a pick or a stop    git merge that only moves the branch forward
      reword and edit of an interactive rebase          git stash, commit-tree, update-ref
      git am                                            anything with --no-verify

    After a rebase, `proofstone hook status` says whether HEAD has evidence. To check every commit:
    git rebase --exec 'proofstone check --base HEAD~1' BASE.
    """
    folder, done = install_hooks(repo, check=check)
    _print_done(Output(json=as_json, no_color=no_color), done, str(folder))
    return 0


@app.command()
def uninstall(repo: RepoOption = Path(), as_json: JsonOption = False, no_color: NoColorOption = False) -> int:
    """Remove the hooks and restore those that were there before.

    A hook that was changed since is left alone and named; the exit code is then 1.
    """
    done = uninstall_hooks(repo)
    _print_done(Output(json=as_json, no_color=no_color), done, "")
    return 1 if any(hook.needs_decision for hook in done) else 0


@app.command()
def status(repo: RepoOption = Path(), as_json: JsonOption = False, no_color: NoColorOption = False) -> int:
    """Show which hooks are installed, what they run first, and the evidence for HEAD.

    Exit code: 0 installed; 1 not installed, or not where git looks for hooks.
    """
    hook_status = read_hooks_status(repo)
    output = Output(json=as_json, no_color=no_color)
    here = [hook for hook in hook_status.hooks if hook.path.parent == hook_status.folder]
    installed = all(hook.state is HookState.INSTALLED for hook in here)
    if as_json:
        hooks = [
            {
                "name": hook.name,
                "path": str(hook.path),
                "state": hook.state.value,
                "chained": str(hook.chained_path) if hook.has_chained else None,
                "checks": hook.runs_checks,
                "used_by_git": hook in here,
            }
            for hook in hook_status.hooks
        ]
        head = hook_status.head_ruling and {
            "standing": hook_status.head_ruling.evidence.value,
            "accepted": hook_status.head_ruling.is_accepted,
        }
        document = {"folder": str(hook_status.folder), "installed": installed, "hooks": hooks, "head": head}
        output.print_document({**document, "authentication": hook_status.authentication.value})
        return 0 if installed else 1
    console = output.result_console()
    for hook in hook_status.hooks:
        first = f"; {hook.chained_path.name} runs first" if hook.has_chained and hook.state.is_ours else ""
        first += "".join(f"; Proofstone's hook is {path.name}, which this one may run" for path in hook.moved_paths)
        unused = "" if hook in here else f"; git does not look here, but in {hook_status.folder}"
        checks = "; checks what has no evidence" if hook.runs_checks else ""
        text = (
            f"{hook.name:<{len(max(HOOK_NAMES, key=len))}}  {hook.state.value:<9}  {hook.path}{first}{checks}{unused}"
        )
        console.print(escape_control(text), soft_wrap=True)
    if hook_status.head_ruling is not None:
        console.print(f"HEAD: {describe_ruling(hook_status.head_ruling)}", soft_wrap=True)
        level = hook_status.authentication
        console.print(escape_control(f"evidence: {level.value}; {level.limits}"), soft_wrap=True)
    if not installed:
        console.print("`proofstone hook install` installs them", style="dim")
    return 0 if installed else 1


@app.command()
def run(
    event: Annotated[HookEvent, typer.Argument(metavar="EVENT", help=f"{', '.join(HookEvent)}.", show_default=False)],
    check: Annotated[
        bool, typer.Option("--check", help="Check what is to be committed if evidence is missing.")
    ] = False,
    agent: Annotated[
        str,
        typer.Option("--agent", metavar="NAME", help="The coding agent, for its events.", show_default=False),
    ] = "",
) -> int:
    """Run a hook. The installed hooks call this command; you can call it in your own hooks:

    \b
      proofstone hook run pre-commit || exit 1

    pre-commit, pre-merge-commit and pre-applypatch look for evidence of the commit that git is about to make, and
    change nothing. agent-start and agent-stop read the message of a coding agent from standard input. agent-start
    records at which commit the session begins. agent-stop runs `proofstone check` against that commit, and answers in
    the format that this agent expects. `proofstone export hooks` writes the configuration of both.

    Exit code: 0 accepted; 1 refused; 2 undetermined.
    """
    if event is HookEvent.AGENT_START:
        return _run_agent_start(agent)
    if event is HookEvent.AGENT_STOP:
        return _run_agent_stop(agent)
    if agent:
        raise InputError(f"--agent {agent}: only {HookEvent.AGENT_START} and {HookEvent.AGENT_STOP} take this option")
    return _run_commit_hook(check=check)


def _run_commit_hook(*, check: bool) -> int:
    evidence = find_evidence(Path.cwd(), os.environ)
    if evidence.ruling.is_accepted:
        _print_remarks(evidence)
        return 0
    if check and _check_now(needed_base=evidence.ruling.required_base):
        return 0
    _print_lines(*_refusal_lines(evidence, checked=check))
    return 1


def _check_now(*, needed_base: str) -> bool:
    """Check what is to be committed, and print the report on stderr, where git shows it."""
    from proofstone.cli.render.check import LiveChecks, print_check_report
    from proofstone.common.models import Outcome

    _print_lines("there is no evidence for this tree yet: checking it now")
    console = Output().progress_console()
    live = LiveChecks(console, interactive=console.is_terminal, verbose=False)
    with live.show_live():
        report = check_pending(Path.cwd(), os.environ, live, needed_base=needed_base)
    if report.outcome is not Outcome.PASSED:
        print_check_report(console, report, verbose=False)
    return report.outcome is Outcome.PASSED


def _print_remarks(evidence: PendingEvidence) -> None:
    """Print what the person should know although the commit is accepted."""
    check = evidence.ruling.check
    if evidence.ruling.evidence is CommitEvidence.FIRST:
        _print_lines("the first commit is not checked: there is nothing to compare it with")
    if check is None:
        return
    against = f"against {describe_base(evidence.ruling)}"
    if not evidence.ruling.is_against_parent:
        _print_lines(
            f"run {check.run_id} passed {against}: what the commits in between added, and this commit breaks or "
            "removes, was not compared; `proofstone check --staged --base HEAD` compares it"
        )
    if check.assurance is not Assurance.BUBBLEWRAP:
        _print_lines(
            f"run {check.run_id} passed {against}, at assurance {check.assurance}; `proofstone doctor` says how "
            "to raise it"
        )
    if check.accepted:
        _print_lines(
            f"run {check.run_id} passed {against}, because a person accepted",
            *map(_describe_acceptance, check.accepted),
        )


def _describe_acceptance(accepted: AcceptedFinding) -> str:
    """Describe an accepted finding on one line, so that no reason can look like a message of Proofstone."""
    what = f"{accepted.rule} ({accepted.subject})" if accepted.subject else accepted.rule
    who = " ".join(accepted.accepted_by.split()) or "an unknown person"
    return f"  {what}: {' '.join(accepted.reason.split())} ({who}, {accepted.method or 'unknown how'})"


def _refusal_lines(evidence: PendingEvidence, *, checked: bool) -> list[str]:
    if checked:
        return ["the commit is refused: it does not pass"]
    lines = [f"the commit is refused: there is no passing evidence for its tree {evidence.tree[:12]}"]
    check = evidence.ruling.check
    match evidence.ruling.evidence:
        case CommitEvidence.REFUSED if check is not None:
            against = describe_base(evidence.ruling)
            lines.append(f"  this tree: {check.outcome} {_describe_time(check)}, against {against}: {check.reason}")
            if evidence.ruling.outranked is not None:
                newer = evidence.ruling.outranked
                lines.append(
                    f"  it passed {_describe_time(newer)}, against {newer.base_commit[:12]}, which is not the parent:"
                )
                lines.append("  only a pass against the parent takes the failure back")
        case CommitEvidence.OWN_SETTINGS if check is not None:
            lines.append(
                f"  this tree: {check.outcome} {_describe_time(check)}, by its own settings, and only the base's count"
            )
            lines.append("  to have new settings decide, commit them first; then check without --use-worktree-config")
        case CommitEvidence.DISPUTED:
            lines.append("  this tree: somebody disputes a test or a requirement, and no person has decided")
            lines.append("  `proofstone dispute --list` shows it, and how a person decides")
        case CommitEvidence.ACCEPTANCE if check is not None:
            lines.append(
                f"  this tree: passed {_describe_time(check)}, only because of an acceptance that does not count:"
            )
            lines += [f"  {_describe_acceptance(acceptance)}" for acceptance in check.accepted]
            lines.append(
                "  `hook.accepts` in the settings says which ways of acceptance count; a person can check it again"
            )
            lines.append("  in a terminal, where they are asked about the finding")
        case CommitEvidence.OTHER_BASE if check is not None:
            against = f"against {check.base_commit[:12]}, which is neither"
            lines.append(f"  this tree: {check.outcome} {_describe_time(check)}, {against}")
            lines.append("  the parent nor the base of the branch, so it does not say what this commit breaks")
        case CommitEvidence.UNFINISHED if check is not None:
            lines.append(f"  this tree: a check was begun {_describe_time(check)}, and has come to no verdict")
    if evidence.other_check is not None:
        lines.append(
            f"  another tree passed {_describe_time(evidence.other_check.check)}, "
            f"against {evidence.other_check.check.base_commit[:12]}"
        )
        for problem, paths in (
            ("differs from what was checked", evidence.other_check.differing),
            ("was not there when it was checked", evidence.other_check.unchecked),
            ("was checked, and is not in this commit", evidence.other_check.missing),
        ):
            lines += [f"    {path}: {problem}" for path in paths]
    if not evidence.ledger.is_file():
        lines.append(f"  there is no ledger at {evidence.ledger}")
    lines.append(f"run: {evidence.command}")
    return lines


def _describe_time(check: RecordedCheck) -> str:
    at = datetime.fromisoformat(check.recorded_at).astimezone()
    return f"at {at:%H:%M} on {at:%Y-%m-%d} (run {check.run_id})"


def _run_agent_start(agent: str) -> int:
    """Record the start of a session. Print nothing: an agent's program shows the model what is printed here."""
    _find_dialect(agent)
    if _TASK_VARIABLE not in os.environ:
        event = _read_event()
        is_new = event.get("source", event.get("trigger")) not in _CONTINUED
        record_session_start(_parse_session(agent, event), _parse_directory(event), is_new=is_new)
    return 0


def _run_agent_stop(agent: str) -> int:
    from proofstone.hooks.agent_hooks import format_answer

    dialect = _find_dialect(agent)
    if _TASK_VARIABLE in os.environ:
        return 0  # a task of the gate, which runs the checks itself
    response = answer_agent_stop(_parse_stop(dialect, _read_event()))
    text = format_answer(dialect, response.send_back, response.remark)
    if text:
        sys.stdout.write(text + "\n")
        sys.stdout.flush()
    if response.send_back and find_output_error() is not None:
        # Agents read exit code 2 as "continue to work", and standard error as the reason.
        _print_lines(
            "the answer to the agent could not be written to standard output; it must not stop yet", response.send_back
        )
        return 2
    return 0


def _find_dialect(agent: str) -> Dialect:
    from proofstone.hooks.agent_hooks import ALL_DIALECTS

    if agent not in ALL_DIALECTS:
        known = ", ".join(ALL_DIALECTS)
        raise InputError(f"--agent {agent or '(none)'}: no such agent is known", hint=f"one of {known}")
    return ALL_DIALECTS[agent]


def _read_event() -> dict[str, Any]:
    """Read the message of the agent's program. It decides only where to look and whose rounds are counted."""
    text = "" if sys.stdin.isatty() else sys.stdin.read()
    try:
        event = json.loads(text or "{}")
    except (ValueError, RecursionError) as error:  # not JSON, not UTF-8, a number too long, or nested too deeply
        why = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
        raise InputError(f"standard input: not valid JSON: {why}", hint="agents send JSON to their hooks") from error
    if not isinstance(event, dict):
        raise InputError("standard input: not a JSON object", hint="agents send JSON to their hooks")
    return event


def _parse_session(agent: str, event: dict[str, Any]) -> CodingSession:
    names = ("session_id", "sessionId", "conversation_id")
    session = next((event[name] for name in names if name in event), "")
    return CodingSession(agent, session if isinstance(session, str) else "")


def _parse_directory(event: dict[str, Any]) -> Path:
    roots = event.get("workspace_roots")  # Cursor names these instead of a directory
    directory = event.get("cwd") or (roots[0] if isinstance(roots, list) and roots else None)
    return Path(directory) if isinstance(directory, str) and directory else Path.cwd()


def _parse_stop(dialect: Dialect, event: dict[str, Any]) -> AgentStop:
    session = _parse_session(dialect.name, event)
    again = event.get("stop_hook_active")
    project = os.environ.get(dialect.project_variable, "") if dialect.project_variable else ""
    return AgentStop(
        session=session,
        directory=_parse_directory(event),
        project=Path(project) if project else None,
        conversation=f"{session.id} {event.get('agent_id', '')}",
        is_continuation=again if isinstance(again, bool) else None,
    )


def _print_done(output: Output, done: list[HookChange], folder: str) -> None:
    if output.json:
        hooks = [{"name": hook.name, "did": hook.action, "left": hook.needs_decision} for hook in done]
        output.print_document({"hooks": hooks} | ({"folder": folder} if folder else {}))
        return
    console = output.result_console()
    if folder:
        console.print(escape_control(f"hooks of {folder}"), soft_wrap=True)
    for hook in done:
        console.print(
            escape_control(f"{hook.name}: {hook.action}"),
            style="yellow" if hook.needs_decision else None,
            soft_wrap=True,
        )
    if not done:
        console.print("Proofstone has no hooks here")


def _print_lines(*lines: str) -> None:
    sys.stderr.write(escape_control("\n".join((f"proofstone: {lines[0]}", *lines[1:])) + "\n"))

"""`proofstone hook`: git hooks that refuse what has no proof, and what hooks of git and of coding agents call."""

from __future__ import annotations

import json
import os
import sys
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from proofstone.app.hooks import (
    Looked,
    Stop,
    agent_stopped,
    check_pending,
    describe_base,
    hooks_status,
    install_hooks,
    look,
    standing_words,
    uninstall_hooks,
)
from proofstone.check.rules.commit_evidence import Accepted, Seen, Standing
from proofstone.cli.output import JsonOption, NoColorOption, Output, RepoOption
from proofstone.cli.process import lost_output
from proofstone.common.models import Assurance
from proofstone.common.text import printable
from proofstone.errors import InputError
from proofstone.git.user_hooks import NAMES, State

if TYPE_CHECKING:
    from proofstone.git.user_hooks import Done
    from proofstone.hooks.agent_hooks import Dialect


app = typer.Typer(add_completion=False, help="Refuse commits without proof, in your own repository.")

_EXECUTOR = "PROOFSTONE_TASK"


class Event(StrEnum):
    PRE_COMMIT = "pre-commit"
    PRE_MERGE_COMMIT = "pre-merge-commit"
    PRE_APPLYPATCH = "pre-applypatch"
    AGENT_STOP = "agent-stop"


@app.command()
def install(
    check: Annotated[
        bool, typer.Option("--check", help="Where evidence is missing, have the hook check right away.")
    ] = False,
    repo: RepoOption = Path(),
    as_json: JsonOption = False,
    no_color: NoColorOption = False,
) -> int:
    """Have git refuse commits whose tree has no passing evidence.

    A commit goes through if the ledger holds a passing `proofstone check` of exactly its tree, against its parent or an
    ancestor. Otherwise it is refused, and you are told which command would produce the evidence. The newest check of
    a tree decides.

    A hook that is there already is kept, and runs first. core.hooksPath is respected: where it is set for all
    your
    repositories, or names a folder that is committed, nothing is written, and you are told which line to add.

    \b
    git runs these hooks for                          and none for
      git commit, with -a, --amend or paths             git rebase, and rebase --continue
      git merge that makes a commit                     git cherry-pick and git revert without conflict
      git commit that ends a merge, a pick or a stop    git merge that only moves the branch forward
      reword and edit of an interactive rebase          git stash, commit-tree, update-ref
      git am                                            anything with --no-verify

    After a rebase, `proofstone hook status` says whether the commit that you stand on has evidence; to have each of
    them
    checked: git rebase --exec 'proofstone check --base HEAD~1' BASE.
    """
    folder, done = install_hooks(repo, check=check)
    _tell(Output(json=as_json, no_color=no_color), done, str(folder))
    return 0


@app.command()
def uninstall(repo: RepoOption = Path(), as_json: JsonOption = False, no_color: NoColorOption = False) -> int:
    """Take the hooks out; what was there before stands where it stood.

    What somebody has changed since is left alone, and named; the exit code is 1 then.
    """
    done = uninstall_hooks(repo)
    _tell(Output(json=as_json, no_color=no_color), done, "")
    return 1 if any(item.left for item in done) else 0


@app.command()
def status(repo: RepoOption = Path(), as_json: JsonOption = False, no_color: NoColorOption = False) -> int:
    """Say which hooks are installed, what they run first, and what is on record of the commit that you stand on.

    Exit code: 0 installed; 1 not, or not where git looks for hooks.
    """
    found = hooks_status(repo)
    output = Output(json=as_json, no_color=no_color)
    here = [hook for hook in found.hooks if hook.path.parent == found.folder]
    installed = all(hook.state is State.INSTALLED for hook in here)
    if as_json:
        hooks = [
            {
                "name": hook.name,
                "path": str(hook.path),
                "state": hook.state.value,
                "chained": str(hook.chained) if hook.has_chained else None,
                "checks": hook.checks,
                "used_by_git": hook in here,
            }
            for hook in found.hooks
        ]
        head = found.head and {"standing": found.head.standing.value, "accepted": found.head.accepted}
        document = {"folder": str(found.folder), "installed": installed, "hooks": hooks, "head": head}
        output.document({**document, "authentication": found.authentication.value})
        return 0 if installed else 1
    console = output.results()
    for hook in found.hooks:
        first = f"; {hook.chained.name} runs first" if hook.has_chained and hook.state.ours else ""
        first += "".join(f"; Proofstone's is {path.name}, which this may run" for path in hook.moved)
        unused = "" if hook in here else f"; git does not look here, but in {found.folder}"
        checks = "; checks what has no evidence" if hook.checks else ""
        text = f"{hook.name:<{len(max(NAMES, key=len))}}  {hook.state.value:<9}  {hook.path}{first}{checks}{unused}"
        console.print(printable(text), soft_wrap=True)
    if found.head is not None:
        console.print(f"HEAD: {standing_words(found.head)}", soft_wrap=True)
        level = found.authentication
        console.print(printable(f"evidence: {level.value}; {level.limits}"), soft_wrap=True)
    if not installed:
        console.print("`proofstone hook install` puts them there", style="dim")
    return 0 if installed else 1


@app.command()
def run(
    event: Annotated[Event, typer.Argument(metavar="EVENT", help=f"{', '.join(Event)}.", show_default=False)],
    check: Annotated[
        bool, typer.Option("--check", help="Where evidence is missing, check right away what is to be committed.")
    ] = False,
    agent: Annotated[
        str, typer.Option("--agent", metavar="NAME", help="For agent-stop: whose hook it is.", show_default=False)
    ] = "",
) -> int:
    """What the hooks themselves call. You can put it into a hook of your own:

    \b
      proofstone hook run pre-commit || exit 1

    pre-commit, pre-merge-commit and pre-applypatch look for evidence of the commit that git is about to make, and
    change nothing. agent-stop reads on standard input what a coding agent tells its hooks, runs `proofstone check`, and
    answers as that agent's program expects; `proofstone export hooks` writes its configuration.

    Exit code: 0 go on; 1 refused; 2 it cannot be told.
    """
    if event is Event.AGENT_STOP:
        return _agent_stop(agent)
    if agent:
        raise InputError(f"--agent {agent}: only {Event.AGENT_STOP} has one")
    return _commit(merging=event is Event.PRE_MERGE_COMMIT, check=check)


def _commit(*, merging: bool, check: bool) -> int:
    looked = look(Path.cwd(), os.environ, merging=merging)
    if looked.ruling.accepted:
        _remark(looked)
        return 0
    if check and _passes(merging=merging, needed_base=looked.ruling.needed_base):
        return 0
    _say(*_refusal(looked, checked=check))
    return 1


def _passes(*, merging: bool, needed_base: str) -> bool:
    """Check what is to be committed; the report goes where git shows it."""
    from proofstone.cli.render.check import LiveChecks, print_report
    from proofstone.common.models import Outcome

    _say("there is no evidence for this tree yet: checking it now")
    console = Output().progress()
    live = LiveChecks(console, interactive=console.is_terminal)
    with live.showing():
        report = check_pending(Path.cwd(), os.environ, live, merging=merging, needed_base=needed_base)
    if report.outcome is not Outcome.PASSED:
        print_report(console, report)
    return report.outcome is Outcome.PASSED


def _remark(looked: Looked) -> None:
    """What is worth a line although the commit goes through."""
    seen = looked.ruling.seen
    if looked.ruling.standing is Standing.FIRST:
        _say("the first commit goes in unchecked: there is nothing to compare it with")
    if seen is None:
        return
    against = f"against {describe_base(looked.ruling)}"
    if not looked.ruling.is_against_parent:
        _say(f"run {seen.run_id} passed {against}: it compared with more than this commit changes")
    if seen.assurance is not Assurance.BUBBLEWRAP:
        _say(
            f"run {seen.run_id} passed {against}, at assurance {seen.assurance}; `proofstone doctor` says how "
            f"to raise it"
        )
    if seen.accepted:
        _say(f"run {seen.run_id} passed {against}, and somebody has accepted", *map(_accepted, seen.accepted))


def _accepted(one: Accepted) -> str:
    """On one line, so that no reason can look like words of Proofstone's."""
    return f"  {one.what or 'what it does to tests'}: {' '.join(one.reason.split())}"


def _refusal(looked: Looked, *, checked: bool) -> list[str]:
    if checked:
        return ["the commit is refused: it does not pass"]
    lines = [f"the commit is refused: there is no passing evidence for its tree {looked.tree[:12]}"]
    seen = looked.ruling.seen
    match looked.ruling.standing:
        case Standing.REFUSED if seen is not None:
            against = describe_base(looked.ruling)
            lines.append(f"  this tree: {seen.outcome} {_when(seen)}, against {against}: {seen.reason}")
            if looked.ruling.outranked is not None:
                newer = looked.ruling.outranked
                lines.append(f"  it passed {_when(newer)}, against {newer.base_commit[:12]}, which is no parent:")
                lines.append("  only a pass against the parent takes the failure back")
        case Standing.OWN_SETTINGS if seen is not None:
            lines.append(f"  this tree: {seen.outcome} {_when(seen)}, by its own settings, and only the base's count")
            lines.append("  to have new settings decide, commit them first; then check without --use-worktree-config")
        case Standing.OTHER_BASE if seen is not None:
            lines.append(f"  this tree: {seen.outcome} {_when(seen)}, against {seen.base_commit[:12]}, no ancestor")
        case Standing.UNFINISHED if seen is not None:
            lines.append(f"  this tree: a check was begun {_when(seen)}, and has come to no verdict")
    if looked.other is not None:
        lines.append(f"  another tree passed {_when(looked.other.seen)}, against {looked.other.seen.base_commit[:12]}")
        for words, paths in (
            ("differs from what was checked", looked.other.differing),
            ("was not there when it was checked", looked.other.unchecked),
            ("was checked, and is not in this commit", looked.other.missing),
        ):
            lines += [f"    {path}: {words}" for path in paths]
    if not looked.ledger.is_file():
        lines.append(f"  there is no ledger at {looked.ledger}")
    lines.append(f"run: {looked.command}")
    return lines


def _when(seen: Seen) -> str:
    at = datetime.fromisoformat(seen.at).astimezone()
    return f"at {at:%H:%M} on {at:%Y-%m-%d} (run {seen.run_id})"


def _agent_stop(agent: str) -> int:
    from proofstone.hooks.agent_hooks import answer

    dialect = _dialect(agent)
    if _EXECUTOR in os.environ:
        return 0  # a task of the gate, which checks by itself
    said = agent_stopped(_stop(agent, _told()))
    text = answer(dialect, said.send_back, said.remark)
    if text:
        sys.stdout.write(text + "\n")
        sys.stdout.flush()
    if said.send_back and lost_output() is not None:
        # Agents read 2 as "go on working", and what is on standard error as the reason.
        _say("the answer to the agent could not be written to standard output; it must not stop yet", said.send_back)
        return 2
    return 0


def _dialect(agent: str) -> Dialect:
    from proofstone.hooks.agent_hooks import DIALECTS, OPENCODE

    known = {**DIALECTS, OPENCODE.name: OPENCODE}
    if agent not in known:
        raise InputError(f"--agent {agent or '(none)'}: no such agent is known", hint=f"one of {', '.join(known)}")
    return known[agent]


def _told() -> dict[str, Any]:
    """What the agent's program says; it decides nothing but where to look, and whose rounds are counted."""
    text = "" if sys.stdin.isatty() else sys.stdin.read()
    try:
        found = json.loads(text or "{}")
    except (ValueError, RecursionError) as error:  # not JSON, not UTF-8, a number too long, or nested too deeply
        why = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
        raise InputError(f"standard input: not valid JSON: {why}", hint="agents tell their hooks in JSON") from error
    if not isinstance(found, dict):
        raise InputError("standard input: holds no JSON object", hint="agents tell their hooks in JSON")
    return found


def _stop(agent: str, told: dict[str, Any]) -> Stop:
    named = told.get("cwd")
    session = told.get("session_id", told.get("sessionId", ""))
    again = told.get("stop_hook_active")
    return Stop(
        agent=agent,
        directory=Path(named) if isinstance(named, str) and named else Path.cwd(),
        conversation=f"{session} {told.get('agent_id', '')}",
        again=again if isinstance(again, bool) else None,
    )


def _tell(output: Output, done: list[Done], folder: str) -> None:
    if output.json:
        hooks = [{"name": entry.name, "did": entry.did, "left": entry.left} for entry in done]
        output.document({"hooks": hooks} | ({"folder": folder} if folder else {}))
        return
    console = output.results()
    if folder:
        console.print(printable(f"hooks of {folder}"), soft_wrap=True)
    for item in done:
        console.print(printable(f"{item.name}: {item.did}"), style="yellow" if item.left else None, soft_wrap=True)
    if not done:
        console.print("there is no hook of Proofstone's here")


def _say(*lines: str) -> None:
    sys.stderr.write(printable("\n".join((f"proofstone: {lines[0]}", *lines[1:])) + "\n"))

"""`proofstone init`: set a repository up, file by file, and run a first check."""

from __future__ import annotations

import difflib
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import typer

from proofstone.app.check import run_check
from proofstone.app.context import determine_consent, find_settings
from proofstone.app.init import (
    InitSession,
    look_at,
    take_back,
    write_agent_files,
    write_git_hooks,
    write_proposal,
)
from proofstone.app.trust import add_grant
from proofstone.check.context import CheckRequest
from proofstone.check.models import CheckReport
from proofstone.cli.output import JsonOption, NoColorOption, Output, RepoOption
from proofstone.cli.render.check import LiveChecks, Reader, print_check_report
from proofstone.common.text import escape_control, pluralize
from proofstone.config.rules import detect_coding_agent
from proofstone.config.trust import find_trust_file
from proofstone.config.user import load_user_config
from proofstone.errors import InputError, ProofstoneError
from proofstone.git.pending_commit import find_main_work_tree
from proofstone.git.repository import Repository, open_repository

app = typer.Typer(add_completion=False)


@dataclass
class _Answers:
    """Asks the person about each proposal, unless they agreed to all of them."""

    output: Output
    yes: bool
    written: list[str] = field(default_factory=list)
    left_to_do: list[str] = field(default_factory=list)

    def ask(self, question: str) -> bool:
        if self.yes:
            return True
        sys.stderr.write(f"{question} [Y/n] ")
        sys.stderr.flush()
        answer = sys.stdin.readline()
        if not answer:
            raise EOFError
        return answer.strip().lower() in ("", "y", "yes")

    def show(self, text: str, style: str = "") -> None:
        self.output.progress_console().print(escape_control(text), style=style, soft_wrap=True)


@app.command()
def init(
    yes: Annotated[bool, typer.Option("--yes", help="Write everything that is proposed, without asking.")] = False,
    remove: Annotated[bool, typer.Option("--remove", help="Take back what init has written.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be written, and write nothing.")] = False,
    no_check: Annotated[bool, typer.Option("--no-check", help="Do not run a first check.")] = False,
    repo: RepoOption = Path(),
    as_json: JsonOption = False,
    no_color: NoColorOption = False,
) -> int:
    """Set this repository up: look at what it holds, and propose what Proofstone needs, one file at a time.

    \b
      proofstone.toml                      how dependencies are installed, if checks need any
      .gitignore                           what running the project leaves behind
      .github/workflows/proofstone.yml     a check of each pull request; for GitLab .gitlab/proofstone.yml
      git hooks                            git refuses commits without passing evidence
      hooks of your coding agents          an agent that says it is done is sent back with what is wrong

    You see each file as a diff and are asked; nothing that exists is replaced. Then a first check runs, and you see
    what the verdict would be. `proofstone init --remove` takes everything back.

    Exit code: 0 done, whatever the first check says; 2 bad input.
    """
    if sum((yes, remove, dry_run)) > 1:
        raise InputError("--yes, --remove and --dry-run exclude each other; give one of them")
    output = Output(json=as_json, no_color=no_color)
    repository = open_repository(repo)
    load_user_config()  # a broken file of the person must be refused before anything is written
    if remove:
        return _remove(output, repository)
    session = look_at(repository)
    if dry_run:
        return _show_plan(output, session)
    if not yes and not sys.stdin.isatty():
        raise InputError(
            "there is no terminal to ask you at; nothing was written",
            hint="`proofstone init --dry-run` shows what it would write; `--yes` writes it",
        )
    answers = _Answers(Output(no_color=no_color), yes)
    _show_facts(answers, session)
    _write(answers, session)
    granted = _grant(answers, repository)
    report, problem = (None, "") if no_check else _run_first_check(answers, repository)
    _print_result(output, answers, session, report, problem, granted=granted)
    return 0


def _show_facts(answers: _Answers, session: InitSession) -> None:
    checks = ", ".join(session.facts.checks)
    answers.show(f"checks that your files name: {checks or 'none; name one with `proofstone check --verify CMD`'}")
    for step in session.facts.setup:
        missing = "" if step.is_installed else f" ({step.tool} is not installed here)"
        answers.show(f"dependencies: {step.command}  (from {step.evidence}){missing}")


def _write(answers: _Answers, session: InitSession) -> None:
    repository = session.repository
    for proposal in session.proposals:
        answers.show(f"\n{proposal.path}: {proposal.why}", "bold")
        for line in _diff(proposal.previous, proposal.content, proposal.path):
            answers.show(line, "green" if line.startswith("+") else "red" if line.startswith("-") else "dim")
        if answers.ask(f"write {proposal.path}?"):
            write_proposal(repository, proposal)
            answers.written.append(proposal.path)
            if proposal.after:
                answers.left_to_do.append(f"{proposal.path}: {proposal.after}")
    answers.show("\ngit hooks: git refuses commits whose tree has no passing check", "bold")
    if answers.ask("install the git hooks?"):
        try:
            answers.written.append(f"git hooks in {write_git_hooks(repository)}")
        except ProofstoneError as error:
            answers.left_to_do.append(f"git hooks: {error.message}" + (f" ({error.hint})" if error.hint else ""))
    for target, changes in session.agent_files.items():
        for change in changes:
            path = change.path.relative_to(repository.root).as_posix()
            answers.show(f"\n{path}: sends {target} back with what is wrong when it says that it is done", "bold")
            before = change.path.read_text("utf-8") if change.path.exists() else None
            for line in _diff(before, change.content or "", path):
                answers.show(line, "green" if line.startswith("+") else "red" if line.startswith("-") else "dim")
        if answers.ask(f"write the hook for {target}?"):
            paths = write_agent_files(repository, changes)
            answers.written += [path.relative_to(repository.root).as_posix() for path in paths]


def _diff(before: str | None, after: str, path: str) -> Iterator[str]:
    old, new = (before or "").splitlines(), after.splitlines()
    for line in difflib.unified_diff(old, new, path, path, lineterm="", n=2):
        if not line.startswith(("---", "+++")):
            yield f"  {line}" if line.startswith(("@@", " ")) else f"{line[0]} {line[1:]}"


def _grant(answers: _Answers, repository: Repository) -> bool:
    """Ask for the grant that the new settings need. Return whether nothing is missing."""
    person = load_user_config()
    settings, _ = find_settings(repository, None, own=True)
    consent = determine_consent(repository, settings, person)
    if not consent.missing:
        return True
    needs = ", ".join(dict.fromkeys(need.setting for need in consent.missing))
    if agent := detect_coding_agent(os.environ):
        answers.left_to_do.append(
            f"{needs}: only a person can grant this, and this is the shell of {agent}: "
            "run `proofstone trust --use-worktree-config` in your own terminal"
        )
        return False
    answers.show(f"\nthe settings ask for {needs}, which need your consent on this machine", "bold")
    if answers.ask("grant it for this repository?"):
        add_grant(find_trust_file(person), find_main_work_tree(repository), consent.requested)
        return True
    answers.left_to_do.append("grant what the settings need: `proofstone trust`")
    return False


def _run_first_check(answers: _Answers, repository: Repository) -> tuple[CheckReport | None, str]:
    """Check what is in the work tree, or else the last commit by the settings that are there now. Return the report, or
    why there is none. A pass of the work tree is evidence for the commit that introduces the settings."""
    git = repository.git
    is_changed = bool(git.run_records("status", "--porcelain", "-z"))
    has_parent = git.try_line("rev-parse", "--verify", "--quiet", "HEAD~1^{commit}") is not None
    base = "HEAD" if is_changed or not has_parent else "HEAD~1"
    subject = "what is in your work tree" if base == "HEAD" else "your last commit"
    answers.show(f"\nchecking {subject} …", "bold")
    console = answers.output.progress_console()
    live = LiveChecks(console, interactive=console.is_terminal, verbose=False)
    request = CheckRequest(base=base, use_worktree_config=base != "HEAD")
    try:
        return run_check(repository.root, request, live, live.show_live()), ""
    except ProofstoneError as error:
        return None, f"{error.message}" + (f"\nhint: {error.hint}" if error.hint else "")


def _print_result(
    output: Output, answers: _Answers, session: InitSession, report: CheckReport | None, problem: str, *, granted: bool
) -> None:
    if output.json:
        output.print_document(
            {
                "written": answers.written,
                "left_to_do": answers.left_to_do,
                "checks": list(session.facts.checks),
                "granted": granted,
                "first_check": None if report is None else report.model_dump(mode="json"),
                "problem": problem,
            }
        )
        return
    console = output.result_console()
    if report is not None:
        print_check_report(console, report, Reader.UNKNOWN, verbose=False)
    elif problem:
        console.print(escape_control(f"the first check could not run: {problem}"), soft_wrap=True)
    console.print(f"\n{pluralize(len(answers.written), 'thing')} written", style="bold")
    for name in answers.written:
        console.print(escape_control(f"  {name}"), soft_wrap=True)
    for text in answers.left_to_do:
        console.print(escape_control(f"  left for you: {text}"), soft_wrap=True)
    undo = "  `proofstone init --remove` takes it back; `proofstone check` checks your next change"
    console.print(undo, style="dim", soft_wrap=True)


def _show_plan(output: Output, session: InitSession) -> int:
    files = [(proposal.path, proposal.why, proposal.previous, proposal.content) for proposal in session.proposals]
    for target, changes in session.agent_files.items():
        for change in changes:
            path = change.path.relative_to(session.repository.root).as_posix()
            before = change.path.read_text("utf-8") if change.path.exists() else None
            files.append((path, f"the hook of {target}", before, change.content or ""))
    if output.json:
        output.print_document(
            {
                "facts": session.facts.model_dump(mode="json", exclude={"existing", "gitignore"}),
                "files": [
                    {"path": path, "why": why, "previous": before, "content": after}
                    for path, why, before, after in files
                ],
            }
        )
        return 0
    answers = _Answers(Output(no_color=output.no_color), yes=True)
    _show_facts(answers, session)
    console = output.result_console()
    for path, why, before, after in files:
        console.print(escape_control(f"\n{path}: {why}"), style="bold", soft_wrap=True)
        for line in _diff(before, after, path):
            console.print(escape_control(line), soft_wrap=True)
    console.print("\nand git hooks; nothing was written", style="bold")
    return 0


def _remove(output: Output, repository: Repository) -> int:
    removal = take_back(repository)
    if output.json:
        output.print_document(
            {
                "restored": list(removal.restored),
                "removed": list(removal.removed),
                "kept": list(removal.kept),
                "git_hook": removal.git_hook,
            }
        )
        return 0
    console = output.result_console()
    for label, names in (("removed", removal.removed), ("restored", removal.restored)):
        for name in names:
            console.print(escape_control(f"{label} {name}"), soft_wrap=True)
    if removal.git_hook:
        console.print("removed the git hooks")
    for name in removal.kept:
        console.print(escape_control(f"kept {name}, because it was edited since"), soft_wrap=True)
    if not (removal.removed or removal.restored or removal.kept or removal.git_hook):
        console.print("nothing to do: `proofstone init` has written nothing here")
    return 0

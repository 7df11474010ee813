"""Answer coding agents when a session begins and when an agent says that it is done.

What counts is the project that the session was started in, wherever the agent's shell is by then, and all the work that
the session leaves in its repository: the work tree with the commits of its branch, work trees that were added, commits
on other branches, and stashes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from proofstone.check.recording import find_recorded_checks, raise_if_forged
from proofstone.check.rules.commit_evidence import rule_on_commit
from proofstone.check.rules.run_end import MAX_FEEDBACK_ROUNDS, write_feedback
from proofstone.common.text import pluralize
from proofstone.config.home import find_proofstone_home
from proofstone.errors import AnchorError, InternalError, ProofstoneError, RepositoryError, TrustError
from proofstone.git.pending_commit import find_work_tree_roots
from proofstone.git.repository import Repository, find_repository_root, open_repository
from proofstone.git.session_work import LeftCommits, find_left_work, read_repository_state
from proofstone.hooks.agent_hooks import StopRounds
from proofstone.hooks.agent_sessions import CodingSession, SessionStarts, find_session_projects
from proofstone.ledger.connection import ledger_path
from proofstone.ledger.opening import open_ledger

_NOT_GRANTED: Final = (
    "`proofstone check` could not be run: the repository's settings need grants that the owner of this machine has not "
    "given. Tell the owner; only they can decide."
)
_HOW_TO_DECIDE: Final = (
    "In your own terminal: `proofstone dispute --list` shows it, `proofstone dispute decide last "
    'accept|reject|amend --reason "…"` decides it.'
)


@dataclass(frozen=True)
class AgentStop:
    """The message of an agent that says that it is done."""

    session: CodingSession
    directory: Path
    """Where the agent's shell is."""
    project: Path | None
    """The folder of the project, if the program says which it is."""
    conversation: str
    """The id of the conversation: that of the session, and of the subagent if it is one."""
    is_continuation: bool | None
    """Whether the agent continued only because it was sent back; None if its program does not say."""


@dataclass(frozen=True)
class AgentStopAnswer:
    """The answer to an agent that wants to stop."""

    send_back: str = ""
    """What the agent must fix; empty if it may stop."""
    remark: str = ""
    """A message for the person."""


def record_session_start(session: CodingSession, directory: Path, *, is_new: bool) -> None:
    """Record the commit at which an agent's session begins. Outside a repository, and before the first commit, there is
    nothing to record. `is_new` is False for a session that is continued."""
    from proofstone.app.context import require_outside_home

    try:
        repository = open_repository(directory)
        head, _ = repository.resolve_base("HEAD")
    except RepositoryError:
        return
    starts = SessionStarts(require_outside_home(repository, None), repository.root)
    starts.record_start(session, head, is_new=is_new, state=read_repository_state(repository))


def answer_agent_stop(stop: AgentStop) -> AgentStopAnswer:
    """Check the work that the agent leaves, and send it back with the findings, at most MAX_FEEDBACK_ROUNDS times."""
    home = find_proofstone_home()
    rounds = StopRounds(home / "agent-stops", f"{stop.session.agent} {stop.conversation}")
    answers = [answer for project in _find_projects(home, stop) for answer in _check_project(project, stop)]
    findings = "\n\n".join(answer.send_back for answer in answers if answer.send_back)
    remark = "\n".join(answer.remark for answer in answers if answer.remark)
    if not findings:
        rounds.forget()
        return AgentStopAnswer(remark=remark)
    before = 0 if stop.is_continuation is False else rounds.read_count()
    if before >= MAX_FEEDBACK_ROUNDS:
        rounds.forget()
        unproven = f"Proofstone sent the agent back {before} times and now lets it stop. Its work is unproven."
        return AgentStopAnswer(remark="\n".join(filter(None, (unproven, findings, remark))))
    rounds.write_count(before + 1)
    return AgentStopAnswer(send_back=findings)


def _find_projects(home: Path, stop: AgentStop) -> list[Path]:
    """Return the projects that the session was started in, and the one that its shell is in, if that is another
    repository: an agent may have been given two."""
    recorded = list(find_session_projects(home, stop.session))
    current = find_repository_root(stop.directory)
    if current is None:
        return recorded or [stop.project or stop.directory]
    roots = {Path(root) for root in find_work_tree_roots(open_repository(current))}
    return recorded if roots.intersection(recorded) else [*recorded, current]


def _check_project(project: Path, stop: AgentStop) -> Iterator[AgentStopAnswer]:
    """Yield the findings about everything that the session leaves in a project."""
    session = stop.session
    starts = SessionStarts(find_proofstone_home(), project)
    start = starts.read(session)
    try:
        repository = open_repository(project)
        repository.resolve_base("HEAD")
    except ProofstoneError as error:
        if start is None:
            yield AgentStopAnswer(remark=f"Proofstone checked nothing: {error.message}")
        else:
            problem = f"the project that this session was started in cannot be checked: {error.message}"
            yield AgentStopAnswer(send_back=f"{problem}. Put {project} back as a git repository.")
        return
    yield _check_work_tree(repository, session)
    if start is None or start.state is None:
        return
    work = find_left_work(repository, start.commit, start.state, starts.find_foreign_roots(session))
    current = find_repository_root(stop.directory)
    is_at_other = current is not None and str(current) in work.other_work_trees
    for added in (*work.new_work_trees, *((current,) if is_at_other and current else ())):
        SessionStarts(starts.home, added).record_start(session, start.commit)
        answer = _check_work_tree(open_repository(added), session)
        yield AgentStopAnswer(*(f"In the work tree {added}: {text}" if text else "" for text in _texts(answer)))
    if left := [commits for commits in work.commits if not _has_evidence(repository, start.commit, commits)]:
        yield AgentStopAnswer(send_back="\n".join(_describe_left(left)))
    for path in work.changed_work_trees:
        if path != str(current):
            yield AgentStopAnswer(
                remark=f"Proofstone: the work tree {path} has changed since this session began, perhaps by somebody "
                "else. Its work was not checked here."
            )


def _texts(answer: AgentStopAnswer) -> tuple[str, str]:
    return answer.send_back, answer.remark


def _check_work_tree(repository: Repository, session: CodingSession) -> AgentStopAnswer:
    """Check one work tree. A check that cannot run is a finding too, because the agent may have caused that. If there
    is nothing to check, the agent may stop, but nobody is told that its work has passed."""
    from proofstone.app.context import build_check_run
    from proofstone.check.context import CheckRequest, NullProgress
    from proofstone.common.models import Outcome

    try:
        with build_check_run(repository.root, CheckRequest(), NullProgress(), session=session) as run:
            # Later, the session is compared with the same base: an agent that is sent back cannot commit its way out.
            starts = SessionStarts(run.context.home, run.context.repository.root)
            starts.record_first_check(session, run.context.base_commit, read_repository_state(repository))
            report = run.run()
    except InternalError:
        raise
    except TrustError:
        # Only the person may read how to grant it: an agent that knows could do it.
        return AgentStopAnswer(_NOT_GRANTED)
    except ProofstoneError as error:
        hint = "a person must look into this" if isinstance(error, AnchorError) else error.hint
        return AgentStopAnswer(f"`proofstone check` could not be run: {error.message}" + (f" ({hint})" if hint else ""))
    if report.outcome is Outcome.NOTHING_TO_CHECK:
        return AgentStopAnswer(remark=f"Proofstone checked nothing: {report.reason}")
    if report.outcome is Outcome.NEEDS_DECISION:
        # The agent has said what it holds for wrong: it need not go on, and its work is no pass.
        remark = f"Proofstone: the agent's work needs your decision and is unproven. {report.reason}. {_HOW_TO_DECIDE}"
        return AgentStopAnswer(remark=remark)
    return AgentStopAnswer() if report.outcome is Outcome.PASSED else AgentStopAnswer(write_feedback(report))


def _has_evidence(repository: Repository, start: str, left: LeftCommits) -> bool:
    """Return whether a check of exactly this work has passed, against the commit at which the session began, or the
    last one that they share."""
    home = find_proofstone_home()
    if left.has_untracked:
        return False
    checks = find_recorded_checks(ledger_path(home), find_work_tree_roots(repository), left.tree)
    if checks:
        with closing(open_ledger(home, "read")) as ledger:
            raise_if_forged(ledger, checks)
    parent_tree = repository.git.find_tree(left.merge_base) if left.merge_base else ""
    ruling = rule_on_commit(left.tree, checks, parent=left.merge_base, parent_tree=parent_tree, counting={start})
    return ruling.is_accepted


def _describe_left(left: list[LeftCommits]) -> Iterator[str]:
    yield "Work of this session is left where it is not checked:"
    for commits in left:
        if commits.name.startswith("stash"):
            untracked = ", with untracked files" if commits.has_untracked else ""
            yield f"- {commits.name} ({commits.commit[:12]}{untracked}): apply it and finish the work, or drop it"
        else:
            what = f"{pluralize(commits.count, 'commit')} that the work tree does not contain"
            yield f"- {commits.name} ({commits.commit[:12]}): {what}: check it out and finish the work, or delete it"
    yield "Work that you check out is checked when you say that you are done, or by `proofstone check`."

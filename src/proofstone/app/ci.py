"""Check a change in CI: find its base, install what it needs, and report to the code host."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path

from proofstone.app.base_setup import detect_setup
from proofstone.app.caller import demand_acceptance, gather_facts
from proofstone.app.check import run_check
from proofstone.app.check_base import find_base
from proofstone.app.context import choose_settings, determine_consent
from proofstone.app.trust import add_grant
from proofstone.check.context import CheckRequest, Progress
from proofstone.check.models import CheckReport, TestRun
from proofstone.check.rules.acceptance import build_acceptances
from proofstone.ci.github import GitHub
from proofstone.ci.models import CiJob, CiProvider
from proofstone.ci.rules.approvals import ApprovalResult, list_approvals
from proofstone.ci.rules.comment import write_comment
from proofstone.ci.rules.job import read_job
from proofstone.common.models import Acceptance
from proofstone.config.trust import find_trust_file
from proofstone.config.user import load_user_config
from proofstone.errors import InputError, ProofstoneError
from proofstone.git.pending_commit import find_main_work_tree
from proofstone.git.repository import Repository, open_repository


@dataclass
class CiCheck:
    """The check of one job, prepared but not run."""

    repository: Repository
    job: CiJob
    request: CheckRequest
    host: GitHub | None
    """The pull request on the code host, if the job has a token for it."""
    notes: list[str] = field(default_factory=list)
    """What was decided, for the log."""
    ignored: Sequence[str] = ()
    """Approvals that do not count, with the reason."""

    def run(
        self, progress: Progress, display: AbstractContextManager[object], runs: list[TestRun], *, require_sandbox: bool
    ) -> CheckReport:
        """Run the check and return its report. The test results are added to `runs`."""
        return run_check(
            self.repository.root, self.request, progress, display, require_sandbox=require_sandbox, test_runs=runs
        )

    def write_comment(self, report: CheckReport) -> str:
        """Return the text of the comment about the check."""
        return write_comment(report, self.job.run_url, self.ignored)

    def post_comment(self, text: str) -> str:
        """Write the comment on the pull request; return what was done, or why nothing was."""
        if self.host is None:
            return ""
        try:
            return f"comment: {self.host.write_comment(text) or 'written'}"
        except ProofstoneError as error:
            return f"no comment was written: {error.message}"


def prepare_ci_check(directory: Path, request: CheckRequest, variables: Mapping[str, str]) -> CiCheck:
    """Return the check of the job that the variables describe. Grant what the settings of the base ask for, because
    the machine of a job is made for this repository."""
    repository = open_repository(directory)
    job = read_job(variables, _read_event(variables))
    notes: list[str] = []
    if request.base is None and job.base:
        base = find_merge_base(repository, job)
        request = replace(request, base=base)
        notes.append(f"base: {base[:12]}, from {job.base_source}")
    if not request.setup:
        request = replace(request, setup=_detect_setup(repository, request, notes))
    _grant(repository, request, notes)
    host = _open_host(job, variables)
    if host is None and job.number is not None and job.provider is CiProvider.GITHUB:
        notes.append("no comment and no approvals: the job has no GITHUB_TOKEN")
    approved = _find_approvals(job, host, notes)
    accepted = _build_acceptances(approved) if approved.approvals else ()
    notes += [f"accepted by {approval.by}: {approval.rule}" for approval in approved.approvals]
    request = replace(request, accepted=(*request.accepted, *accepted))
    return CiCheck(repository, job, request, host, notes, approved.ignored)


def _read_event(variables: Mapping[str, str]) -> Mapping[str, object]:
    """Return the document of GitHub's event; empty if there is none."""
    name = variables.get("GITHUB_EVENT_PATH")
    if not name:
        return {}
    try:
        document = json.loads(Path(name).read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(
            f"GITHUB_EVENT_PATH {name}: cannot be read: {error}", hint="name the base with --base"
        ) from error
    if not isinstance(document, dict):
        raise InputError(f"GITHUB_EVENT_PATH {name}: is not the document of an event", hint="name the base with --base")
    return document


def find_merge_base(repository: Repository, job: CiJob) -> str:
    """Return the commit that the change left the base at."""
    git = repository.git
    if git.try_line("rev-parse", "--verify", "--quiet", f"{job.base}^{{commit}}") is None:
        raise InputError(
            f"{job.base_source} {job.base[:12]} is not in this clone",
            hint="fetch the whole history: `fetch-depth: 0` on GitHub, `GIT_DEPTH: 0` on GitLab; or name --base",
        )
    base = git.try_line("merge-base", "HEAD", job.base)
    if base is None:
        raise InputError(
            f"HEAD and {job.base_source} {job.base[:12]} have no commit in common in this clone",
            hint="fetch the whole history: `fetch-depth: 0` on GitHub, `GIT_DEPTH: 0` on GitLab; or name --base",
        )
    return base


def _detect_setup(repository: Repository, request: CheckRequest, notes: list[str]) -> tuple[str, ...]:
    """Return the commands that the base's own files ask for, if its settings name none."""
    base = find_base(repository, request.base)
    if base.settings.environment.setup:
        return ()
    commands = detect_setup(repository, base.tree)
    notes += [f"dependencies: {command.command}  (from {command.evidence} of the base)" for command in commands]
    return tuple(command.command for command in commands)


def _grant(repository: Repository, request: CheckRequest, notes: list[str]) -> None:
    person = load_user_config()
    base = find_base(repository, request.base)
    settings, _ = choose_settings(repository, base, request)
    consent = determine_consent(repository, settings, person)
    if consent.missing:
        add_grant(find_trust_file(person), find_main_work_tree(repository), consent.requested)
        notes += [f"granted, because the base asks for it: {need.setting}" for need in consent.missing]


def _open_host(job: CiJob, variables: Mapping[str, str]) -> GitHub | None:
    token = variables.get("GITHUB_TOKEN") or variables.get("GH_TOKEN")
    if job.provider is not CiProvider.GITHUB or job.number is None or not token or not job.repository:
        return None
    return GitHub(job.api, job.repository, job.number, token)


def _find_approvals(job: CiJob, host: GitHub | None, notes: list[str]) -> ApprovalResult:
    """Return what maintainers accept. Without the answer of the host nothing is accepted, and the log says so."""
    if host is None:
        return ApprovalResult((), ())
    try:
        return list_approvals(job, host.list_reviews(), host.find_permission)
    except ProofstoneError as error:
        notes.append(f"approvals could not be read, so none counts: {error.message}")
        return ApprovalResult((), ())


def _build_acceptances(approved: ApprovalResult) -> tuple[Acceptance, ...]:
    acceptances: list[Acceptance] = []
    for approval in approved.approvals:
        by = f"{approval.by} ({approval.source} on the pull request)"
        method = demand_acceptance("the pull request", gather_facts(by, can_ask=False))
        acceptances += build_acceptances({approval.rule: approval.reason}, by, method)
    return tuple(acceptances)

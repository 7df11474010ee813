"""The public functions of Proofstone. Import them from `proofstone`.

Each function does what a command does, with the same validation, ledger and report. Nothing is printed. A function
raises `ProofstoneError` for bad input and for problems of the machine; that a change did not pass is a result, not an
error. Where a command would ask the user, the run ends with the question in its report.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, closing
from os import PathLike
from pathlib import Path

from proofstone.app.audit import audit_ended_run
from proofstone.app.caller import demand_acceptance, gather_facts, require_acceptable
from proofstone.app.check import require_reason, require_text, run_check, validate_commands
from proofstone.app.context import ensure_private_home
from proofstone.app.gate import build_gate_run
from proofstone.app.observers import (
    NullGateObserver,
    NullPipelineObserver,
    NullPlanGateObserver,
    NullSolveObserver,
)
from proofstone.app.pipeline import PipelineRequest, build_pipeline_run
from proofstone.app.plan_gate import PlanGateRequest, build_plan_gate_run
from proofstone.app.solve import SolveRequest, build_solve_run
from proofstone.check.context import CheckRequest, Progress
from proofstone.check.models import CheckReport
from proofstone.check.rules.acceptance import build_acceptances, expand_test_changes
from proofstone.common.models import Acceptance
from proofstone.gate.models import GateReport
from proofstone.gate.request import GateObserver, GateRequest
from proofstone.ledger import Ledger
from proofstone.ledger.opening import open_ledger as open_ledger_of_home
from proofstone.pipeline.models.run import RunReport
from proofstone.plan_gate.models import PlanReport
from proofstone.solve.models import SolveReport

StrPath = str | PathLike[str]


def check_change(
    repo: StrPath = ".",
    *,
    base: str | None = None,
    verify: Sequence[str] = (),
    files: Sequence[str] = (),
    must_pass: Sequence[str] = (),
    staged: bool = False,
    accept: Mapping[str, str] | None = None,
    accept_test_changes: str | None = None,
    accepted_by: str | None = None,
    no_cache: bool = False,
    require_sandbox: bool = False,
    home: StrPath | None = None,
    observer: Progress | None = None,
) -> CheckReport:
    """Check the change in the work tree of a repository against its base, as `proofstone check` does.

    Args:
        repo: The repository, or any folder inside it.
        base: The revision to compare with. By default it is chosen as for `proofstone check`.
        verify: Commands that must exit with 0, in addition to the checks that the project's files name.
        files: Patterns of the files that the change may touch. A change of any other file is a finding.
        must_pass: Ids of tests that must exist and pass.
        staged: Check what is staged instead of the work tree.
        accept: Rules of findings that a person accepted, each with a reason, which is recorded. It needs `accepted_by`.
        accept_test_changes: The reason why the changes of tests are intended, if a person accepted them.
        accepted_by: The person who accepted the findings. A coding agent cannot pass one in.
        no_cache: Run every check, also those with a cached result.
        require_sandbox: Refuse to run below the strongest sandbox level.
        home: The folder of Proofstone's state; `PROOFSTONE_HOME` by default.
        observer: Receives the progress of the checks.
    """
    request = CheckRequest(
        base=base,
        verify=tuple(validate_commands("verify", verify)),
        files=tuple(files),
        must_pass=tuple(require_text("must_pass", name) for name in must_pass),
        staged=staged,
        no_cache=no_cache,
        accepted=_build_acceptances(accept or {}, accept_test_changes, accepted_by),
    )
    return run_check(Path(repo), request, observer, require_sandbox=require_sandbox, home=_path(home))


def _build_acceptances(
    accept: Mapping[str, str], test_changes: str | None, accepted_by: str | None
) -> tuple[Acceptance, ...]:
    """Return what the caller accepts. Raise an InputError if it names no approver, or may not accept anything."""
    reasons = {
        **expand_test_changes(require_reason("accept_test_changes", test_changes)),
        **dict(require_acceptable("accept", rule, reason) for rule, reason in accept.items()),
    }
    facts = gather_facts(accepted_by, can_ask=False)
    if not reasons and accepted_by is None:
        return ()
    method = demand_acceptance("accept", facts)
    return build_acceptances(reasons, facts.approver, method)


def run_plan(
    plan: StrPath,
    repo: StrPath = ".",
    *,
    executor: str | None = None,
    architect: str | None = None,
    branch: str | None = None,
    budget: Sequence[str] = (),
    minutes: float | None = None,
    allow_dirty: bool = False,
    require_verified_plan: bool = False,
    require_sandbox: bool = False,
    home: StrPath | None = None,
    observer: GateObserver | None = None,
) -> GateReport:
    """Carry out the tasks of a plan and commit each one that passes, as `proofstone gate` does.

    Args:
        plan: The file of the plan.
        repo: The repository, or any folder inside it.
        executor: Who does the work: `cli:claude`, `api:openai:gpt-5`, `cmd:./agent.sh`, `script:steps.yaml`.
        architect: Who reviews in addition to the rules.
        branch: The branch for the commits; `proofstone/<slug of the plan>` by default.
        budget: What agents may spend: `usd=5`, `task.tokens=200000`.
        minutes: How long the run may take.
        allow_dirty: Start although the work tree has changes, which the run does not see.
        require_verified_plan: Refuse a plan that has not passed the plan gate.
        require_sandbox: Refuse to run below the strongest sandbox level.
        home: The folder of Proofstone's state; `PROOFSTONE_HOME` by default.
        observer: Receives the progress of the run.
    """
    request = GateRequest(
        executor=executor,
        architect=architect,
        branch=branch,
        budget=tuple(budget),
        minutes=minutes,
        allow_dirty=allow_dirty,
        requires_verified_plan=require_verified_plan,
        require_sandbox=require_sandbox,
        waits_for_person=False,
    )
    with build_gate_run(Path(repo), Path(plan), request, observer or NullGateObserver(), home=_path(home)) as run:
        report = run.run()
    return audit_ended_run(report, _path(home))[0]


def verify_plan(
    plan: StrPath,
    repo: StrPath = ".",
    *,
    backends: Sequence[str] = (),
    rules_only: bool = False,
    answers: Mapping[str, str] | None = None,
    budget: Sequence[str] = (),
    minutes: float | None = None,
    home: StrPath | None = None,
) -> PlanReport:
    """Challenge a plan until it converges or is sent back, as `proofstone verify-plan` does.

    Args:
        plan: The file of the plan, or any text that proposes steps.
        repo: The repository that the plan is for, or any folder inside it.
        backends: Who serves the roles: `SPEC` for all of them, or `ROLE=SPEC`.
        rules_only: Ask no agent; only the rules judge the plan.
        answers: Answers to questions, by the id of the challenge.
        budget: What agents may spend: `usd=5`.
        minutes: How long the run may take.
        home: The folder of Proofstone's state; `PROOFSTONE_HOME` by default.
    """
    request = PlanGateRequest(
        backends=tuple(backends),
        rules_only=rules_only,
        answers=dict(answers or {}),
        budget=tuple(budget),
        minutes=minutes,
    )
    with build_plan_gate_run(
        Path(repo), Path(plan), request, NullPlanGateObserver(), _answer_no_questions, home=_path(home)
    ) as run:
        return run.run()


def solve_goal(
    goal: str,
    repo: StrPath = ".",
    *,
    backends: Sequence[str] = (),
    answer: str = "",
    max_replans: int | None = None,
    budget: Sequence[str] = (),
    home: StrPath | None = None,
) -> SolveReport:
    """Pursue a goal in rounds, as `proofstone solve` does. The result is a patch; nothing is committed.

    Args:
        goal: What you want, in your own words.
        repo: The repository, or any folder inside it.
        backends: Who serves the roles: `SPEC` for all of them, or `ROLE=SPEC`.
        answer: The answer to a question that the run may ask about the goal.
        max_replans: How many plans may follow the first one.
        budget: What agents may spend: `usd=5`.
        home: The folder of Proofstone's state; `PROOFSTONE_HOME` by default.
    """
    request = SolveRequest(backends=tuple(backends), answer=answer, max_replans=max_replans, budget=tuple(budget))
    with build_solve_run(Path(repo), goal, request, NullSolveObserver(), lambda _question: "", home=_path(home)) as run:
        report = run.run()
    return audit_ended_run(report, _path(home))[0]


def run_pipeline(
    request: str,
    repo: StrPath = ".",
    *,
    backends: Sequence[str] = (),
    files: Sequence[str] = (),
    branch: str | None = None,
    budget: Sequence[str] = (),
    minutes: float | None = None,
    allow_dirty: bool = False,
    require_sandbox: bool = False,
    home: StrPath | None = None,
) -> RunReport:
    """Take a feature request through the whole pipeline to one commit or a refusal, as `proofstone run` does.

    Args:
        request: What you want, in your own words.
        repo: The repository, or any folder inside it.
        backends: Who serves the roles: `SPEC` for all of them, or `ROLE=SPEC`.
        files: The files that the change is about, as far as you know. They decide how deep it is examined.
        branch: The branch for the commit; a new one by default.
        budget: What agents may spend: `usd=5`.
        minutes: How long the run may take.
        allow_dirty: Start although the work tree has changes, which the run does not see.
        require_sandbox: Refuse to run below the strongest sandbox level.
        home: The folder of Proofstone's state; `PROOFSTONE_HOME` by default.
    """
    options = PipelineRequest(
        backends=tuple(backends),
        files=tuple(files),
        branch=branch,
        budget=tuple(budget),
        minutes=minutes,
        allow_dirty=allow_dirty,
        require_sandbox=require_sandbox,
    )
    with build_pipeline_run(
        Path(repo), request, options, NullPipelineObserver(), lambda _request: None, home=_path(home)
    ) as pipeline:
        return pipeline.run()


def open_ledger(home: StrPath | None = None) -> AbstractContextManager[Ledger]:
    """Open the ledger for reading, in a `with` statement. It cannot be written through this connection."""
    return closing(open_ledger_of_home(ensure_private_home(_path(home)), "read"))


def _path(path: StrPath | None) -> Path | None:
    return None if path is None else Path(path)


def _answer_no_questions(_questions: object) -> Mapping[str, str]:
    return {}

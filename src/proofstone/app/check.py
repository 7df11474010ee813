"""`proofstone check` as a function, and the validation of what a user asks it for."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from pathlib import Path
from typing import Final

from proofstone.app.caller import require_acceptable
from proofstone.app.context import build_check_run
from proofstone.app.runs import RunCatalog
from proofstone.check.context import CheckRequest, NullProgress, Progress
from proofstone.check.models import CheckReport, CheckRunConfig, TestRun
from proofstone.check.rules.acceptance import is_reason_sufficient
from proofstone.common.commands import VACUOUS_REASON, is_vacuous
from proofstone.errors import InputError
from proofstone.ledger.artifacts import ArtifactStore
from proofstone.ledger.connection import artifacts_path
from proofstone.ledger.models import EventRow
from proofstone.ledger.opening import open_ledger


def run_check(
    repo: Path,
    request: CheckRequest,
    progress: Progress | None = None,
    display: AbstractContextManager[object] | None = None,
    *,
    require_sandbox: bool = False,
    home: Path | None = None,
    test_runs: list[TestRun] | None = None,
) -> CheckReport:
    """Check a change and return the report. `display` is entered when the check is ready to run. The test results of
    all checks are added to `test_runs`."""
    with (
        build_check_run(repo, request, progress or NullProgress(), require_sandbox=require_sandbox, home=home) as run,
        display or nullcontext(),
    ):
        report = run.run()
        if test_runs is not None:
            test_runs += run.test_runs
        return report


def require_text(option: str, value: str) -> str:
    """Return the value if it is valid text; anything else cannot be recorded as it is."""
    if value.isascii() or value.encode("utf-8", "ignore").decode("utf-8") == value:
        return value
    raise InputError(f"{option} {value!r}: not valid UTF-8", hint="put it into a script, and name the script")


def validate_commands(option: str, commands: Sequence[str]) -> Sequence[str]:
    """Refuse commands that are empty, that cannot be recorded, or that prove nothing."""
    for command in commands:
        require_text(option, command)
        if not command.strip():
            raise InputError(f"{option}: the command is empty", hint=f"for instance {option} 'pytest -q'")
        if is_vacuous(command):
            raise InputError(
                f"{option} {command!r}: {VACUOUS_REASON}",
                hint="name a command that fails when the change is wrong, for instance 'pytest -q'",
            )
        if "\0" in command:
            raise InputError(f"{option}: the command contains a NUL character")
    return commands


def resolve_heldout_files(folder: Path | None, commands: Sequence[str]) -> Path | None:
    """Return the folder of held-out files as an absolute path. Refuse one that no command uses."""
    if folder is not None and not commands:
        raise InputError(f"--heldout-files {folder}: no --heldout command uses them")
    return folder.absolute() if folder else None


def parse_accept(text: str) -> tuple[str, str]:
    """Parse `rule=reason`. Refuse a rule whose findings nobody may accept."""
    rule, _, reason = require_text("--accept", text).partition("=")
    return require_acceptable("--accept", rule, reason)


def require_reason(option: str, text: str | None) -> str:
    """Return the reason to accept test changes. Refuse one that says too little."""
    if text is not None and not is_reason_sufficient(require_text(option, text)):
        raise InputError(
            f"{option}: say why in a few words; the reason is recorded",
            hint=f"for instance {option} 'the CSV export was removed on purpose'",
        )
    return text or ""


class CheckRunCatalog(RunCatalog[CheckRunConfig, CheckReport]):
    """The runs of `proofstone check`. Their reports are artifacts."""

    def _load_report(self, run_id: str, home: Path) -> CheckReport | None:
        with closing(open_ledger(home, "read")) as ledger:
            for stored in ledger.read(EventRow, run_id=run_id, type="run.finished", newest=True, limit=1):
                artifact = stored.row.payload.get("report")
                if isinstance(artifact, str):
                    return CheckReport.model_validate_json(ArtifactStore(artifacts_path(home)).read(artifact))
        return None


CHECK_RUNS: Final = CheckRunCatalog(CheckRunConfig, lambda _ledger, _run_id: None, lambda report: report.outcome)
"""The runs of `proofstone check`."""

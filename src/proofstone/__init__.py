"""Proofstone verifies the work of AI agents before it counts.

This is the public API; everything else may change between releases.

    from proofstone import check_change

    report = check_change("path/to/repository", verify=["pytest -q"])
    print(report.outcome, report.confidence)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from proofstone.app.api import check_change, open_ledger, run_pipeline, run_plan, solve_goal, verify_plan
    from proofstone.check.models import CheckReport
    from proofstone.config.settings import Settings
    from proofstone.errors import ProofstoneError
    from proofstone.gate.models import GateReport
    from proofstone.pipeline.models.run import RunReport
    from proofstone.plan_gate.models import PlanReport
    from proofstone.solve.models import SolveReport

__version__ = "0.1.0"

_HOMES = {
    "check_change": "proofstone.app.api",
    "run_plan": "proofstone.app.api",
    "verify_plan": "proofstone.app.api",
    "solve_goal": "proofstone.app.api",
    "run_pipeline": "proofstone.app.api",
    "open_ledger": "proofstone.app.api",
    "CheckReport": "proofstone.check.models",
    "GateReport": "proofstone.gate.models",
    "PlanReport": "proofstone.plan_gate.models",
    "SolveReport": "proofstone.solve.models",
    "RunReport": "proofstone.pipeline.models.run",
    "Settings": "proofstone.config.settings",
    "ProofstoneError": "proofstone.errors",
}
__all__ = [
    "CheckReport",
    "GateReport",
    "PlanReport",
    "ProofstoneError",
    "RunReport",
    "Settings",
    "SolveReport",
    "check_change",
    "open_ledger",
    "run_pipeline",
    "run_plan",
    "solve_goal",
    "verify_plan",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401  the type is in the imports above
    """Import a public name when it is used for the first time, so that `import proofstone` stays light."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]

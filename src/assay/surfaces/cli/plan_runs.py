"""Runs of the plan gate, where any run may be meant: `assay status` and `assay resume` take both kinds."""

from __future__ import annotations

from assay.errors import InputError
from assay.gate_app import find_run
from assay.surfaces.cli.output import Output, printable
from assay.surfaces.report.plan_gate import print_report
from assay.verify_plan_app import find_plan_run, list_plan_runs, plan_report, plan_run_named

_LAST = "last"


def plan_run(text: str) -> str | None:
    """The run of the plan gate that is meant; None: a run of the gate is, or none. `last` is the last of both kinds."""
    if text != _LAST:
        return plan_run_named(text)
    try:
        plan = find_plan_run(_LAST)
    except InputError:
        return None
    try:
        return plan if plan > find_run(_LAST) else None
    except InputError:
        return plan


def show(output: Output, run_id: str) -> None:
    """Where it stands: its report, if it has come to that."""
    report = plan_report(run_id)
    if report is not None:
        if output.json:
            output.document(report.model_dump(mode="json"))
        else:
            print_report(output.results(), report)
        return
    (view,) = (one for one in list_plan_runs() if one.run_id == run_id)
    if output.json:
        output.document({"run_id": run_id, "command": "verify-plan", "state": view.state, "reason": view.reason})
        return
    reason = f": {view.reason}" if view.reason else ""
    output.results().print(
        printable(f"{run_id}  {view.state}{reason}; `assay verify-plan --resume {run_id}` goes on"), soft_wrap=True
    )

"""Write the findings of a check as SARIF 2.1.0, which code hosts and editors show beside the lines.

The models are those of `sarif_pydantic`. A finding without a place in a file is reported at the repository as a whole,
because some readers refuse a result without a location.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Final
from urllib.parse import quote

from sarif_pydantic import (
    ArtifactLocation,
    Invocation,
    Level,
    Location,
    Message,
    PhysicalLocation,
    Region,
    ReportingConfiguration,
    ReportingDescriptor,
    Result,
    Run,
    Sarif,
    Tool,
    ToolDriver,
)

from proofstone.check.models import CheckReport
from proofstone.check.rules.rule_registry import find_page
from proofstone.common.models import Finding, Outcome, Severity

_SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS: Final = {
    Severity.BLOCKER: Level.ERROR,
    Severity.CRITICAL: Level.ERROR,
    Severity.MAJOR: Level.ERROR,
    Severity.MINOR: Level.NOTE,
}
_ROOT: Final = "SRCROOT"


def build_sarif(report: CheckReport, version: str) -> str:
    """Return the SARIF document of a report. `version` is that of Proofstone."""
    rules = list(dict.fromkeys(finding.rule for finding in report.findings))
    driver = ToolDriver(
        name="Proofstone",
        version=version,
        rules=[_build_rule(rule) for rule in rules],
    )
    run = Run(
        tool=Tool(driver=driver),
        results=[_build_result(finding, rules) for finding in report.findings],
        invocations=[Invocation(execution_successful=report.outcome is not Outcome.UNVERIFIABLE)],
        properties={
            "outcome": report.outcome.value,
            "reason": report.reason,
            "confidence": report.confidence.value if report.confidence else None,
            "base": report.base_commit,
            "tree": report.tree,
            "run": report.run_id,
        },
    )
    document = Sarif(version="2.1.0", schema_uri=_SCHEMA, runs=[run])
    return str(document.model_dump_json(by_alias=True, exclude_none=True, indent=2)) + "\n"


def _build_rule(rule: str) -> ReportingDescriptor:
    page = find_page(rule)
    if page is None:
        return ReportingDescriptor(id=rule)
    return ReportingDescriptor(
        id=rule,
        short_description=Message(text=page.title),
        full_description=Message(text=page.what),
        help=Message(text=f"{page.why}\n\n{page.action}"),
        default_configuration=ReportingConfiguration(level=Level.ERROR),
    )


def _build_result(finding: Finding, rules: Sequence[str]) -> Result:
    text = finding.detail if not finding.fix else f"{finding.detail}\n\nWhat to do: {finding.fix}"
    return Result(
        rule_id=finding.rule,
        rule_index=rules.index(finding.rule),
        level=_LEVELS[finding.severity],
        message=Message(text=text.encode("utf-8", "backslashreplace").decode()),
        locations=[_build_location(finding)],
        partial_fingerprints={"proofstone/v1": _fingerprint(finding)},
    )


def _build_location(finding: Finding) -> Location:
    uri = quote(PurePosixPath(finding.path or ".").as_posix(), errors="surrogateescape")
    region = Region(start_line=max(1, finding.line or 1)) if finding.path else None
    place = PhysicalLocation(artifact_location=ArtifactLocation(uri=uri, uri_base_id=_ROOT), region=region)
    return Location(physical_location=place)


def _fingerprint(finding: Finding) -> str:
    """Return what stays the same when the finding only moves, so that readers recognise it in the next check."""
    identity = "\0".join((finding.rule, finding.path or "", finding.headline))
    return hashlib.sha256(identity.encode("utf-8", "surrogatepass")).hexdigest()

"""What must hold for every real package: its repair passes and is named, a new bug fails and is named."""

from __future__ import annotations

from pathlib import Path

from proofstone.check.models import CheckReport
from proofstone.common.models import Outcome
from tests.real.packages import Package
from tests.workshop import Workshop


def check_repair(workshop: Workshop, root: Path, package: Package) -> CheckReport:
    """The bug is what is committed; its repair is the change."""
    package.bug.plant(root)
    workshop.commit(root, "A bug")
    workshop.git(root, "restore", "--source", "HEAD~1", "--", package.bug.path)
    done = workshop.check(root)
    report = done.report
    assert report.outcome is Outcome.PASSED, f"{report.reason}\n{done.stderr}"
    assert done.exit == 0
    assert report.changed == (package.bug.path,)
    assert package.fixed and any(package.fixed in test for test in report.fixed), report.fixed
    assert (report.regressions, report.flaky) == ((), ())
    return report


def check_breakage(workshop: Workshop, root: Path, package: Package) -> CheckReport:
    """The good tree is what is committed; the change breaks something else."""
    package.breakage.plant(root)
    done = workshop.check(root)
    report = done.report
    if package.breaks_off:
        assert report.outcome is Outcome.UNVERIFIABLE and done.exit == 1
        assert "ended before it was finished" in report.reason
        return report
    assert report.outcome is Outcome.FAILED, f"{report.reason}\n{done.stderr}"
    assert done.exit == 1
    assert package.regression and any(package.regression in test for test in report.regressions), report.regressions
    assert {finding.rule for finding in report.findings} >= {"regression"}
    assert report.fixed == ()
    return report

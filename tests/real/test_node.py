"""`proofstone check` on real Node packages, with the test script that they publish."""

from __future__ import annotations

import pytest

from tests.needs import needs
from tests.real.packages import NODE, Package
from tests.real.prepared import check_breakage, check_repair, node_project, sampled
from tests.workshop import Workshop

pytestmark = [pytest.mark.registry, pytest.mark.ci, needs("git", "node", "npm")]


@pytest.mark.parametrize("package", sampled(NODE, 1))
def test_an_honest_repair_passes_and_a_new_bug_fails_each_with_its_tests_named(
    package: Package, workshop: Workshop
) -> None:
    with node_project(package, workshop) as root:
        check_breakage(workshop, root, package)
        workshop.git(root, "restore", "--", package.breakage.path)
        check_repair(workshop, root, package)

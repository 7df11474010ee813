"""`proofstone check` on real Python packages, installed as their developers install them."""

from __future__ import annotations

import pytest

from tests.needs import needs
from tests.real.packages import PYTHON, Package
from tests.real.prepared import check_breakage, check_repair, python_project, sampled
from tests.workshop import Workshop

pytestmark = [pytest.mark.registry, pytest.mark.ci, needs("git")]


@pytest.mark.parametrize("package", sampled(PYTHON, 1))
def test_an_honest_repair_passes_and_a_new_bug_fails_each_with_its_tests_named(
    package: Package, workshop: Workshop
) -> None:
    with python_project(package, workshop) as root:
        check_breakage(workshop, root, package)
        workshop.git(root, "restore", "--", package.breakage.path)
        check_repair(workshop, root, package)

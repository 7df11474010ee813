"""Which code a check tests: that of the frozen tree, however the project is installed; or it says that it cannot."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from proofstone.common.models import Outcome, Verdict
from tests.check.layouts.projects import BACKENDS, GOOD, WRONG, project
from tests.needs import needs
from tests.real.prepared import installed_by
from tests.workshop import START, Workshop

pytestmark = [pytest.mark.registry, pytest.mark.ci, needs("git", "bwrap")]

_SWEPT = pytest.mark.sweep
LAYOUTS = [
    ("setuptools", "src"),
    pytest.param("hatch", ".", marks=_SWEPT),
    pytest.param("setuptools", ".", marks=_SWEPT),
    pytest.param("hatch", "src", marks=_SWEPT),
]


@pytest.mark.parametrize(("backend", "source"), LAYOUTS)
def test_an_editable_install_is_tested_as_the_frozen_tree_has_it(workshop: Workshop, backend: str, source: str) -> None:
    root = workshop.repo(project(backend, source, WRONG))
    installed_by(BACKENDS[backend], root, "--editable", ".")
    code = "sums/numbers.py" if source == "." else "src/sums/numbers.py"
    workshop.write(root, {code: GOOD})
    repaired = workshop.check(root)
    assert repaired.report.outcome is Outcome.PASSED, repaired.report.reason
    assert repaired.report.fixed == ("tests/test_sums.py::test_double",)
    workshop.commit(root)
    workshop.write(root, {code: WRONG})
    broken = workshop.check(root)
    assert broken.report.outcome is Outcome.FAILED
    assert broken.report.regressions == ("tests/test_sums.py::test_double",)


def test_an_installed_copy_of_the_old_code_is_not_taken_for_the_change(workshop: Workshop) -> None:
    """The copy in site-packages is good, so its tests pass; the change that they are said to prove is broken."""
    root = workshop.repo(project("setuptools", "src"))
    installed_by(BACKENDS["setuptools"], root, ".")
    workshop.write(root, {"src/sums/numbers.py": WRONG})
    assert workshop.run(root, ".venv/bin/python", "-m", "pytest", "-q").returncode == 0
    done = workshop.check(root)
    assert done.report.outcome is Outcome.UNVERIFIABLE
    assert done.exit == 1
    line = done.check("tests:pytest")
    assert line.verdict is Verdict.UNVERIFIABLE
    assert "site-packages/sums" in line.reason
    assert "not from the tree under check" in line.reason


@_SWEPT
def test_an_installed_copy_does_no_harm_where_the_tree_itself_is_imported(workshop: Workshop) -> None:
    root = workshop.repo(project("setuptools", "."))
    installed_by(BACKENDS["setuptools"], root, ".")
    workshop.write(root, {"sums/numbers.py": WRONG})
    assert workshop.check(root).report.regressions == ("tests/test_sums.py::test_double",)


@pytest.mark.parametrize(
    ("frozen", "later", "verdict"), [(GOOD, WRONG, "pass"), pytest.param(WRONG, GOOD, "fail", marks=_SWEPT)]
)
def test_edits_after_the_tree_was_frozen_change_nothing(
    workshop: Workshop, frozen: str, later: str, verdict: str
) -> None:
    """The work tree is edited while the checks run; what an editable install finds is still the frozen tree. The
    outcome as a whole is no pass: what is there now was not checked."""
    files = project("setuptools", "src") | {"tests/conftest.py": "import time\n\ntime.sleep(2)\n"}
    root = workshop.repo(files)
    installed_by(BACKENDS["setuptools"], root, "--editable", ".")
    workshop.write(root, {"src/sums/numbers.py": frozen, "note.txt": "a change\n"})
    with subprocess.Popen(
        [sys.executable, "-c", START, "check", "--json", "--verbose"],
        cwd=root,
        env=workshop.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        assert any(line.startswith("running") for line in iter(process.stderr.readline, ""))
        workshop.write(root, {"src/sums/numbers.py": later})
        output, errors = process.communicate()
    report = json.loads(output)
    assert {line["name"]: line["verdict"] for line in report["checks"]}["tests:pytest"] == verdict, errors
    assert report["outcome"] == "failed"
    assert "work-tree-moved" in {finding["rule"] for finding in report["findings"]}
    tree = report["tree"]
    assert workshop.blob(workshop.tree(tree)["src/sums/numbers.py"]).decode() == frozen

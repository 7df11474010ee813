"""What is installed from the built archives, in an environment of its own, is whole and works."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.needs import needs
from tests.release.installation import VERSIONS, Installation, build, find_interpreter, find_missing_packages
from tests.workshop import Workshop, workshop_outside_tmp

pytestmark = [pytest.mark.registry, pytest.mark.ci, needs("git", "bwrap", "node")]

LOAD_EVERYTHING = """
import importlib, pkgutil, proofstone
skipped = ("proofstone.check.probes", "proofstone.testing")
found = (info.name for info in pkgutil.walk_packages(proofstone.__path__, "proofstone."))
names = [name for name in found if not name.startswith(skipped)]
for name in names:
    importlib.import_module(name)
print(len(names))
"""
MESSAGES = {
    "api:anthropic:m": "proofstone[anthropic]",
    "api:google:m": "proofstone[google]",
    "api:bedrock:m": "proofstone[all]",
    "api:cohere:m": "proofstone[all]",
}
TEST = "const {test} = require('node:test');\ntest('adds', () => require('node:assert').equal(1 + 1, %s));\n"


@pytest.fixture(scope="module")
def archives(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return build(tmp_path_factory.mktemp("build"))


@pytest.fixture
def workshop(tmp_path: Path) -> Iterator[Workshop]:
    with workshop_outside_tmp(Path.home() / ".cache", tmp_path.name) as made:
        yield made


@pytest.mark.parametrize("version", VERSIONS)
def test_the_wheel_works_alone(archives: tuple[Path, Path], version: str, tmp_path: Path, workshop: Workshop) -> None:
    interpreter = find_interpreter(version)
    if interpreter is None:
        pytest.skip(f"Python {version} is not installed")
    installation = Installation.of(archives[0], interpreter, tmp_path / "environment")
    assert "No broken requirements" in installation.pip("check")
    assert int(installation.python(LOAD_EVERYTHING)) > 300
    environment = {**workshop.environment, "PATH": f"{installation.folder / 'bin'}:/usr/local/bin:/usr/bin:/bin"}
    root = workshop.repo({"package.json": '{"scripts": {"test": "node --test"}}', "test/a.test.js": TEST % 2})

    def run(*args: str) -> tuple[int, str]:
        done = installation.proofstone(root, *args, env=environment)
        return done.returncode, done.stdout + done.stderr

    assert run("--version") == (0, "proofstone 0.1.0\n")
    workshop.write(root, {"test/b.test.js": TEST % 2})
    code, said = run("check")
    assert code == 0 and "PASSED" in said, said
    workshop.write(root, {"test/a.test.js": TEST % 3})
    code, said = run("check")
    assert code == 1 and "FAILED" in said, said
    assert run("manual", "plan")[1].startswith("# The form of a plan")
    assert run("explain", "edited-expectation")[0] == 0
    code, said = run("prove", "--trick", "always-equal-number", "--quick", "--json")
    assert '"trick": "always-equal-number"' in said, "the catalogue is in the package"
    for backend, package in MESSAGES.items():
        code, said = run("ask", "planner", "x", "--backend", backend)
        assert code == 2 and find_missing_packages(said) == {package}, said
    code, said = run("status", "--help")
    assert code == 0


def test_the_source_distribution_installs(archives: tuple[Path, Path], tmp_path: Path) -> None:
    installation = Installation.of(archives[1], Path(sys.executable), tmp_path / "environment")
    assert installation.pip("show", "proofstone").startswith("Name: proofstone\nVersion: 0.1.0")
    assert "# The form of a plan" in installation.python(
        "import sys; sys.argv = ['proofstone']; from proofstone.cli.main import main; main(['manual', 'plan'])"
    )

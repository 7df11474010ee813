"""From a fresh clone to the first verdict, at a terminal, with the built package and dependencies from the registries.

PATH has neither the environment of this suite nor its tools, as for somebody who installs Proofstone alone.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.needs import needs
from tests.release.installation import Installation, build
from tests.terminal import run_in_terminal
from tests.workshop import Workshop

pytestmark = [pytest.mark.registry, pytest.mark.ci, needs("git", "bwrap", "npm")]

PYTHON = {
    "pyproject.toml": """[project]
name = "fees"
version = "0.1.0"
dependencies = ["iniconfig"]

[project.optional-dependencies]
dev = ["pytest"]

[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"
""",
    "src/fees/__init__.py": "import iniconfig\n\n\ndef fee(cents):\n    return max(1, cents * 2 // 100)\n",
    "tests/test_fees.py": "from fees import fee\n\n\ndef test_two_percent():\n    assert fee(1000) == 20\n",
}
NODE = {
    "package.json": json.dumps(
        {"name": "fees", "version": "1.0.0", "scripts": {"test": "node --test"}, "dependencies": {"is-number": "7.0.0"}}
    ),
    "fees.js": "const isNumber = require('is-number');\nexports.fee = (x) => isNumber(x) && Math.floor(x * 2 / 100);\n",
    "test/fees.test.js": """const {test} = require('node:test');
const {fee} = require('../fees.js');
test('two percent', () => require('node:assert').equal(fee(1000), 20));
""",
}
CHANGES = {
    "python": ("src/fees/__init__.py", "cents * 2", "cents * 3"),
    "node": ("fees.js", "x * 2", "x * 3"),
}


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Installation:
    wheel, _ = build(tmp_path_factory.mktemp("build"))
    return Installation.of(wheel, Path(sys.executable), tmp_path_factory.mktemp("environment") / "python")


@pytest.mark.parametrize(("name", "files"), [("python", PYTHON), ("node", NODE)], ids=["python", "node"])
def test_from_a_clone_to_the_first_verdict(
    name: str, files: Mapping[str, str], installation: Installation, tmp_path: Path
) -> None:
    pip = {variable: value for variable, value in os.environ.items() if variable.startswith(("PIP_", "npm_config_"))}
    workshop = Workshop.apart(tmp_path)
    environment = {**pip, "PATH": "/usr/local/bin:/usr/bin:/bin"}
    origin = workshop.repo(files, "origin")
    if name == "node":
        done = workshop.run(origin, "npm", "install", "--package-lock-only", "--no-audit")
        assert done.returncode == 0, done.stderr
        workshop.commit(origin)
    root = tmp_path / "clone"
    workshop.git(origin, "clone", "--quiet", str(origin), str(root))

    questions = ("write proofstone.toml?", "write .gitignore?", "install the git hooks?", "grant it")
    answers = dict.fromkeys(questions, "y\n")
    session = run_in_terminal(
        workshop, root, "init", "--no-color", typed=answers, env=environment, program=installation.program
    )
    assert session.exit == 0, session.screen
    assert "PASSED" in session.screen, session.screen
    workshop.git(root, "add", "--all")
    workshop.git(root, "commit", "--quiet", "--message", "Set up")

    path, old, new = CHANGES[name]
    (root / path).write_text((root / path).read_text().replace(old, new))
    done = installation.proofstone(root, "check", "--json", env={**workshop.environment, **environment})
    assert done.returncode == 1, done.stderr
    assert [finding["rule"] for finding in json.loads(done.stdout)["findings"]] == ["regression"], done.stdout

"""Tools that ask git, or write beside their dependencies or into HOME: they work, and the real disk stays as it was."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.needs import needs
from tests.workshop import Workshop

pytestmark = needs("bwrap")


def everything(*folders: Path) -> dict[str, str]:
    """Path and content of every file below, without Proofstone's own ref."""
    found = {}
    for folder in folders:
        for path in folder.rglob("*"):
            name = str(path)
            if "/objects/" in name or "refs/proofstone" in name or not path.is_file():
                continue
            found[name] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


def test_git_describes_lists_and_compares_inside_a_check(workshop: Workshop) -> None:
    root = workshop.repo({"a.txt": "a\n", "b.txt": "b\n"})
    workshop.git(root, "tag", "--annotate", "v1.2", "--message", "One")
    workshop.write(root, {"c.txt": "c\n"})
    workshop.commit(root)
    workshop.write(root, {"a.txt": "changed\n", "new.txt": "n\n"})
    verify = "git describe --tags && git ls-files && git status --short && git log --oneline | wc -l"
    done = workshop.check(root, "--verify", verify)
    head = workshop.git(root, "rev-parse", "--short", "HEAD")
    expected = [f"v1.2-1-g{head}", "a.txt", "b.txt", "c.txt", "new.txt", "M", "a.txt", "A", "new.txt", "2"]
    assert done.output("verify").split() == expected, done.stderr


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "command", ["git commit --allow-empty -m x", "git tag forged", "git config a.b c", "git add a.txt"]
)
def test_a_check_cannot_write_to_git(workshop: Workshop, command: str) -> None:
    root = workshop.repo({"a.txt": "a\n"})
    workshop.write(root, {"a.txt": "b\n"})
    before = everything(root)
    done = workshop.check(root, "--verify", f"echo c > a.txt; ! {command}")
    assert done.exit == 0, done.output("verify")
    assert everything(root) == before


WRITER = """
const fs = require('fs'), os = require('os'), path = require('path')
for (const p of ['node_modules/.cache/tool/x', os.homedir() + '/.cache/tool/x', 'node_modules/dep/index.js', 'out/x']) {
  fs.mkdirSync(path.dirname(p), {recursive: true})
  fs.writeFileSync(p, 'x')
  console.log(fs.readFileSync(p, 'utf8'))
}
"""


@needs("node")
def test_a_tool_may_write_into_node_modules_home_and_the_tree_and_nothing_stays(workshop: Workshop) -> None:
    root = workshop.repo({"package.json": '{"name": "a"}\n', "writer.js": WRITER, ".gitignore": "node_modules\n"})
    workshop.write(root, {"node_modules/dep/index.js": "module.exports = 1\n"})
    workshop.write(workshop.home, {".cache/tool/old": "old\n"})
    workshop.write(root, {"a.txt": "a\n"})
    before = everything(root, workshop.home)
    done = workshop.check(root, "--verify", "node writer.js")
    assert done.output("verify") == "x\n" * 4, done.stderr
    assert everything(root, workshop.home) == before


@needs("npm")
def test_npm_works_although_the_persons_npmrc_is_masked(workshop: Workshop) -> None:
    package = {"name": "a", "version": "1.0.0", "scripts": {"hello": "echo said by npm"}}
    root = workshop.repo({"package.json": json.dumps(package)})
    workshop.write(workshop.home, {".npmrc": "//registry.example.org/:_authToken=do-not-leak\n"})
    workshop.write(root, {"a.txt": "a\n"})
    done = workshop.check(root, "--verify", "npm run hello && ! grep -r do-not-leak ~/.npmrc")
    assert done.exit == 0 and "said by npm" in done.output("verify"), done.stderr


def install(python: Path, *packages: str) -> None:
    done = subprocess.run([str(python), "-m", "pip", "install", "--quiet", *packages], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def with_environment(root: Path, *packages: str) -> Path:
    subprocess.run([sys.executable, "-m", "venv", str(root / ".venv")], check=True)
    python = root / ".venv" / "bin" / "python"
    install(python, *packages)
    return python


@pytest.mark.ci
@pytest.mark.registry
def test_setuptools_scm_finds_its_version_inside_a_check(workshop: Workshop) -> None:
    root = workshop.repo(
        {
            "pyproject.toml": '[build-system]\nrequires = ["setuptools", "setuptools_scm"]\n'
            '[project]\nname = "thing"\ndynamic = ["version"]\n[tool.setuptools_scm]\n',
            ".gitignore": ".venv/\n",
        }
    )
    workshop.git(root, "tag", "v3.1.4")
    with_environment(root, "setuptools_scm")
    workshop.write(root, {"note.md": "n\n"})
    done = workshop.check(root, "--verify", "python -m setuptools_scm")
    assert "3.1.5.dev0" in done.output("verify"), done.stderr


@pytest.mark.sweep
@pytest.mark.registry
def test_uv_run_works_in_an_environment_that_uv_made_and_nothing_is_written(workshop: Workshop) -> None:
    root = workshop.repo(
        {
            "pyproject.toml": '[project]\nname = "thing"\nversion = "1"\nrequires-python = ">=3.11"\n'
            'dependencies = ["pytest"]\n[tool.pytest.ini_options]\npythonpath = ["."]\n',
            "thing.py": "def f():\n    return 1\n",
            "test_thing.py": "from thing import f\n\ndef test_f():\n    assert f() == 1\n",
            ".gitignore": ".venv/\n",
        }
    )
    tools = workshop.folder / "tools"
    python = with_environment(tools, "uv").parent
    path = {"PATH": f"{python}:{workshop.environment['PATH']}"}
    made = subprocess.run(
        ["uv", "sync", "--python", sys.executable],
        cwd=root,
        env={**os.environ, **path, "UV_SYSTEM_CERTS": "1"},
        capture_output=True,
        text=True,
    )
    assert made.returncode == 0, made.stderr
    workshop.commit(root)
    workshop.write(root, {"thing.py": "def f():\n    return 2\n"})
    before = everything(root)
    done = workshop.check(root, "--verify", "uv run pytest -q", env=path)
    assert "test_thing.py::test_f" in done.report.regressions, (done.stderr, done.stdout)
    assert everything(root) == before


@pytest.mark.registry
@needs("npm")
@pytest.mark.sweep
def test_vitest_works_below_a_throwaway_layer_and_nothing_is_written(workshop: Workshop) -> None:
    package = {"name": "a", "private": True, "type": "module", "scripts": {"test": "vitest run"}}
    test = "import { expect, test } from 'vitest'\nimport { f } from './f.js'\ntest('f', () => expect(f()).toBe(1))\n"
    root = workshop.repo({"f.js": "export const f = () => 1\n", "f.test.js": test, ".gitignore": "node_modules/\n"})
    workshop.write(root, {"package.json": json.dumps(package)})
    made = subprocess.run(
        ["npm", "install", "--no-audit", "--no-fund", "--save-dev", "vitest@2"],
        cwd=root,
        capture_output=True,
        text=True,
    )
    assert made.returncode == 0, made.stderr
    workshop.commit(root)
    workshop.write(root, {"f.js": "export const f = () => 2\n"})
    before = everything(root)
    done = workshop.check(root)
    assert len(done.report.regressions) == 1, (done.stderr, done.stdout)
    assert everything(root) == before

"""Bytecode that was left in the project's environment, with the time and size of its source."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.workshop import Workshop, assert_failed

PLANT = """
import importlib.util, marshal, pathlib, sys
source = pathlib.Path(sys.argv[1])
said = source.read_text() + "\\n\\ndef pytest_runtest_call(item):\\n    pass\\n"
compiled = compile(said, str(source), "exec")
state = source.stat()
header = importlib.util.MAGIC_NUMBER + (0).to_bytes(4, "little")
header += int(state.st_mtime).to_bytes(4, "little") + (state.st_size & 0xFFFFFFFF).to_bytes(4, "little")
place = pathlib.Path(importlib.util.cache_from_source(str(source)))
place.parent.mkdir(exist_ok=True)
place.write_bytes(header + marshal.dumps(compiled))
"""
TEST = "from sums import total\n\n\ndef test_total():\n    assert total([1, 2]) == 3\n"
COPIED = ("pytest", "_pytest", "pluggy", "iniconfig", "packaging", "pygments", "py")


@pytest.fixture
def root(workshop: Workshop) -> Path:
    """A project with an environment of its own, made without a network."""
    wrong = "def total(items):\n    return max(items)\n"
    root = workshop.repo({"conftest.py": "", "sums.py": wrong, "test_sums.py": TEST, ".gitignore": ".venv/\n"})
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", ".venv"], cwd=root, check=True)
    (site,) = root.glob(".venv/lib/python3*/site-packages")
    installed = Path(pytest.__file__).parents[1]
    for name in COPIED:
        for found in (installed / name, installed / f"{name}.py", *installed.glob(f"{name}-*.dist-info")):
            if found.exists():
                subprocess.run(["cp", "-a", str(found), str(site)], check=True)
    subprocess.run([root / ".venv/bin/python", "-m", "compileall", "-q", str(site)], check=False)
    return root


def test_it_does_not_run_instead_of_its_source(workshop: Workshop, root: Path) -> None:
    (runner,) = root.glob(".venv/lib/python3*/site-packages/_pytest/runner.py")
    subprocess.run([root / ".venv/bin/python", "-c", PLANT, str(runner)], check=True)
    bare = subprocess.run([root / ".venv/bin/python", "-m", "pytest", "-q", "-p", "no:cacheprovider"], cwd=root)
    assert bare.returncode == 0, "the plant does what it is planted for"
    workshop.write(root, {"sums.py": "def total(items):\n    return max(items) + 0\n"})
    run = workshop.check(root, "--must-pass", "test_total")
    assert_failed(run, "must-pass")

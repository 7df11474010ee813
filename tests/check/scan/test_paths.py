"""Names of added files: what stands in the way of another module, runs by itself, or belongs outside of the tree."""

from __future__ import annotations

import pytest

from proofstone.check.rules.scan_paths import scan_path
from proofstone.common.models import ChangeKind
from tests.rows import each_row

ADDED, MODIFIED, DELETED = ChangeKind.ADDED, ChangeKind.MODIFIED, ChangeKind.DELETED

STRICT = [
    ("pytest.py", "shadowed-module"),
    ("src/_pytest/__init__.py", "shadowed-module"),
    ("tests/pluggy.py", "shadowed-module"),
    ("unittest/__init__.py", "shadowed-module"),
    ("unittest.py", "shadowed-module"),
    ("tests/unittest.py", "shadowed-module"),
    ("xdist.cpython-311-x86_64-linux-gnu.so", "shadowed-module"),
    ("proofstone_pytest.py", "shadowed-module"),
    ("sitecustomize.py", "shadowed-module"),
    ("sitecustomize.py", "startup-file"),
    ("shop/usercustomize.py", "startup-file"),
    ("early.pth", "startup-file"),
    ("shop/cart.pyc", "bytecode"),
    ("shop/__pycache__/cart.cpython-311.pyc", "bytecode"),
    ("node_modules/chai/index.js", "dependency-in-tree"),
    ("tests/node_modules/chai/index.js", "dependency-in-tree"),
    (".venv/lib/python3.11/site-packages/pytest/__init__.py", "dependency-in-tree"),
]
BROAD = [
    ("types.py", "shadowed-module"),
    ("src/logging/__init__.py", "shadowed-module"),
    ("weights/resnet.pth", "startup-file"),
    (".npmrc", "startup-file"),
    ("test/fixtures/resolve/node_modules/a/index.js", "dependency-in-tree"),
]
HONEST = [
    "shop/cart.py",
    "shop/types.py",
    "shop/testing/pytest.py",
    "tests/unittest/__init__.py",
    "tests/unittest/test_cart.py",
    "unittest/test_cart.py",
    "test/__init__.py",
    "tests/__init__.py",
    "tests/conftest.py",
    "coverage/index.html",
    "src/types.ts",
    "environment/venv.md",
    "pytest.ini",
]


@each_row(("path", "rule"), STRICT)
def test_a_new_file_is_held_against_the_change(path: str, rule: str) -> None:
    assert rule in {hit.rule for hit in scan_path(path, ADDED) if hit.strict}


@each_row(("path", "rule"), BROAD)
def test_a_new_file_is_for_reviewers_to_look_at(path: str, rule: str) -> None:
    assert [(hit.rule, hit.strict) for hit in scan_path(path, ADDED)] == [(rule, False)]


@each_row("path", HONEST)
def test_honest_names_are_left_alone(path: str) -> None:
    assert scan_path(path, ADDED) == []


def test_what_was_there_before_shadows_nothing_new() -> None:
    assert scan_path("unittest.py", MODIFIED) == []


@pytest.mark.parametrize("path", ["shop/cart.pyc", "node_modules/chai/index.js"])
def test_compiled_code_and_dependencies_may_not_be_edited(path: str) -> None:
    assert scan_path(path, MODIFIED)
    assert scan_path(path, DELETED) == []

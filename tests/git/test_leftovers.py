"""Which untracked files running a project leaves behind."""

from __future__ import annotations

import pytest

from proofstone.git.rules import find_leftovers

TRACKED = (b"shop/cart.py", b"tests/test_cart.py", b"vendor/node_modules/left-pad/index.js")
LEFT = {
    b"shop/__pycache__/cart.cpython-311.pyc": b"shop/__pycache__",
    b"shop/__pycache__/cart.cpython-311.opt-1.pyc": b"shop/__pycache__",
    b"tests/__pycache__/test_cart.cpython-311-pytest-8.3.4.pyc": b"tests/__pycache__",
    b"__pycache__/new.cpython-312.pyc": b"__pycache__",
    b".pytest_cache/v/cache/lastfailed": b".pytest_cache",
    b"app/node_modules/chai/index.js": b"app/node_modules",
    b"app/node_modules/chai/lib/": b"app/node_modules",
    b".venv/pyvenv.cfg": b".venv",
    b".venv/lib/python3.11/site-packages/x.py": b".venv",
    b"env/pyvenv.cfg": b"env",
    b"env/bin/python": b"env",
    b".coverage": b".coverage",
    b".coverage.host.123.XaBcDe": b".coverage.host.123.XaBcDe",
}
NOT_LEFT = (
    b"new.py",
    b"shop/cart.pyc",
    b"shop/__pycache__/hidden.cpython-311.pyc",
    b"shop/__pycache__/answers.py",
    b"shop/__pycache__/cart.pyc",
    b"shop/deep/__pycache__/cart.cpython-311.pyc",
    b"vendor/node_modules/left-pad/extra.js",
    b"vendor/node_modules/evil/index.js",
    b".coveragerc",
    b"pyvenv.cfg",
    b"shop/node_modules.py",
)


def test_what_is_left_behind_is_named_by_its_folder() -> None:
    assert find_leftovers([b"new.py", *LEFT, *NOT_LEFT], TRACKED) == LEFT


@pytest.mark.parametrize("path", [b".pytest_cache/x", b"app/node_modules/chai/index.js", b"env/pyvenv.cfg"])
def test_a_folder_in_which_git_tracks_a_file_is_part_of_the_project(path: bytes) -> None:
    assert find_leftovers([path], TRACKED)
    assert find_leftovers([path], (*TRACKED, path.rpartition(b"/")[0] + b"/kept.txt")) == {}

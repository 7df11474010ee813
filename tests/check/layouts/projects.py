"""Small projects in the layouts that people use, each with one function that is right and one test of it."""

from __future__ import annotations

import json

GOOD = "def double(number: int) -> int:\n    return 2 * number\n"
WRONG = "def double(number: int) -> int:\n    return 3 * number\n"
IGNORED = ".venv/\n*.egg-info/\nbuild/\n__pycache__/\n"

BACKENDS = {"setuptools": ("setuptools==80.9.0",), "hatch": ("hatchling==1.27.0", "editables==0.5")}
_MODULES = {"setuptools": "setuptools.build_meta", "hatch": "hatchling.build"}


def manifest(backend: str, name: str = "sums") -> str:
    requires = json.dumps(BACKENDS[backend])
    system = f'[build-system]\nrequires = {requires}\nbuild-backend = "{_MODULES[backend]}"\n'
    project = f'[project]\nname = "{name}"\nversion = "1.0"\n'
    return f'{system}\n{project}\n[tool.pytest.ini_options]\ntestpaths = ["tests"]\n'


def test_of(name: str = "sums") -> str:
    return f"from {name}.numbers import double\n\n\ndef test_double() -> None:\n    assert double(4) == 8\n"


def project(backend: str, source: str, code: str = GOOD, *, name: str = "sums", below: str = "") -> dict[str, str]:
    """The files of a project whose package lies in `source`, which is `.` or `src`; all of it in `below`."""
    package = name if source == "." else f"{source}/{name}"
    files = {
        "pyproject.toml": manifest(backend, name),
        ".gitignore": IGNORED,
        f"{package}/__init__.py": "",
        f"{package}/numbers.py": code,
        f"tests/test_{name}.py": test_of(name),
    }
    return {f"{below}{path}": text for path, text in files.items()}

"""Small projects in the layouts that people use, each with one function that is right and one test of it."""

from __future__ import annotations

GOOD = "def double(number: int) -> int:\n    return 2 * number\n"
WRONG = "def double(number: int) -> int:\n    return 3 * number\n"
IGNORED = ".venv/\n*.egg-info/\nbuild/\n__pycache__/\n"

_BACKENDS = {
    "setuptools": 'requires = ["setuptools==80.9.0"]\nbuild-backend = "setuptools.build_meta"',
    "hatch": 'requires = ["hatchling==1.27.0"]\nbuild-backend = "hatchling.build"',
}


def manifest(backend: str, name: str = "sums") -> str:
    system = f'[build-system]\n{_BACKENDS[backend]}\n\n[project]\nname = "{name}"\nversion = "1.0"\n'
    return f'{system}\n[tool.pytest.ini_options]\ntestpaths = ["tests"]\n'


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

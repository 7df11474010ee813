"""The commands that install a project's dependencies, read off its own files."""

from __future__ import annotations

import json

from proofstone.check.discovery import discover
from proofstone.check.ecosystems.setup_commands import find_setup_commands
from tests.rows import each_row

VENV = "python3 -m venv .venv && .venv/bin/python -m pip install --quiet"
PYPROJECT = '[build-system]\nrequires = ["hatchling"]\n[project]\nname = "x"\nversion = "1"\n'
CARGO_LOCK = '[[package]]\nname = "a"\nversion = "1"\nsource = "registry+https://example.org"\n'


def commands(files: dict[str, str]) -> list[str]:
    content = {path: text.encode() for path, text in files.items()}
    specs = discover(list(content), content.get).specs
    return [command.command for command in find_setup_commands(list(content), content.get, specs)]


@each_row(
    ("files", "expected"),
    [
        ({"README.md": ""}, []),
        ({"test_a.py": "import unittest\n"}, []),
        ({"test_a.py": "import pytest\n"}, [f"{VENV} pytest"]),
        ({"uv.lock": "", "pyproject.toml": PYPROJECT}, ["uv sync --frozen"]),
        (
            {"poetry.lock": "", "pyproject.toml": ""},
            ["POETRY_VIRTUALENVS_IN_PROJECT=true poetry install --no-interaction"],
        ),
        ({"requirements.txt": "pytest\n", "conftest.py": ""}, [f"{VENV} -r requirements.txt"]),
        (
            {"requirements.txt": "x\n", "requirements-dev.txt": "y\n", "test_a.py": "import pytest\n"},
            [f"{VENV} -r requirements-dev.txt -r requirements.txt pytest"],
        ),
        ({"docs/requirements.txt": "sphinx\n"}, []),
        (
            {
                "pyproject.toml": f'{PYPROJECT}[project.optional-dependencies]\ntest = ["pytest"]\ndocs = ["x"]\n',
                "conftest.py": "",
            },
            [f"{VENV} -e '.[test]'"],
        ),
        (
            {"pyproject.toml": f'{PYPROJECT}[dependency-groups]\ndev = ["pytest"]\n[tool.ruff]\n', "conftest.py": ""},
            [
                "python3 -m venv .venv && .venv/bin/python -m pip install --quiet --upgrade pip && "
                ".venv/bin/python -m pip install --quiet -e . --group dev ruff"
            ],
        ),
        ({"setup.py": "", "test_a.py": "import pytest\n"}, [f"{VENV} -e . pytest"]),
        ({"pyproject.toml": "[tool.black]\n"}, []),
        ({"package.json": "{}"}, []),
        ({"package.json": json.dumps({"devDependencies": {"jest": "1"}})}, ["npm install"]),
        ({"package.json": "{}", "package-lock.json": "{}"}, ["npm ci"]),
        ({"package.json": "{}", "pnpm-lock.yaml": "", "package-lock.json": "{}"}, ["pnpm install --frozen-lockfile"]),
        ({"package.json": "{}", "yarn.lock": ""}, ["yarn install --frozen-lockfile"]),
        ({"package.json": "{}", "yarn.lock": "", ".yarnrc.yml": ""}, ["yarn install --immutable"]),
        ({"web/package.json": "{}", "web/package-lock.json": "{}"}, ["(cd web && npm ci)"]),
        ({"a b/package.json": "{}", "a b/package-lock.json": "{}"}, ["(cd 'a b' && npm ci)"]),
        ({"node_modules/x/package-lock.json": "{}", "examples/a/b/package-lock.json": "{}"}, []),
        ({"go.mod": "module x\n"}, []),
        ({"go.mod": "module x\n", "go.sum": "y\n"}, ["go mod vendor"]),
        ({"go.mod": "", "go.sum": "y\n", "vendor/modules.txt": ""}, []),
        (
            {"Cargo.toml": "", "Cargo.lock": CARGO_LOCK},
            ["mkdir -p .cargo && cargo vendor --locked --quiet >.cargo/config.toml"],
        ),
        ({"Cargo.toml": "", "Cargo.lock": '[[package]]\nname = "own"\n'}, []),
        ({"uv.lock": "", "package.json": "{}", "package-lock.json": "{}"}, ["uv sync --frozen", "npm ci"]),
        (
            {"pyproject.toml": "not toml [", "package.json": "[]", "Cargo.lock": "x", "package-lock.json": ""},
            ["npm ci"],
        ),
    ],
)
def test_dependencies_are_installed_as_the_files_ask(files: dict[str, str], expected: list[str]) -> None:
    assert commands(files) == expected

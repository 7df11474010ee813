"""Published code keeps compiling: the standard library as a changed source, installed test suites as tests."""

from __future__ import annotations

import random
import sysconfig
from pathlib import Path

import pytest

from proofstone.check.models import ReportFormat
from proofstone.check.variants.canary import add_canary
from proofstone.check.variants.expectations import mutate_expectations
from proofstone.check.variants.sabotage import sabotage_file

STDLIB = Path(sysconfig.get_path("stdlib"))
PACKAGES = ("json", "email", "importlib", "collections", "logging", "unittest", "concurrent")
SOURCES = sorted(path for name in PACKAGES for path in (STDLIB / name).rglob("*.py") if "test" not in path.parts)[::3]
TESTS = sorted(
    (*Path(sysconfig.get_path("purelib")).glob("*/test/test_*.py"), *(STDLIB / "test").glob("test_[d-h]*.py")),
)[:60:3]


pytestmark = pytest.mark.filterwarnings("ignore::SyntaxWarning", "ignore::DeprecationWarning")


EVERY = pytest.mark.parametrize("every", [3, pytest.param(1, marks=pytest.mark.sweep)])
"""Of these files, one of so many."""


def compiles(content: bytes, path: Path) -> None:
    compile(content, str(path), "exec", dont_inherit=True)


@EVERY
def test_sabotaged_sources_compile(every: int) -> None:
    chosen = random.Random(7)
    made = 0
    for path in SOURCES[::every]:
        new = path.read_bytes()
        lines = new.splitlines(keepends=True)
        at = chosen.randrange(len(lines) + 1)
        shorter = b"".join(lines[:at] + lines[at + chosen.randrange(1, 6) :])
        for before, after in ((None, new), (shorter, new), (new, shorter)):
            result = sabotage_file(path.name, before, after)
            if result is not None:
                compiles(result.content, path)
                assert result.content != after
                made += 1
    assert made > len(SOURCES) // every


@EVERY
def test_changed_test_suites_compile(every: int) -> None:
    if not TESTS:
        pytest.skip("no test suites are installed")
    changed = 0
    for path in TESTS[::every]:
        content = path.read_bytes()
        result = mutate_expectations(path.name, content, None, "zubrik")
        compiles(result.content, path)
        changed += len(result.tests)
        for format in (ReportFormat.PYTEST, ReportFormat.UNITTEST):
            canary = add_canary(format, path.name, content, "zubrik")
            if canary is not None:
                compiles(canary.content, path)
    assert changed > 0

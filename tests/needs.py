"""Tests that drive a program say which one. Without it they skip and say why; in CI that is a failure."""

from __future__ import annotations

import os
import shutil
from typing import NoReturn

import pytest

REQUIRE_ALL = os.environ.get("PROOFSTONE_TEST_REQUIRE_ALL") == "1"


def unavailable(what: str) -> NoReturn:
    """The machine lacks something that is no program: the test is skipped and says so; in CI it fails."""
    if REQUIRE_ALL:
        pytest.fail(f"PROOFSTONE_TEST_REQUIRE_ALL=1, but {what}")
    pytest.skip(what)


def needs(*programs: str) -> pytest.MarkDecorator:
    """A mark that skips the test when a program is missing, unless every tool is required to be there."""
    missing = [program for program in programs if shutil.which(program) is None]
    if REQUIRE_ALL and missing:
        raise RuntimeError(f"PROOFSTONE_TEST_REQUIRE_ALL=1, but not installed: {', '.join(missing)}")
    return pytest.mark.skipif(bool(missing), reason=f"not installed: {', '.join(missing)}")

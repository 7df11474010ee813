"""A copy of every file that is exported, so that each change to one shows in review."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from proofstone.export.targets import EXPORT_TARGETS
from tests.export.reading import exported

GOLDEN = Path(__file__).parent / "golden"
RENEW = "PROOFSTONE_RENEW_GOLDEN"
HOW = f"renew the copies with {RENEW}=1 python -m pytest tests/export/test_golden.py, and read the difference"


def copies(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): path.read_text(encoding="utf-8") for path in folder.rglob("*") if path.is_file()
    }


def renew(folder: Path, files: dict[str, str]) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")


@pytest.mark.parametrize("kind", EXPORT_TARGETS)
def test_what_is_exported_is_what_was_reviewed(kind: str) -> None:
    files = exported(kind)
    if os.environ.get(RENEW):
        renew(GOLDEN / kind, files)
    known = copies(GOLDEN / kind)
    assert sorted(known) == sorted(files), HOW
    for path, text in files.items():
        assert text == known[path], f"{kind}/{path} differs: {HOW}"


@pytest.mark.parametrize("kind", EXPORT_TARGETS)
def test_it_is_the_same_every_time(kind: str) -> None:
    assert EXPORT_TARGETS[kind].build_files() == exported(kind)


@pytest.mark.parametrize("kind", EXPORT_TARGETS)
def test_no_line_ends_in_a_space_and_every_file_in_one_newline(kind: str) -> None:
    for path, text in exported(kind).items():
        assert all(line == line.rstrip() for line in text.splitlines()), path
        assert text.endswith("\n"), path
        assert not text.endswith("\n\n"), path

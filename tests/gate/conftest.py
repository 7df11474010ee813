"""A repository with its private store, as the gate opens them: git finds the workshop's HOME and nobody else's."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.gate.place import Place
from tests.workshop import Workshop

FILES = {"a.txt": "one\ntwo\nthree\n", "b.txt": "b\n", "src/run.sh": "echo run\n", ".gitignore": "*.log\n"}


@pytest.fixture
def workshop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workshop:
    workshop = Workshop(tmp_path)
    monkeypatch.setenv("HOME", str(workshop.home))
    for name in ("XDG_CONFIG_HOME", "GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "SSH_AUTH_SOCK", "GNUPGHOME"):
        monkeypatch.delenv(name, raising=False)
    return workshop


@pytest.fixture
def place(workshop: Workshop) -> Place:
    return Place(workshop, workshop.repo(FILES))

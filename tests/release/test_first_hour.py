"""A person's first hour, as the manual describes it, with the package that is built from this commit."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.ci.github import play_github
from tests.documentation.page import DOCS, Command, deeds, untried
from tests.documentation.reader import Reader
from tests.needs import needs
from tests.release.installation import Installation, build

pytestmark = [pytest.mark.registry, pytest.mark.ci]
PAGE = DOCS / "first-hour.md"


@needs("git", "jq", "bwrap")
def test_the_first_hour_can_be_done_with_the_built_package(tmp_path: Path) -> None:
    installation = Installation.of(build(tmp_path / "build")[0], Path(sys.executable), tmp_path / "environment")
    commands = [deed for deed in deeds(PAGE) if isinstance(deed, Command)]
    reader = Reader(tmp_path / "reader", "", {}, installation.program)
    reader.folder.mkdir()
    done = reader.does(deeds(PAGE))
    for command in done:
        assert command.exit == 0, f"$ {command.command.line}\n{command.printed}"
        assert command.command.differs(command.printed) == "", f"$ {command.command.line}\n{command.printed}"
    assert len(done) == len(commands)
    assert untried(PAGE) == []

    root = reader.folder / "desk" / "shop"
    workshop = reader.workshop
    base, head = workshop.git(root, "rev-parse", "main"), workshop.git(root, "rev-parse", "HEAD")
    pull = {"number": 7, "base": {"sha": base}, "head": {"sha": head}, "user": {"login": "author"}}
    event = tmp_path / "event.json"
    event.write_text(json.dumps({"action": "opened", "pull_request": pull}))
    with play_github() as github:
        variables = {
            **workshop.environment,
            "GITHUB_ACTIONS": "true",
            "GITHUB_EVENT_PATH": str(event),
            "GITHUB_REPOSITORY": "o/shop",
            "GITHUB_API_URL": github.address,
            "GITHUB_TOKEN": "token-of-the-job",
        }
        job = installation.proofstone(root, "ci", env=variables)
    assert job.returncode == 3, job.stdout + job.stderr
    (comment,) = github.comments
    assert "edited-expectation" in comment["body"] and len(comment["body"].splitlines()) <= 60

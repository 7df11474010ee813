"""Two whole runs that several criteria look at from different sides. Nobody changes anything about them."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from proofstone.ledger.connection import ledger_path
from proofstone.pipeline.models.run import RunReport
from tests.pipeline.stage import FOCI, PipelineResult, Stage, executor, planner, reviewer, specifier, task
from tests.staging import babbling, failing


@dataclass(frozen=True)
class Ended:
    """A run that has come to its end, with everything that it left."""

    stage: Stage
    came: PipelineResult

    @property
    def report(self) -> RunReport:
        return self.came.report

    @property
    def folder(self) -> Path:
        return Path(self.report.directory)

    def rows(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        """Of the ledger, by SQL as anybody could ask."""
        with closing(sqlite3.connect(ledger_path(self.stage.workshop.proofstone_home))) as ledger:
            return ledger.execute(query, values).fetchall()

    def yaml(self, name: str) -> Mapping[str, Any]:
        found: Mapping[str, Any] = YAML(typ="safe").load((self.folder / name).read_text(encoding="utf-8"))
        return found

    def asked(self, part: str = "") -> list[str]:
        """Every dispatch of the run and of its parts whose name has this in it."""
        return [id for id in self.stage.all_dispatches(self.report) if part in id]


@pytest.fixture(scope="session")
def well(tmp_path_factory: pytest.TempPathFactory) -> Ended:
    """All goes well, nobody is asked anything, and one model serves everybody."""
    stage = Stage.set_up(tmp_path_factory.mktemp("well") / "stage")
    return Ended(stage, stage.run())


CONCERN = {"severity": "major", "concern": "Nobody has asked for this.", "suggestion": "Ask first."}


@pytest.fixture(scope="session")
def red(tmp_path_factory: pytest.TempPathFactory) -> Ended:
    """A planner who calls everything 🟢 lets `shop/auth.py` be changed; half of the researchers and the keeper of
    knowledge give no answer; the reviewers are three models; there is a concern about the request."""
    stage = Stage.set_up(tmp_path_factory.mktemp("red") / "stage")
    unheard = failing("researcher", focus="impact"), babbling("researcher", focus="patterns"), babbling("knowledge")
    backends = [
        word
        for focus in FOCI
        for words in [[reviewer(focus, scope) for scope in ("design", "code")]]
        for word in ("--backend", f"reviewer:{focus}={stage.cast(words, focus)}")
    ]
    came = stage.run(*unheard, specifier(CONCERN), planner(task("auth")), executor("auth"), args=backends)
    return Ended(stage, came)

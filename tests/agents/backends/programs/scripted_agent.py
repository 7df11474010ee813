"""A scripted agent in a bench: what it is told to do, and what was seen of it."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import JsonValue

from proofstone.agents.backends.programs.acp.backend import AcpBackend
from proofstone.agents.backends.programs.discovery import InstalledProgram
from proofstone.agents.backends.programs.preset import Preset
from proofstone.agents.executors.context import ExecutionContext
from proofstone.agents.models import Activity, ActivityKind, Conversation, Fault, FaultKind, Turn
from proofstone.config.user import ProgramSettings
from tests.agents.backends.conversations import talk
from tests.agents.executors.bench import Bench

Step = dict[str, Any]
COMPILED = ("env", "-u", "PYTHONPYCACHEPREFIX")
"""Before a Python: an executor's own compiles whatever it imports, and that would be most of what these agents do."""


def program(
    *arguments: str, preset: Preset | None = None, model: str = "", variables: Step | None = None
) -> InstalledProgram:
    settings = ProgramSettings(set=variables or {})
    return InstalledProgram("acp:test", "test", arguments, preset, settings, model)


@dataclass
class Stage:
    """Where it plays. `replace` makes another one, of which the same is seen."""

    bench: Bench
    heard: list[str] = field(default_factory=list)
    doing: list[str] = field(default_factory=list)
    noted: list[Activity] = field(default_factory=list)
    conversation: Conversation = field(default_factory=lambda: talk(role="executor"))
    scope: tuple[str, ...] = ("a.txt",)
    seconds: float | None = 60
    preset: Preset | None = None
    model: str = ""
    patience: float = 60.0
    variables: dict[str, str] = field(default_factory=dict)

    @property
    def reading(self) -> Stage:
        """With a role whose words are the answer."""
        return replace(self, conversation=talk(role="researcher"))

    def site(self) -> ExecutionContext:
        return replace(
            self.bench.site(),
            on_text=self.heard.append,
            on_progress=self.doing.append,
            on_activity=self.noted.append,
            scope=self.scope,
            sandbox_path=self.bench.root if self.bench.strongest else None,
        )

    def backend(self, *steps: Step, **script: JsonValue) -> AcpBackend:
        return self.scripted({"runs": [{"steps": steps}], **script})

    def scripted(self, script: Step) -> AcpBackend:
        (self.bench.work_tree / "script.json").write_text(json.dumps(script))
        return self.command(*COMPILED, sys.executable, "-m", "proofstone.testing.acp_agent", "script.json")

    def command(self, *argv: str) -> AcpBackend:
        made = program(*argv, preset=self.preset, model=self.model, variables=self.variables)
        return AcpBackend(made, first_answer_seconds=self.patience)

    def play(self, *steps: Step, **script: JsonValue) -> Turn | Fault:
        return self.backend(*steps, **script).turn(self.conversation, self.site(), self.seconds)

    def turn(self, *steps: Step, **script: JsonValue) -> Turn:
        came = self.play(*steps, **script)
        assert isinstance(came, Turn), came
        return came

    def fault(self, kind: FaultKind, *steps: Step, **script: JsonValue) -> Fault:
        came = self.play(*steps, **script)
        assert isinstance(came, Fault), came
        assert came.kind is kind, came
        return came

    def seen(self, kind: ActivityKind) -> list[Activity]:
        return [activity for activity in self.noted if activity.kind is kind]

    def file(self, name: str) -> str | None:
        path = self.bench.work_tree / name
        return path.read_text() if path.exists() else None

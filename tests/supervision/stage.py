"""A stage on which executors are asked if they know what they are doing: `proofstone gate`, with scripted agents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from proofstone.ledger.models import MessageRow
from tests.staging import FILES, CommandResult, Entry, Staged, plan, set_up_repository, task

SETTINGS = '[understanding]\nask = "always"\nsilence_seconds = {silence}\n[gate]\nretry_delay_seconds = 0\n'

_SPOKEN = ("Attended", "Aloud", "Turn")

MODULE = "def one():\n    return 1\n"
TEST = (
    "import unittest\n\nfrom shop.one import one\n\n\nclass T(unittest.TestCase):\n"
    "    def test_it(self):\n        self.assertEqual(one(), 1)\n"
)
VERIFY = "python3 -m unittest tests.test_one"


def write(path: str, content: str) -> dict[str, Any]:
    return {"tool": {"write": {"path": path, "content": content}}}


WORK = [write("shop/one.py", MODULE), write("tests/test_one.py", TEST)]
CLAIM = {"status": "success", "files_modified": ["shop/one.py", "tests/test_one.py"], "done_criteria_met": True}


def executor(*steps: Mapping[str, Any], output: Mapping[str, Any] = CLAIM, **match: object) -> Entry:
    return {"role": "executor", "match": match, "steps": list(steps or WORK), "output": dict(output)}


def says(asked: str, text: str, **match: object) -> Entry:
    """What an executor says when it is asked, to the letter."""
    return {"role": "executor", "match": {"asked": asked, **match}, "raw": text}


def analysis(**other: object) -> dict[str, Any]:
    return {
        "task_understanding": "A module shop/one.py with a function that gives 1, and a test of it. It stands alone.",
        "files": [{"path": "shop/one.py", "new": True}, {"path": "tests/test_one.py", "new": True}],
        "interfaces": [{"path": "shop/cart.py", "symbol": "total", "signature": "def total(prices)"}],
        "cross_agent_impact": "Nobody rests on it.",
        "risk": "Nothing breaks.",
        **other,
    }


IMPACT: Entry = {"role": "executor", "match": {"asked": "impact"}, "output": analysis()}
PLAN = says(
    "plan",
    "[PLAN] Phase 6 | Files: shop/one.py, tests/test_one.py | Changes: a module and its test | Risk: 🟢 | "
    "Interface Impact: none",
)
UNDERSTANDS = (IMPACT, PLAN)


def judge(verdict: str = "pass", *failing: str, detail: str = "it is not so", **match: object) -> Entry:
    """The architect, asked whether somebody has understood; of what fails, it says why."""
    named = ["answer", *(f"RC-{number:02}" for number in range(1, 11))]
    items = [{"item": one, "verdict": "fail" if one in failing else verdict, "detail": detail} for one in named]
    return {"role": "architect", "match": {"focus": "understanding", **match}, "output": {"items": items}}


ARCHITECT: Entry = {
    "role": "architect",
    "output": {"verdict": "APPROVED", "recommendation": "commit", "feedback": "as asked for", "confidence": "high"},
}


@dataclass(frozen=True)
class Stage(Staged):
    @classmethod
    def set_up(cls, folder: Path, text: str = "", silence: float = 60) -> Stage:
        stage = cls(*set_up_repository(folder, FILES, SETTINGS.format(silence=silence)))
        (stage.root / "PLAN.md").write_text(text or plan(task("One")), encoding="utf-8")
        return stage

    def arguments(self, entries: Sequence[Entry]) -> tuple[str, ...]:
        script = self.cast([*entries, ARCHITECT])
        return ("gate", "PLAN.md", "--allow-dirty", "--executor", script, "--architect", script, "--json", "--quiet")

    def gate(self, *entries: Entry, env: Mapping[str, str] | None = None) -> SupervisedResult:
        return SupervisedResult.of(self.proofstone(*self.arguments(entries), env=env))

    def asked(self) -> list[str]:
        """What executors were asked for, in order."""
        return [one["told"]["asked"] for one in self._told() if one["told"]["asked"]]

    def transcript(self) -> list[str]:
        """Every line between brackets, as it was said, in order."""
        with closing(self.ledger()) as ledger:
            rows = [one.row for one in ledger.read(MessageRow, run_id=self.runs[-1])]
        said = [row.payload["turn" if row.type == "Turn" else "told"] for row in rows if row.type in _SPOKEN]
        return [line for one in said if isinstance(one, Mapping) for line in _tagged(str(one["text"]))]

    def _told(self) -> list[Mapping[str, Any]]:
        return [one for one in self.messages(self.runs[-1], "Attended") if one["told"]]


def _tagged(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("[") and "{" not in line]


@dataclass(frozen=True)
class SupervisedResult(CommandResult):
    """What one `proofstone gate --json` with a supervisor gave."""

    @property
    def task(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.json["tasks"][0]
        return found

    @property
    def reasons(self) -> list[str]:
        return [reason["check"] for failure in self.task["failures"] for reason in failure["reasons"]]

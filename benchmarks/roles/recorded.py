"""Answers of different quality, as models of different strength give them, played by the model server.

Each quality is a way in which a right answer is written down. What a reader would still understand must be read; where
something is missing or could mean something else, the agent must be asked again, and its second answer is right. So the
measurement needs no model, and says what the reading of answers can do.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from benchmarks.roles.cases import Case
from proofstone.testing.model_server.answers import Reply


@dataclass(frozen=True)
class Quality:
    """A way of writing an answer down."""

    name: str
    write: Callable[[dict[str, Any]], Reply]
    needs_repair: bool = False
    """Whether the agent must be asked again."""


def play(case: Case, quality: Quality) -> Sequence[Reply]:
    """Return what the model says in a case: its work, an answer of this quality, and the right one if asked again."""
    right = case.cases.right(case.situation)
    work = case.cases.work(case.situation)
    calls = (
        [Reply(calls=tuple(("write", {"path": path, "content": text}) for path, text in work.items()))] if work else []
    )
    again = [Reply(text=json.dumps(right, ensure_ascii=False))] if quality.needs_repair else []
    return [*calls, quality.write(right), *again]


def _text(answer: object) -> str:
    return json.dumps(answer, ensure_ascii=False)


def _change_words(value: object, change: Callable[[str], str]) -> object:
    """Return the value with its words of enumerations changed: short texts of letters in fields that have them."""
    if isinstance(value, Mapping):
        return {
            key: change(part) if key in _WORD_FIELDS and isinstance(part, str) else _change_words(part, change)
            for key, part in value.items()
        }
    return [_change_words(part, change) for part in value] if isinstance(value, list) else value


_WORD_FIELDS: Final = frozenset(
    {"status", "verdict", "scope", "review_focus", "confidence", "severity", "category", "relevance", "focus", "kind"}
    | {"meets_the_request", "failure_class", "size"}
)


def _drop_completion(answer: Mapping[str, object]) -> dict[str, object]:
    return {key: value for key, value in answer.items() if key != "completion"}


def _unlist(value: object) -> object:
    """Return the value with lists of one text written as the text."""
    if isinstance(value, Mapping):
        return {key: _unlist(part) for key, part in value.items()}
    if isinstance(value, list):
        return value[0] if len(value) == 1 and isinstance(value[0], str) else [_unlist(part) for part in value]
    return value


def _write_yaml(value: object, indent: int = 0) -> str:
    """Write plain YAML as a model does."""
    pad = " " * indent
    if isinstance(value, Mapping):
        lines = []
        for key, part in value.items():
            inner = (
                f"\n{_write_yaml(part, indent + 2)}" if isinstance(part, Mapping | list) and part else f" {_text(part)}"
            )
            lines.append(f"{pad}{key}:{inner}")
        return "\n".join(lines)
    if isinstance(value, list):
        return "\n".join(
            f"{pad}-\n{_write_yaml(part, indent + 2)}" if isinstance(part, Mapping | list) else f"{pad}- {_text(part)}"
            for part in value
        )
    return f"{pad}{_text(value)}"


QUALITIES: Final[tuple[Quality, ...]] = (
    Quality("by the answer tool", lambda answer: Reply(calls=(("answer", answer),))),
    Quality("valid", lambda answer: Reply(text=_text(answer))),
    Quality("fenced", lambda answer: Reply(text=f"```json\n{json.dumps(answer, indent=2)}\n```")),
    Quality("prose around", lambda answer: Reply(text=f"Here is my answer.\n\n{_text(answer)}\n\nI hope it helps.")),
    Quality("reasoning block", lambda answer: Reply(text=f"<think>\nWell, {{maybe}}.\n</think>\n{_text(answer)}")),
    Quality("end of a reasoning block", lambda answer: Reply(text=f"so it is.\n</think>\n{_text(answer)}")),
    Quality("second object", lambda answer: Reply(text=f'{_text(answer)}\n\n{{"note": "done"}}')),
    Quality("object before it", lambda answer: Reply(text=f'{{"path": "main.py"}}\n{_text(answer)}')),
    Quality("as YAML", lambda answer: Reply(text=f"```yaml\n{_write_yaml(answer)}\n```")),
    Quality("inside a written call", lambda answer: Reply(text=_text({"name": "answer", "arguments": answer}))),
    Quality("without completion", lambda answer: Reply(text=_text(_drop_completion(answer)))),
    Quality("words in other case", lambda answer: Reply(text=_text(_change_words(answer, str.capitalize)))),
    Quality("texts instead of lists", lambda answer: Reply(text=_text(_unlist(answer)))),
    Quality(
        "truncated",
        lambda answer: Reply(text=_text(answer)[: len(_text(answer)) * 2 // 3], finish="length"),
        needs_repair=True,
    ),
    Quality(
        "wrong enumeration",
        lambda answer: Reply(text=_text(_change_words(answer, lambda word: f"rather {word}"))),
        needs_repair=True,
    ),
    Quality("only prose", lambda _: Reply(text="I looked at it, and all is well."), needs_repair=True),
)

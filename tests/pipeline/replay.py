"""Histories of runs: what was asked, what was sent and what came of it, as text that can be stored and replayed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Final

from pydantic import TypeAdapter

from proofstone.common.models import FrozenModel
from proofstone.common.serialization import deserialize, serialize
from proofstone.pipeline.rules.effects import (
    PipelineEffect,
    PipelineEffectResult,
    PipelineGoal,
    PipelineResult,
)
from proofstone.pipeline.rules.loop import deliver
from tests.pipeline.talk import Talk

Json = Any
_LONG: Final = 160


@dataclass(frozen=True)
class Turn:
    asks: Json
    """What was asked at once, in words that can be compared."""
    sent: tuple[PipelineEffectResult, ...]


@dataclass(frozen=True)
class History:
    feature: PipelineGoal
    turns: tuple[Turn, ...]
    delivered: Json


# Writing one down.


def written(it: Talk) -> str:
    """A line for the feature, one for each turn, one for what came of it."""
    lines: list[Json] = [{"feature": _plain(it.feature)}]
    at = 0
    for batch in it.batches:
        needs, sent = it.needs[at : at + len(batch)], it.sent[at : at + len(batch)]
        at += len(batch)
        lines.append({"asks": [told(need) for need in needs], "sent": [serialize(one) for one in sent]})
    lines.append({"delivered": _plain(it.end)})
    return "".join(f"{json.dumps(line, ensure_ascii=False, sort_keys=True)}\n" for line in lines)


def told(need: PipelineEffect) -> Json:
    """A need with everything that is in it. Of what is long, its beginning and a digest. What has its default is left
    out, so that a new field that nobody sets is no other decision.
    """
    return {
        type(need).__name__: {
            one.name: _short(getattr(need, one.name)) for one in fields(need) if getattr(need, one.name) != one.default
        }
    }


def _short(value: object) -> Json:
    if isinstance(value, FrozenModel):
        return f"{type(value).__name__} {_digest(value.model_dump_json(exclude_defaults=True))}"
    if isinstance(value, tuple):
        return [_short(one) for one in value]
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, str) and len(value) > _LONG:
        return f"{value[:_LONG]}… {_digest(value)}"
    if is_dataclass(value) and not isinstance(value, type):
        return _plain(value)
    return value


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _plain(value: object) -> Json:
    return TypeAdapter(type(value)).dump_python(value, mode="json", exclude_defaults=True)


# Reading and replaying it.


def read(path: Path) -> History:
    first, *turns, last = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return History(
        feature=TypeAdapter(PipelineGoal).validate_python(first["feature"]),
        turns=tuple(Turn(one["asks"], tuple(map(deserialize, one["sent"]))) for one in turns),
        delivered=last["delivered"],
    )


def first_difference(history: History) -> str:
    """Where a replay first goes another way than the record; nothing, if it goes the same way to the same end."""
    loop = deliver(history.feature)
    asked = next(loop)
    for number, turn in enumerate(history.turns, start=1):
        if problem := "; ".join(_differences([told(need) for need in asked], turn.asks)):
            return f"turn {number}: {problem}"
        try:
            asked = loop.send(turn.sent)
        except StopIteration as stop:
            return _of_end(stop.value, history, number)
    return f"turn {len(history.turns) + 1}: it goes on and asks {_names([told(need) for need in asked])}"


def _of_end(delivered: PipelineResult, history: History, number: int) -> str:
    if number < len(history.turns):
        return f"turn {number}: it ends ({delivered.outcome}), and went on with {_names(history.turns[number].asks)}"
    now, then = _plain(delivered), history.delivered
    wrong = "; ".join(_changed("", now, then))
    return f"the end: {wrong}" if wrong else ""


def _differences(now: Sequence[Json], then: Sequence[Json]) -> Iterator[str]:
    if _names(now) != _names(then):
        yield f"it asks {_names(now)}, and asked {_names(then)}"
        return
    for one, other in zip(now, then, strict=True):
        ((kind, values),), ((_, recorded),) = one.items(), other.items()
        yield from _changed(f"{kind}.", values, recorded)


def _changed(prefix: str, now: Mapping[str, Json], then: Mapping[str, Json]) -> Iterator[str]:
    for name in sorted({*now, *then}):
        if now.get(name) != then.get(name):
            yield f"{prefix}{name} is {now.get(name)!r}, and was {then.get(name)!r}"


def _names(asks: Sequence[Json]) -> str:
    return ", ".join(kind for one in asks for kind in one) or "nothing"

"""Keys of the person's that a program was given: whatever it says, they are neither shown nor kept.

Rules: a value counts by the name of its variable, and only if it is long enough to be one: a placeholder's letters are
in every word. It is looked for as it is and as JSON spells it, and hidden too where a text ends in the middle of it.

What a program is seen doing, on record and before whoever watches; bounded, whatever it does, and without the
person's keys.

One for each turn. What other threads see of it waits until the thread of the turn puts it on record: there an error of
the ledger ends the turn, as it must, and in theirs it would be lost.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Final

from proofstone.agents.backends.programs.lines import relative
from proofstone.agents.executors.context import Site
from proofstone.agents.executors.output import HIDDEN, Flow, begun, without
from proofstone.agents.models import Activity, ActivityKind

_KEYS: Final = ("_KEY", "_TOKEN", "_SECRET", "_HEADERS")
_HEADERS: Final = "_HEADERS"
_SHORTEST: Final = 8


@dataclass(frozen=True)
class Mask:
    values: tuple[str, ...] = ()
    """The longest first: one may be a part of another."""

    @staticmethod
    def of(variables: Mapping[str, str]) -> Mask:
        found = {
            spelt for name, value in variables.items() for secret in _secrets(name, value) for spelt in _spelt(secret)
        }
        return Mask(tuple(sorted((item for item in found if len(item) >= _SHORTEST), key=len, reverse=True)))

    @property
    def raw(self) -> tuple[bytes, ...]:
        return tuple(value.encode("utf-8", "surrogateescape") for value in self.values)

    def __call__(self, text: str) -> str:
        known = without(text, self.values, HIDDEN)
        whole = known.removesuffix(HIDDEN)
        cut = begun(whole, self.values)
        return f"{whole[:-cut]}{HIDDEN}" if cut >= _SHORTEST else known

    def flow(self) -> Flow[str]:
        """For what comes in pieces."""
        return Flow(self.values, HIDDEN)


def _secrets(name: str, value: str) -> Iterator[str]:
    if not name.endswith(_KEYS):
        return
    yield value.strip()
    if name.endswith(_HEADERS):  # `Name: value`, one a line; the value may say first of what scheme it is
        for line in value.splitlines():
            header = line.partition(":")[2].strip()
            yield header
            yield header.partition(" ")[2].strip()


def _spelt(value: str) -> set[str]:
    return {value, json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]}


_MOST = 500
"""Refusals of one turn that go on record, and as many of everything else."""
_MOST_SAID = 10
"""Refusals of one turn of which a line stays before whoever watches."""
_LONGEST = 2000
"""Characters of one."""
_SHOWN = 120
_MOST_PATHS = 20


class Notes:
    def __init__(self, site: Site, mask: Mask) -> None:
        self._site = site
        self.mask = mask
        """Of the program's keys."""
        self._waiting: SimpleQueue[Activity] = SimpleQueue()
        self._refusals: Counter[bool] = Counter()
        """How many were refusals, and how many were not."""

    def add(self, activity: Activity) -> None:
        """In the thread of the turn."""
        self.settle()
        self._put(activity)

    def add_later(self, activity: Activity) -> None:
        """In any thread."""
        self._waiting.put(activity)

    def settle(self) -> None:
        """Puts on record what waits, in the thread of the turn."""
        while True:
            try:
                waiting = self._waiting.get_nowait()
            except Empty:
                return
            self._put(waiting)

    def _put(self, activity: Activity) -> None:
        activity = self._masked(activity)
        self._watched(activity)
        refused = activity.kind is ActivityKind.REFUSED
        self._refusals[refused] += 1
        if self._refusals[refused] <= _MOST:
            self._site.noted(self._bounded(activity))
        elif self._refusals[refused] == _MOST + 1:
            more = f"more than {_MOST} refusals: no further ones" if refused else f"more than {_MOST}: only refusals"
            self._site.noted(Activity(kind=ActivityKind.NOTE, text=f"{more} from here on"))

    def _masked(self, activity: Activity) -> Activity:
        paths = tuple(map(self.mask, activity.paths))
        return activity.model_copy(
            update={"name": self.mask(activity.name), "text": self.mask(activity.text), "paths": paths}
        )

    def _watched(self, activity: Activity) -> None:
        match activity.kind:
            case ActivityKind.SAID:
                self._site.hear(f"{activity.text.rstrip()}\n")
            case ActivityKind.TOOL:
                self._site.doing(f"▸ {_line(activity)}")
            case ActivityKind.REFUSED:
                self._site.doing(f"✗ {_line(activity)}")
                if self._refusals[True] < _MOST_SAID:
                    self._site.say(f"refused: {_line(activity)}")

    def _bounded(self, activity: Activity) -> Activity:
        root = self._site.seen_at or self._site.work_tree
        paths = tuple(whole(relative(path, root)[:_LONGEST]) for path in activity.paths[:_MOST_PATHS])
        return activity.model_copy(
            update={"name": whole(activity.name[:_SHOWN]), "text": whole(activity.text[:_LONGEST]), "paths": paths}
        )


def _line(activity: Activity) -> str:
    about = ", ".join(activity.paths) or activity.text
    words = f"{activity.name} {about}" if activity.kind is ActivityKind.TOOL else f"{activity.name}: {activity.text}"
    return " ".join(words.split())[:_SHOWN]


def whole(text: str) -> str:
    """Without halves of characters, which JSON can spell and nothing can keep."""
    return text.encode("utf-8", "replace").decode()

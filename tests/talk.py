"""Drive a workflow without programs: whoever is asked answers by a script, and all that was asked is kept.

`talk.py` of `pipeline`, `plan_gate` and `solve` say what their agents would answer, how what they ask is called, and
what is answered where the script says nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

Effect = TypeVar("Effect")
Asked = TypeVar("Asked")
Sent = TypeVar("Sent")
Result = TypeVar("Result")
Said = TypeVar("Said")
Kind = TypeVar("Kind")


@dataclass
class Talk(Generic[Effect]):
    """All that was asked, in its order."""

    needs: list[Effect] = field(default_factory=list)


def needs(talk: Talk[Any], kind: type[Kind]) -> list[Kind]:
    """What was asked of this kind."""
    return [need for need in talk.needs if isinstance(need, kind)]


def drive(workflow: Generator[Asked, Sent, Result], answer: Callable[[Asked], Sent]) -> Result:
    """Answer whatever the workflow asks, to its end."""
    try:
        asked = next(workflow)
        while True:
            asked = workflow.send(answer(asked))
    except StopIteration as stop:
        result: Result = stop.value
        return result


class Prompter(Generic[Said]):
    """Reads a script out: by name of who is asked, what they say, in turn if it is a list, else each time."""

    def __init__(
        self, lines: Mapping[str, Said | list[Said]], spellings: Callable[[str], Iterable[str]] = lambda name: (name,)
    ) -> None:
        self._lines: dict[str, Said] = {name: said for name, said in lines.items() if not isinstance(said, list)}
        self._lists: dict[str, list[Said]] = {name: [*said] for name, said in lines.items() if isinstance(said, list)}
        self._unread = set(self._lines)
        self._spellings = spellings

    def read(self, name: str) -> Said | None:
        """What whoever is called so says next, by the first spelling for which something is left."""
        for spelling in self._spellings(name):
            if self._lists.get(spelling):
                return self._lists[spelling].pop(0)
            if spelling in self._lines:
                self._unread.discard(spelling)
                return self._lines[spelling]
        return None

    def unread(self) -> list[str]:
        """The names for which nobody asked, or not often enough."""
        return sorted(self._unread | {name for name, left in self._lists.items() if left})


def shorten(name: str) -> Iterator[str]:
    """`judge r1-s1.2` is also said as `judge r1-s1`, `judge r1` and `judge`."""
    yield name
    for mark in (".", "-", " "):
        if mark in name:
            name = name.rpartition(mark)[0]
            yield name

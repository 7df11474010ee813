"""Record and show what a program does during a turn, limited in size and without the user's keys.

`KeyMask` hides the keys that a program was given. A value is secret by the name of its variable, and only if it is long
enough: the letters of a short placeholder are in every word. It is hidden as it is and as JSON writes it, and also if a
text ends in the middle of it.

There is one `ActivityLog` for each turn. Activities from other threads wait until the thread of the turn records them:
an
error of the ledger must end the turn, and in another thread it would be lost.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Final

from proofstone.agents.backends.programs.lines import make_relative
from proofstone.agents.executors.context import ExecutionContext
from proofstone.agents.executors.output import MASK_TEXT, MaskingStream, partial_match_length, remove_values
from proofstone.agents.models import Activity, ActivityKind

_SECRET_SUFFIXES: Final = ("_KEY", "_TOKEN", "_SECRET", "_HEADERS")
_HEADERS_SUFFIX: Final = "_HEADERS"
_MIN_CHARS: Final = 8


@dataclass(frozen=True)
class KeyMask:
    """Hides the keys of a program in its output."""

    values: tuple[str, ...] = ()
    """The longest first, because one may be a part of another."""

    @staticmethod
    def from_variables(variables: Mapping[str, str]) -> KeyMask:
        spellings = {
            spelling
            for name, value in variables.items()
            for secret in _find_secrets(name, value)
            for spelling in _spell(secret)
        }
        return KeyMask(
            tuple(sorted((spelling for spelling in spellings if len(spelling) >= _MIN_CHARS), key=len, reverse=True))
        )

    @property
    def raw(self) -> tuple[bytes, ...]:
        return tuple(value.encode("utf-8", "surrogateescape") for value in self.values)

    def __call__(self, text: str) -> str:
        masked = remove_values(text, self.values, MASK_TEXT)
        start = masked.removesuffix(MASK_TEXT)
        partial = partial_match_length(start, self.values)
        return f"{start[:-partial]}{MASK_TEXT}" if partial >= _MIN_CHARS else masked

    def build_flow(self) -> MaskingStream[str]:
        """Return a masking filter for text that arrives in pieces."""
        return MaskingStream(self.values, MASK_TEXT)


def _find_secrets(name: str, value: str) -> Iterator[str]:
    if not name.endswith(_SECRET_SUFFIXES):
        return
    yield value.strip()
    if name.endswith(_HEADERS_SUFFIX):  # lines of `Name: value`; the value may begin with an authentication scheme
        for line in value.splitlines():
            header = line.partition(":")[2].strip()
            yield header
            yield header.partition(" ")[2].strip()


def _spell(value: str) -> set[str]:
    return {value, json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]}


_MAX_RECORDED = 500
"""Refusals of one turn that are recorded, and as many other activities."""
_MAX_SHOWN_REFUSALS = 10
"""Refusals of one turn that are shown as a line to the user."""
_MAX_CHARS = 2000
"""Characters of one text that are recorded."""
_MAX_LINE_CHARS = 120
_MAX_PATHS = 20


class ActivityLog:
    """Records and shows the activities of one turn."""

    def __init__(self, site: ExecutionContext, mask: KeyMask) -> None:
        self._site = site
        self.mask = mask
        """Hides the program's keys."""
        self._queue: SimpleQueue[Activity] = SimpleQueue()
        self._counts: Counter[bool] = Counter()
        """How many activities were refusals (True), and how many were not (False)."""

    def add(self, activity: Activity) -> None:
        """Record an activity, in the thread of the turn."""
        self.flush()
        self._record(activity)

    def queue(self, activity: Activity) -> None:
        """Queue an activity, in any thread."""
        self._queue.put(activity)

    def flush(self) -> None:
        """Record the queued activities, in the thread of the turn."""
        while True:
            try:
                activity = self._queue.get_nowait()
            except Empty:
                return
            self._record(activity)

    def _record(self, activity: Activity) -> None:
        activity = self._mask_activity(activity)
        self._show(activity)
        is_refusal = activity.kind is ActivityKind.REFUSED
        self._counts[is_refusal] += 1
        if self._counts[is_refusal] <= _MAX_RECORDED:
            self._site.on_activity(self._shorten(activity))
        elif self._counts[is_refusal] == _MAX_RECORDED + 1:
            limit_note = (
                f"more than {_MAX_RECORDED} refusals: no further ones"
                if is_refusal
                else f"more than {_MAX_RECORDED}: only refusals"
            )
            self._site.on_activity(Activity(kind=ActivityKind.NOTE, text=f"{limit_note} from here on"))

    def _mask_activity(self, activity: Activity) -> Activity:
        paths = tuple(map(self.mask, activity.paths))
        return activity.model_copy(
            update={"name": self.mask(activity.name), "text": self.mask(activity.text), "paths": paths}
        )

    def _show(self, activity: Activity) -> None:
        match activity.kind:
            case ActivityKind.SAID:
                self._site.on_text(f"{activity.text.rstrip()}\n")
            case ActivityKind.TOOL:
                self._site.on_progress(f"▸ {_render_line(activity)}")
            case ActivityKind.REFUSED:
                self._site.on_progress(f"✗ {_render_line(activity)}")
                if self._counts[True] < _MAX_SHOWN_REFUSALS:
                    self._site.say(f"refused: {_render_line(activity)}")

    def _shorten(self, activity: Activity) -> Activity:
        root = self._site.sandbox_path or self._site.work_tree
        paths = tuple(
            replace_surrogates(make_relative(path, root)[:_MAX_CHARS]) for path in activity.paths[:_MAX_PATHS]
        )
        return activity.model_copy(
            update={
                "name": replace_surrogates(activity.name[:_MAX_LINE_CHARS]),
                "text": replace_surrogates(activity.text[:_MAX_CHARS]),
                "paths": paths,
            }
        )


def _render_line(activity: Activity) -> str:
    subject = ", ".join(activity.paths) or activity.text
    text = f"{activity.name} {subject}" if activity.kind is ActivityKind.TOOL else f"{activity.name}: {activity.text}"
    return " ".join(text.split())[:_MAX_LINE_CHARS]


def replace_surrogates(text: str) -> str:
    """Replace unpaired surrogates, which JSON can contain and UTF-8 cannot."""
    return text.encode("utf-8", "replace").decode()

"""What git says of objects, kept while the process lives: an object that is named by its id never changes.

Asking git costs a process each time, and a gate asks for the same trees dozens of times.
"""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Final

MOST_BYTES: Final = 64 << 20
QUESTION_BYTES: Final = 500
"""About what a question takes, whatever is answered."""
_IS_ID: Final = re.compile(r"(?:[0-9a-f]{40}|[0-9a-f]{64})(?:\^\{tree\})?").fullmatch


def is_id(word: str) -> bool:
    """Whether it names one object for good, or the tree of one: neither a branch nor an abbreviation."""
    return _IS_ID(word) is not None


class Kept:
    """The last answers, as many as fit."""

    def __init__(self, most: int = MOST_BYTES) -> None:
        self._most = most
        self._size = 0
        self._answers: OrderedDict[Hashable, bytes] = OrderedDict()
        self._lock = threading.Lock()

    def answer(self, question: Hashable, ask: Callable[[], bytes]) -> bytes:
        """If asking fails, the next one asks again."""
        with self._lock:
            if question in self._answers:
                self._answers.move_to_end(question)
                return self._answers[question]
        answer = ask()
        with self._lock:
            if question not in self._answers:
                self._answers[question] = answer
                self._size += len(answer) + QUESTION_BYTES
            while self._size > self._most:
                _, oldest = self._answers.popitem(last=False)
                self._size -= len(oldest) + QUESTION_BYTES
        return answer

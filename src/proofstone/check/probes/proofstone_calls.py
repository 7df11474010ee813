"""Records calls of functions while tests run: the arguments before the call, and the answer.

A function is recorded by calls around its body (`proofstone_instrument.py`), so that its frames, its name and its
callers stay as they are. Of calls within a call of the same function only the outermost is recorded. Generators and
coroutines are not recorded. It is also noted which answers compare themselves; if the engine asks for plain answers,
callers get plain copies of those. Runs on Python 3.8 or later.
"""

import sys
import threading

import proofstone_plain
import proofstone_values

_MAX_CALLS = 40
_MAX_TOTAL = 400


class CallRecorder:
    """Collects calls. `calls` holds them in the order in which they ended."""

    def __init__(self, is_own=lambda kind: False, is_plain=False):
        self.calls = []
        self.comparing = set()
        self._is_own = is_own
        self._is_plain = is_plain
        self.functions = {}
        self._counts = {}
        self._local = threading.local()

    def add_function(self, path, name, parameters):
        """Return the number of a function. `parameters` are the names by kind."""
        number = len(self.functions) + 1
        self.functions[number] = (path, name, parameters)
        return number

    def enter(self, number, values):
        active = self._local.__dict__.setdefault("active", [])
        record = None
        if not any(other == number for other, _ in active):
            record = self._begin(number, values, sys._getframe(1))
        active.append((number, record))

    def leave(self, number, value):
        self._end(number, "value", value)
        found = set()
        try:
            plain = proofstone_plain.reduce(value, self._is_own, found)
        except Exception:  # a class that hides what it is
            return value
        self.comparing.update((number, *names) for names in found)
        return plain if self._is_plain else value

    def fail(self, number):
        self._end(number, "error", sys.exc_info()[0])

    def _begin(self, number, values, frame):
        if self._counts.get(number, 0) >= _MAX_CALLS or len(self.calls) >= _MAX_TOTAL:
            return None
        try:
            arguments = [proofstone_values.encode(value) for value in values]
        except Exception:  # what cannot be copied is not recorded
            return None
        self._counts[number] = self._counts.get(number, 0) + 1
        return {"module": frame.f_globals.get("__name__"), "arguments": arguments}

    def _end(self, number, kind, value):
        active = self._local.__dict__.get("active") or []
        while active:
            other, record = active.pop()
            if other == number:
                break
        else:
            return
        if record is None:
            return
        try:
            record["answer"] = [kind, value.__name__ if kind == "error" else proofstone_values.encode(value)]
        except Exception:
            return
        record["function"] = number
        self.calls.append(record)

"""Records calls of functions while tests run: the arguments before the call, and the answer.

A function is recorded by calls around its body (`proofstone_instrument.py`), so that its frames, its name and its
callers stay as they are. Of calls within a call of the same function only the outermost is recorded. Generators and
coroutines are not recorded. A nested function or a lambda is recorded if an attribute of a module of the project holds
it, as with decorators: its calls are those of the attribute. It is also noted which answers compare themselves; if the engine asks for plain answers,
callers get plain copies of those. Runs on Python 3.8 or later.
"""

import sys
import threading

import proofstone_plain
import proofstone_values

_MAX_CALLS = 40
_MAX_TOTAL = 400
_MAX_SEARCHES = 3


class CallRecorder:
    """Collects calls. `calls` holds them in the order in which they ended."""

    def __init__(self, is_own=lambda kind: False, is_plain=False, list_functions=lambda: ()):
        self.calls = []
        self.comparing = set()
        self._is_own = is_own
        self._is_plain = is_plain
        self._list_functions = list_functions
        self._nested = set()
        self._searches = {}
        self._found = {}
        self.functions = {}
        self._counts = {}
        self._local = threading.local()

    def add_function(self, path, name, parameters, is_nested=False):
        """Return the number of a function. `parameters` are the names by kind."""
        number = len(self.functions) + 1
        self.functions[number] = (path, name, parameters)
        if is_nested:
            self._nested.add(number)
        return number

    def enter(self, number, values):
        if self._searches.get(number, 0) >= _MAX_SEARCHES:
            return
        active = self._local.__dict__.setdefault("active", [])
        frame = sys._getframe(1)
        record = None
        if any(other == number for other, _, _ in active):
            self._drop_ended(active, frame)
        if not any(other == number for other, _, _ in active):
            record = self._begin(number, values, frame)
        active.append((number, record, id(frame)))

    @staticmethod
    def _drop_ended(active, frame):
        """Drop calls that have ended by an exception without being reported, as those of a lambda do."""
        running = set()
        frame = frame.f_back  # the frame itself has not entered yet, so its identity was that of an earlier one
        while frame is not None:
            running.add(id(frame))
            frame = frame.f_back
        active[:] = [entry for entry in active if entry[2] in running]

    def leave(self, number, value):
        if self._searches.get(number, 0) >= _MAX_SEARCHES:
            return value
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
        attribute = self._find_attribute(number, frame) if number in self._nested else None
        if attribute is None and number in self._nested:
            return None
        self._counts[number] = self._counts.get(number, 0) + 1
        return {"module": frame.f_globals.get("__name__"), "arguments": arguments, "attribute": attribute}

    def _find_attribute(self, number, frame):
        """Return the module and the name of the attribute that holds the nested function which this frame runs; None if
        there is none."""
        code, closed = frame.f_code, frame.f_locals
        cells = tuple(id(closed.get(name)) for name in code.co_freevars)
        key = (id(code), cells)
        if key not in self._found:
            for module, name, function in self._list_functions():
                if function.__code__ is code and _closure_of(function) == cells:
                    self._found[key] = (module, name)
                    break
            else:
                self._searches[number] = self._searches.get(number, 0) + 1
                return None
        return self._found[key]

    def _end(self, number, kind, value):
        active = self._local.__dict__.get("active") or []
        while active:
            other, record, _ = active.pop()
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


def _closure_of(function):
    """Return the identities of what a function has closed over."""
    cells = []
    for cell in function.__closure__ or ():
        try:
            cells.append(id(cell.cell_contents))
        except ValueError:  # still empty
            cells.append(id(None))
    return tuple(cells)

"""Values that compare themselves, and plain copies of them.

A list, text or number of a class of the project's own, which decides by itself what it is equal to, less than, or what
it holds, says nothing when a test compares it. `reduce` returns the plain value that such an object holds. Runs on
Python 3.8 or later.
"""

import enum

_HEAP_TYPE = 1 << 9
_MAX_DEPTH = 3
_MAX_ITEMS = 200
_COMPARISONS = ("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__contains__", "__hash__")
_COPIES = {
    dict: lambda value: dict(dict.items(value)),
    list: lambda value: list(list.__iter__(value)),
    tuple: lambda value: tuple(tuple.__iter__(value)),
    set: lambda value: set(set.__iter__(value)),
    frozenset: lambda value: frozenset(frozenset.__iter__(value)),
    str: str.__str__,
    bytes: lambda value: bytes(bytes.__iter__(value)),
    int: int.__int__,
    float: float.__float__,
}


def reduce(value, is_own, found, depth=0):
    """Return the value with a plain copy in place of each object that compares itself, and add their classes to
    `found`. `is_own` tells whether a class belongs to the project. What holds no such object is returned as it is."""
    kind = type(value)
    if kind in (list, tuple, dict) and depth < _MAX_DEPTH and len(value) <= _MAX_ITEMS:
        return _reduce_items(value, kind, is_own, found, depth)
    base = next(entry for entry in kind.__mro__ if not entry.__flags__ & _HEAP_TYPE)
    if kind is base or base not in _COPIES or issubclass(kind, enum.Enum):
        return value
    own = kind.__mro__[: kind.__mro__.index(base)]
    if not any(name in vars(entry) for entry in own if is_own(entry) for name in _COMPARISONS):
        return value
    found.add((kind.__module__, kind.__qualname__, base.__name__))
    return _COPIES[base](value)


def _reduce_items(value, kind, is_own, found, depth):
    if kind is dict:
        copy = {key: reduce(item, is_own, found, depth + 1) for key, item in value.items()}
        return copy if any(copy[key] is not item for key, item in value.items()) else value
    copies = [reduce(item, is_own, found, depth + 1) for item in value]
    return kind(copies) if any(copied is not item for copied, item in zip(copies, value)) else value

"""Values as plain JSON, and back: copies that two processes can compare.

Only values that can be copied faithfully are taken: plain built-in values, members of enumerations, dates and the like,
functions and classes that can be found by name, and objects that hold nothing but such values. Nothing of the project is
called, neither to read an object nor to make one again, so an equality, a representation or a reduction of its own says
nothing here. What belongs to tests or to a runner is not taken. Runs on Python 3.8 or later.
"""

import datetime
import decimal
import enum
import fractions
import importlib
import pathlib
import tempfile
import types
import uuid

MAX_NODES = 600
MAX_TEXT = 20000
_HEAP_TYPE = 1 << 9
_FOREIGN = ("test", "tests", "testing", "conftest", "pytest", "_pytest", "unittest", "mock", "__main__", "pluggy")


class UnfaithfulError(Exception):
    """A value cannot be copied."""


_BASES = {base.__name__: base for base in (object, dict, list, tuple, set, frozenset, str, bytes, int, float)}
_TEXTS = {
    "Decimal": (decimal.Decimal, str, decimal.Decimal),
    "Fraction": (fractions.Fraction, str, fractions.Fraction),
    "UUID": (uuid.UUID, str, uuid.UUID),
    "date": (datetime.date, datetime.date.isoformat, datetime.date.fromisoformat),
    "datetime": (datetime.datetime, datetime.datetime.isoformat, datetime.datetime.fromisoformat),
    "time": (datetime.time, datetime.time.isoformat, datetime.time.fromisoformat),
    "PosixPath": (pathlib.PosixPath, str, pathlib.PosixPath),
    "PurePosixPath": (pathlib.PurePosixPath, str, pathlib.PurePosixPath),
    "complex": (complex, repr, complex),
}


def encode(value):
    """Return the value as JSON, or raise UnfaithfulError."""
    return _Encoder().value(value)


class _Encoder:
    def __init__(self):
        self._nodes = 0
        self._text = 0
        self._open = set()

    def value(self, value):
        self._nodes += 1
        if self._nodes > MAX_NODES:
            raise UnfaithfulError("too large")
        kind = type(value)
        if value is None or kind is bool:
            return value
        if kind is int:
            return ["int", str(value)] if abs(value) > 1 << 53 and abs(value) < 1 << 4096 else self._small(value)
        if kind is float:
            return ["float", repr(value)]
        if kind is str:
            return self._string(value)
        if kind.__name__ in _TEXTS and kind is _TEXTS[kind.__name__][0]:
            return ["text", kind.__name__, self._string(_TEXTS[kind.__name__][1](value))]
        if kind is datetime.timedelta:
            return ["delta", value.days, value.seconds, value.microseconds]
        if isinstance(value, (type, types.FunctionType, types.BuiltinFunctionType)):
            return self._reference(value)
        if id(value) in self._open:
            raise UnfaithfulError("holds itself")
        self._open.add(id(value))
        try:
            if isinstance(value, enum.Enum):
                return ["enum", *_find_name(kind), str(value._name_)]
            return self._object(value, kind)
        finally:
            self._open.discard(id(value))

    def _small(self, value):
        if abs(value) >= 1 << 4096:
            raise UnfaithfulError("too large")
        return value

    def _string(self, text):
        self._text += len(text)
        if self._text > MAX_TEXT:
            raise UnfaithfulError("too large")
        if tempfile.gettempdir() in text or " at 0x" in text or "/tmp/" in text:
            raise UnfaithfulError("a temporary path or an address")
        try:
            text.encode()
        except UnicodeError:
            raise UnfaithfulError("half characters")
        return text

    def _reference(self, value):
        module, name = _find_name(value)
        if _resolve(module, name) is not value:
            raise UnfaithfulError("not found by its name")
        return ["ref", module, name]

    def _object(self, value, kind):
        base = next(entry for entry in kind.__mro__ if not entry.__flags__ & _HEAP_TYPE)
        if _BASES.get(base.__name__) is not base:
            raise UnfaithfulError(base.__name__)
        content = self._content(value, base)
        if kind is base:
            if base is object:
                raise UnfaithfulError("a bare object")
            return [base.__name__, content]
        module, name = _find_name(kind)
        if _resolve(module, name) is not kind:
            raise UnfaithfulError("a class that is not found by its name")
        state = {}
        for entry in kind.__mro__:
            for attribute, member in list(vars(entry).items()):
                if isinstance(member, types.MemberDescriptorType):
                    try:
                        state[attribute] = member.__get__(value)
                    except AttributeError:
                        continue
        try:
            state.update(object.__getattribute__(value, "__dict__"))
        except AttributeError:
            pass
        pairs = [[self._string(str(key)), self.value(item)] for key, item in sorted(state.items())]
        return ["object", module, name, base.__name__, content, pairs]

    def _content(self, value, base):
        if base is object:
            return None
        if base is dict:
            return [[self.value(key), self.value(item)] for key, item in dict.items(value)]
        if base in (list, tuple):
            return [self.value(item) for item in base.__iter__(value)]
        if base in (set, frozenset):
            return sorted((self.value(item) for item in base.__iter__(value)), key=repr)
        if base is bytes:
            if len(value) > MAX_TEXT:
                raise UnfaithfulError("too large")
            return bytes(value).hex()
        return self._string({str: str.__str__, int: int.__repr__, float: float.__repr__}[base](value))


def _find_name(thing):
    module, name = getattr(thing, "__module__", None), getattr(thing, "__qualname__", None)
    if not isinstance(module, str) or not isinstance(name, str) or "<" in name:
        raise UnfaithfulError("has no name")
    if any(part in _FOREIGN or part.startswith("test_") or part.endswith("_test") for part in module.split(".")):
        raise UnfaithfulError("belongs to the tests")
    return module, name


def _resolve(module, name):
    try:
        found = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError):
        raise UnfaithfulError("not found by its name")
    return found


def decode(value):
    """Return a new value, or raise UnfaithfulError."""
    if not isinstance(value, list):
        return value
    kind = value[0]
    if kind == "int":
        return int(value[1])
    if kind == "float" and len(value) == 2:
        return float(value[1])
    if kind == "text":
        return _TEXTS[value[1]][2](value[2])
    if kind == "delta":
        return datetime.timedelta(*value[1:])
    if kind == "ref":
        return _resolve(value[1], value[2])
    if kind == "enum":
        return _resolve(value[1], value[2])[value[3]]
    if kind == "object":
        return _decode_object(*value[1:])
    return _decode_content(_BASES[kind], value[1])


def _decode_content(base, content):
    if base is dict:
        return {decode(key): decode(item) for key, item in content}
    if base is bytes:
        return bytes.fromhex(content)
    if base in (list, tuple, set, frozenset):
        return base([decode(item) for item in content])
    return base(content)


def _decode_object(module, name, base_name, content, pairs):
    kind, base = _resolve(module, name), _BASES[base_name]
    if base is object:
        made = object.__new__(kind)
    elif base in (dict, list, set):
        made = base.__new__(kind)
        filled = _decode_content(base, content)
        {dict: dict.update, list: list.extend, set: set.update}[base](made, filled)
    else:
        made = base.__new__(kind, _decode_content(base, content))
    for key, item in pairs:
        object.__setattr__(made, key, decode(item))
    return made

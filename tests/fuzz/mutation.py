"""Inputs for the fuzzer: seeds that are changed at random, bytes, lines, tokens and JSON values alike.

Input number `n` of a reader depends on the seed, the reader and `n` alone, so that any input can be made again.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any, Final

ORDINARY: Final = 8 << 10
"""Bytes of an ordinary input: most of what can go wrong goes wrong in a short text, and short texts are read fast."""
LARGEST: Final = 64 << 10
"""Bytes of an input that is grown on purpose."""
_GROWN: Final = 1 / 2000
"""The part of the inputs that a few tokens, repeated, fill up."""
_TOKEN: Final = re.compile(rb"[A-Za-z_][\w.-]*|\d+|[^\w\s]|\s+")
_NUMBER: Final = re.compile(rb"-?\d+(?:\.\d+)?")
_MOST_TOKENS: Final = 2000

_NUMBERS: Final = (
    b"0", b"-0", b"-1", b"1", b"255", b"65536", b"2147483648", b"9223372036854775807", b"9223372036854775808",
    b"1e999", b"-1e999", b"1e-999", b"NaN", b"Infinity", b"-Infinity", b"0.1", b"1_000", b"0x1f", b"010",
    b"9" * 400, b"9" * 5000, b"1" + b"0" * 4400, "\u0663".encode(), "\u00b2".encode(), b"+5", b" 7 ",
)  # fmt: skip
_TEXTS: Final = (
    b"\0", b"\xff", b"\xfe\xff", b"\xff\xfe", b"\xef\xbb\xbf", b"\xc3", b"\xed\xa0\x80", b"\xf0\x9f\x98\x80",
    b"\\ud800", b"\\udc00\\ud800", b"\\u0000", b"\\", b"\\\\", b'"', b"'", b"`", b"```", b"\n", b"\r", b"\r\n",
    b"\t", b"\v", b"\f", b"\x1b[31m", b"\x1b", b"\x7f", "\u2028".encode(), "\u0085".encode(), "\u202e".encode(),
    b"<", b">", b"&", b"&amp;", b"&#0;", b"&#xD800;", b"<!--", b"-->", b"<![CDATA[", b"]]>", b"<!DOCTYPE a [",
    b'<!ENTITY b "c">', b"{", b"}", b"[", b"]", b"(", b")", b":", b",", b";", b"=", b"#", b"*", b"&a ", b"*a", b"!!",
    b"!!python/object:os.system ", b"---\n", b"...\n", b"%YAML 9.9\n", b"|", b">-\n", b"- ", b"? ", b"null", b"true",
    b"false", b"None", b"{}", b"[]", b'""', b"../", b"/", b"~", b"C:\\", b"$(", b"${", b"<<EOF\n", b"&&", b"||",
    b"2024-99-99", b"0000-00-00T00:00:00Z", b"</think>", b"<think>",
)  # fmt: skip
_VALUES: Final[Sequence[Any]] = (
    None, True, False, 0, -1, 1.5, 2**31, 2**63, 2**64, 10**400, float("nan"), float("inf"), "", " ", "a", "\0",
    "\ud800", "\udfff\ud800", "\u2028", "1", "true", "null", "../x", "/etc/passwd", "-", "x" * 3000, [], {}, [[]],
    [None], [{}], {"": None}, {"a": {"a": {"a": 1}}}, [1, "a", None],
)  # fmt: skip


class Mutator:
    """Makes inputs from seeds."""

    def __init__(self, seeds: Sequence[bytes], words: Sequence[bytes] = ()) -> None:
        """`words`: further tokens of the format that the seeds do not show."""
        if not seeds:
            raise ValueError("there is no seed")
        self._seeds = seeds
        found = {token: None for seed in seeds for token in _TOKEN.findall(seed)[:_MOST_TOKENS]}
        self._tokens = (*found, *words)

    def input(self, dice: random.Random) -> bytes:
        """Return an input: a seed with some changes, as it is, or one token many times over."""
        seed = dice.choice(self._seeds)
        if dice.random() < _GROWN:
            return self._grown(dice, seed)
        data = seed
        for _ in range(dice.choice((0, 1, 1, 1, 1, 2, 2, 3, 4, 8))):
            data = dice.choice(_CHANGES)(self, dice, data)[:ORDINARY]
        return data

    def _grown(self, dice: random.Random, seed: bytes) -> bytes:
        """Return a seed with tokens in its middle that fill it up: work must grow with the size and no faster."""
        unit = b"".join(self._token(dice) for _ in range(dice.randint(1, 3))) or b"("
        at = dice.randrange(len(seed) + 1)
        many = unit * ((LARGEST - len(seed)) // len(unit) + 1)
        return (seed[:at] + many + seed[at:])[:LARGEST]

    def _token(self, dice: random.Random) -> bytes:
        return dice.choice(self._tokens) if self._tokens and dice.random() < 0.5 else dice.choice(_TEXTS)

    # Changes, each from bytes to bytes.

    def flip(self, dice: random.Random, data: bytes) -> bytes:
        changed = bytearray(data)
        for _ in range(dice.randint(1, 4)):
            if changed:
                changed[dice.randrange(len(changed))] ^= 1 << dice.randrange(8)
        return bytes(changed)

    def cut_off(self, dice: random.Random, data: bytes) -> bytes:
        return data[: dice.randrange(len(data) + 1)]

    def remove(self, dice: random.Random, data: bytes) -> bytes:
        start, end = _span(dice, data)
        return data[:start] + data[end:]

    def repeat(self, dice: random.Random, data: bytes) -> bytes:
        start, end = _span(dice, data)
        return data[:end] + data[start:end] * dice.choice((1, 1, 2, 5, 40)) + data[end:]

    def move(self, dice: random.Random, data: bytes) -> bytes:
        start, end = _span(dice, data)
        rest = data[:start] + data[end:]
        at = dice.randrange(len(rest) + 1)
        return rest[:at] + data[start:end] + rest[at:]

    def insert(self, dice: random.Random, data: bytes) -> bytes:
        at = dice.randrange(len(data) + 1)
        return data[:at] + self._token(dice) * dice.choice((1, 1, 1, 1, 1, 2, 3, 30, 300)) + data[at:]

    def replace(self, dice: random.Random, data: bytes) -> bytes:
        start, end = _span(dice, data)
        return data[:start] + self._token(dice) + data[end:]

    def exchange_token(self, dice: random.Random, data: bytes) -> bytes:
        found = list(islice(_TOKEN.finditer(data, dice.randrange(len(data) + 1)), 20))
        if not found:
            return self.insert(dice, data)
        token = dice.choice(found)
        return data[: token.start()] + self._token(dice) + data[token.end() :]

    def exchange_number(self, dice: random.Random, data: bytes) -> bytes:
        found = list(_NUMBER.finditer(data))
        if not found:
            return self.insert(dice, data)
        number = dice.choice(found)
        return data[: number.start()] + dice.choice(_NUMBERS) + data[number.end() :]

    def splice(self, dice: random.Random, data: bytes) -> bytes:
        other = dice.choice(self._seeds)
        return data[: dice.randrange(len(data) + 1)] + other[dice.randrange(len(other) + 1) :]

    def shuffle_lines(self, dice: random.Random, data: bytes) -> bytes:
        lines = data.split(b"\n")
        at, other = dice.randrange(len(lines)), dice.randrange(len(lines))
        match dice.randrange(4):
            case 0:
                lines[at], lines[other] = lines[other], lines[at]
            case 1:
                del lines[at]
            case 2:
                lines.insert(other, lines[at])
            case _:
                lines[at] = b" " * dice.randint(1, 8) + lines[at]
        return b"\n".join(lines)

    def end_lines_otherwise(self, dice: random.Random, data: bytes) -> bytes:
        return data.replace(b"\n", dice.choice((b"\r\n", b"\r", b"\n\n", b" ", "\u2028".encode(), b"\\n")))

    def encode_otherwise(self, dice: random.Random, data: bytes) -> bytes:
        text = data.decode("utf-8", "replace")
        return text.encode(dice.choice(("utf-16", "utf-16-be", "utf-32", "latin-1", "utf-8-sig", "utf-7")), "replace")

    def nest(self, dice: random.Random, data: bytes) -> bytes:
        """Wrap a span in brackets, up to about as deep as the stack of an interpreter bears."""
        start, end = _span(dice, data)
        depth = dice.choice((dice.randint(2, 100), dice.randint(150, 1100), dice.randint(850, 1000)))
        openings, closing = dice.choice(((b"[", b"]"), (b'{"a":', b"}"), (b"(", b")"), (b"<a>", b"</a>"), (b"- ", b"")))
        return data[:start] + openings * depth + data[start:end] + closing * depth + data[end:]

    def change_json(self, dice: random.Random, data: bytes) -> bytes:
        """Change a value of a JSON document, or of one line that is one."""
        try:
            return _dumped(dice, _changed(dice, json.loads(data)))
        except (ValueError, RecursionError):
            lines = data.split(b"\n")
        documents = [at for at, line in enumerate(lines) if line.startswith((b"{", b"["))]
        if not documents:
            return self.exchange_token(dice, data)
        at = dice.choice(documents)
        try:
            lines[at] = _dumped(dice, _changed(dice, json.loads(lines[at])))
        except (ValueError, RecursionError):
            return self.exchange_token(dice, data)
        return b"\n".join(lines)


_Change = Callable[[Mutator, random.Random, bytes], bytes]
_CHANGES: Final[Sequence[_Change]] = (
    Mutator.flip,
    Mutator.cut_off,
    Mutator.remove,
    Mutator.remove,
    Mutator.repeat,
    Mutator.move,
    Mutator.insert,
    Mutator.insert,
    Mutator.replace,
    Mutator.exchange_token,
    Mutator.exchange_token,
    Mutator.exchange_token,
    Mutator.exchange_number,
    Mutator.splice,
    Mutator.shuffle_lines,
    Mutator.shuffle_lines,
    Mutator.end_lines_otherwise,
    Mutator.encode_otherwise,
    Mutator.nest,
    Mutator.change_json,
    Mutator.change_json,
    Mutator.change_json,
    Mutator.change_json,
)


def _span(dice: random.Random, data: bytes) -> tuple[int, int]:
    """Return a place in the data and one a little behind it."""
    start = dice.randrange(len(data) + 1)
    return start, min(len(data), start + dice.choice((0, 1, 2, 4, 8, 20, 60, 300)))


def _changed(dice: random.Random, document: Any) -> Any:  # noqa: ANN401  whatever JSON holds
    """Change one value in place, on a random way down, and return the document."""
    if not isinstance(document, dict | list) or not document or dice.random() < 0.05:
        return dice.choice(_VALUES)
    place = document
    while True:
        keys = list(place) if isinstance(place, dict) else range(len(place))
        key = dice.choice(keys)
        below = place[key]
        if isinstance(below, dict | list) and below and dice.random() < 0.75:
            place = below
            continue
        break
    match dice.randrange(6):
        case 0:
            del place[key]
        case 1 if isinstance(place, dict):
            place[dice.choice((f"{key}s", "", "a", "type", "id", "name", "\ud800"))] = place.pop(key)
        case 1 if isinstance(place, list):
            place.insert(key, below)
        case 2:
            place[key] = [below]
        case 3:
            place[key] = {"a": below}
        case _:
            place[key] = dice.choice(_VALUES)
    return document


def _dumped(dice: random.Random, document: object) -> bytes:
    text = json.dumps(document, ensure_ascii=dice.random() < 0.5, indent=dice.choice((None, None, None, 2)))
    return text.encode("utf-8", "surrogatepass")

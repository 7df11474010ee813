"""Takes the values of secret variables out of everything that a program says, before anybody keeps or shows it.

A value is looked for as it is and in the spellings that programs produce without meaning to: in JSON, in Python's
`repr`, in XML and HTML, percent-encoded, quoted for a shell, in base64 (also inside a longer text) and in hexadecimal;
and in part, where an ellipsis stands for the rest. Of a value with several lines each line counts by itself too, and of
a URL its password. Not found is what a program changed on purpose: a value that is reversed, split over lines, cut
without a mark or encrypted.

Not masked is what would make output unreadable and protect nothing (`is_maskable`): short values, plain words and
plain numbers.
"""

from __future__ import annotations

import base64
import html
import json
import re
import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final
from urllib.parse import quote, quote_plus, unquote, urlsplit

MASK: Final = b"***"
SHORTEST: Final = 8
"""Characters that a value must have."""
_CUT: Final = 6
"""Characters at the beginning or the end of a value that are masked where the rest is cut off."""
_ELLIPSIS: Final = re.compile(rb"\.{3,}|\xe2\x80\xa6")
_PLAIN: Final = re.compile(r"[a-z]+|[A-Z]+|[A-Z][a-z]+|[0-9.]+", re.ASCII)
_HOST: Final = re.compile(r"[a-z][a-z0-9+.-]*://[A-Za-z0-9.-]+(?::[0-9]+)?/?", re.ASCII)
_PLAIN_LENGTH: Final = 16
"""From this length on, also a plain word or number is masked: nobody names things so."""


@dataclass(frozen=True)
class SecretMask:
    """The values of some variables, and how to take them out of a text."""

    values: tuple[tuple[str, str], ...] = ()
    """Name and value of each variable."""

    @staticmethod
    def of(variables: Mapping[str, str], *, public: Collection[str] = ()) -> SecretMask:
        """Return the mask for these variables. `public`: values that everybody may see, such as paths."""
        found = ((name, value.strip()) for name, value in variables.items())
        return SecretMask(tuple((name, value) for name, value in found if value and value not in public))

    def __call__(self, data: bytes) -> bytes:
        """Return the data with every value masked, also one that its author has cut: `abcdefgh...stuvwxyz`."""
        return self._without_cut(self._pattern.sub(MASK, data)) if self._pattern else data

    def text(self, text: str) -> str:
        """Return the text with every value masked."""
        if not self._pattern:
            return text
        return self(text.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")

    def names_in(self, text: str) -> list[str]:
        """Return the variables whose value, in any spelling, is in the text."""
        data = text.encode("utf-8", "surrogatepass")
        return [
            name
            for name, value in self.values
            if any(spelling in data for part in _parts(value) for spelling in _spellings(part))
        ]

    def stream(self) -> MaskedStream:
        """Return a mask for data that comes in pieces."""
        return MaskedStream(self)

    @cached_property
    def spellings(self) -> tuple[bytes, ...]:
        """Everything that is looked for; the longest first, since one may be a part of another."""
        found = {spelling for _, value in self.values for part in _parts(value) for spelling in _spellings(part)}
        return tuple(sorted(found, key=lambda spelling: (-len(spelling), spelling)))

    @cached_property
    def _pattern(self) -> re.Pattern[bytes] | None:
        return re.compile(b"|".join(map(re.escape, self.spellings))) if self.spellings else None

    def _without_cut(self, data: bytes) -> bytes:
        """Return the data without beginnings of a value in front of an ellipsis, and ends of one behind it."""
        parts, shown = [], 0
        for cut in _ELLIPSIS.finditer(data):
            start, end = max(cut.start(), shown), cut.end()
            if end <= shown:
                continue
            before = self.unfinished(data[max(shown, start - len(self.spellings[0])) : start])
            after = max((_unfinished(data[end : end + len(one)][::-1], one[::-1]) for one in self.spellings), default=0)
            parts += [data[shown : start - before], MASK, data[start:end]] if before >= _CUT else [data[shown:end]]
            shown = end
            if after >= _CUT:
                parts.append(MASK)
                shown = end + after
        return b"".join([*parts, data[shown:]])

    def unfinished(self, data: bytes) -> int:
        """Return how many bytes at the end of the data may be the beginning of a value that goes on."""
        return max((_unfinished(data, spelling) for spelling in self.spellings), default=0)


NO_SECRETS: Final = SecretMask()
"""Masks nothing."""


class MaskedStream:
    """Masks data that comes in pieces: what may be the beginning of a value is held back until more is known."""

    def __init__(self, mask: SecretMask) -> None:
        self._mask = mask
        self._held = b""

    def add(self, data: bytes) -> bytes:
        """Take the next piece, and return what may be shown by now."""
        if not self._mask.spellings:
            return data
        known = self._mask(self._held + data)
        shown = len(known) - self._mask.unfinished(known)
        self._held = known[shown:]
        return known[:shown]

    def end(self) -> bytes:
        """Return what was held back. The beginning of a value that is long enough to give it away is masked."""
        held, self._held = self._held, b""
        return MASK if len(held) >= SHORTEST else held


def is_maskable(value: str) -> bool:
    """Return whether a value is worth masking: not a short one, and not a plain word, number or host."""
    if len(value) < SHORTEST or _HOST.fullmatch(value):
        return False
    return len(value) >= _PLAIN_LENGTH or _PLAIN.fullmatch(value) is None


def _parts(value: str) -> Iterator[str]:
    """Yield what is secret in a value: the whole, each of its lines, and the password of a URL."""
    candidates = [value, *value.splitlines()]
    try:
        password = urlsplit(value).password if "://" in value else None
    except ValueError:
        password = None
    candidates += [password, unquote(password)] if password else []
    yield from dict.fromkeys(part.strip() for part in candidates if is_maskable(part.strip()))


def _spellings(part: str) -> Iterable[bytes]:
    raw = part.encode("utf-8", "surrogateescape")
    texts = {
        part.replace("\n", "\r\n"),
        json.dumps(part)[1:-1],
        json.dumps(part, ensure_ascii=False)[1:-1],
        repr(part)[1:-1],
        html.escape(part),
        html.escape(part, quote=False),
        quote(raw, safe=""),
        quote(raw),
        quote_plus(raw),
        shlex.quote(part),
    }
    texts |= {re.sub("%[0-9A-F]{2}", lambda found: found[0].lower(), text) for text in texts if "%" in text}
    found = {raw, *(text.encode("utf-8", "surrogateescape") for text in texts)}
    found |= {raw.hex().encode(), raw.hex().upper().encode(), *_base64(raw)}
    return {spelling for spelling in found if len(spelling) >= SHORTEST}


def _base64(raw: bytes) -> Iterator[bytes]:
    """Yield what base64 makes of the value by itself, and at any place inside a longer text."""
    for shift, first in ((0, 0), (1, 2), (2, 3)):
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            whole = encode(b"\0" * shift + raw)
            last = len(whole) if (shift + len(raw)) % 3 == 0 else len(whole.rstrip(b"=")) - 1
            yield whole[first:last]
    yield base64.b64encode(raw)


def _unfinished(data: bytes, spelling: bytes) -> int:
    at = data.find(spelling[:1], max(0, len(data) - len(spelling) + 1))
    while at >= 0:
        if spelling.startswith(data[at:]):
            return len(data) - at
        at = data.find(spelling[:1], at + 1)
    return 0

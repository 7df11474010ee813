"""Names and characters that are not what a reader takes them for.

Three kinds: letters of other scripts that look like Latin ones, in a name that is otherwise Latin (`сalc` with a
Cyrillic с) or reads as a Latin name of the same file; characters that a language reads as another (Python reads `ｅval`
as `eval`); and characters without width or that change the reading order. Other names in another script, and the Greek
letters of formulas, are no disguise: only letters without a look of their own count.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from proofstone.check.rules.scan_rule import ScanLine

_LOOKALIKES: Final = {
    **dict(zip("АВЕЅІЈКМНОРСТУХЗаеосрхуіјѕһԁԛԝґё", "ABESIJKMHOPCTYX3aeocpxyijshdqwre", strict=True)),
    **dict(zip("ΑΒΕΖΗΙΚΜΝΟΡΤΥΧο", "ABEZHIKMNOPTYXo", strict=True)),
    **dict(zip("ՕՏհոսցօ", "OShnugo", strict=True)),
    **dict(zip("ǃ\u0131\u0261", "!ig", strict=True)),
}
"""Letters of Cyrillic, Greek, Armenian and others, and the Latin ones that they look like."""
_NAME: Final = re.compile(r"[^\W\d]\w*")
_HIDDEN: Final = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2069\u206a-\u206f\u3164"
    "\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e007f]"
)
"""Characters without width, and those that change the order in which a line is read."""
_JOINERS: Final = "\u200c\u200d"
_BYTE_ORDER_MARK: Final = "\ufeff"


@dataclass(frozen=True)
class DisguisedName:
    """A place that reads as something else."""

    line: int
    detail: str


def find_disguised_names(lines: Sequence[ScanLine], added: Container[int]) -> Iterator[DisguisedName]:
    """Yield the disguised names in added lines of code, and hidden characters anywhere in them."""
    names = {name for line in lines for name in _NAME.findall(line.code) if name.isascii()}
    for line in lines:
        if line.number not in added or (line.text.isascii() and line.comment.isascii()):
            continue
        for match in _NAME.finditer(line.code):
            if (reading := _read_as(match[0], names)) != match[0]:
                detail = f"{_spell(match[0])} reads as {reading!r}"
                yield DisguisedName(line.number, detail)
        whole = line.text if line.comment.isspace() or not line.comment else line.text + line.comment
        hidden = [char for char in _HIDDEN.findall(whole) if not _is_ordinary(char, whole, line.number)]
        if hidden:
            yield DisguisedName(line.number, f"the line holds {', '.join(dict.fromkeys(map(_describe, hidden)))}")


def _read_as(name: str, names: Container[str]) -> str:
    """Return the Latin name that a reader, or the language, takes this name for; the name itself if there is none.
    `names` are the Latin names of the file."""
    if name.isascii():
        return name
    normal = unicodedata.normalize("NFKC", name)
    if normal.isascii():
        return normal
    plain = "".join(_LOOKALIKES.get(char, char) for char in normal)
    # A word of another script may by chance have only such letters: then nothing in it is Latin, and no name is equal.
    is_mixed = any(char.isascii() and char.isalpha() for char in normal)
    return plain if plain.isascii() and (is_mixed or plain in names) else name


def _is_ordinary(char: str, line: str, number: int) -> bool:
    """Return whether a hidden character has a reason to be there: joiners between letters of other scripts or in emoji,
    and the mark at the beginning of a file."""
    if char == _BYTE_ORDER_MARK:
        return number == 1 and line.startswith(char)
    if char in _JOINERS:
        index = line.index(char)
        return not line[max(index - 1, 0)].isascii() and not line[index + 1 : index + 2].isascii()
    return False


def _spell(name: str) -> str:
    """Return a name in which every character that is not ASCII is written as its code point."""
    return "".join(char if char.isascii() else f"<U+{ord(char):04X}>" for char in name)


def _describe(char: str) -> str:
    return f"U+{ord(char):04X} {unicodedata.name(char, 'without a name')}"

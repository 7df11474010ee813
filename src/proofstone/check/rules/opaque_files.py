"""Files that a reader cannot read: programs, pickles, archives and other bytes that a change adds.

What a program may load or run as code needs a person's word: nobody can say from the change what it does. Among tests
and samples, where such files are often data, and where the file was of the same kind before, the finding only lowers
the confidence. Pictures, fonts, sounds and documents are no code, and raise nothing.

| kind        | what it is recognised by                                                                 |
|-------------|------------------------------------------------------------------------------------------|
| program     | the first bytes of ELF, Mach-O, Windows, Java and WebAssembly files                      |
| pickle      | the first byte and the last, or the name; loading one runs what it names                 |
| archive     | zip files (wheels, jars, models) with code or a pickle in them                           |
| bytes       | anything else that is not text: its kind is unknown                                      |
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from proofstone.common.risk import is_test_path


class OpaqueKind(StrEnum):
    PROGRAM = "a compiled program or module"
    PICKLE = "a pickle, which runs code when it is loaded"
    ARCHIVE = "an archive with code in it"
    BYTES = "not text"


@dataclass(frozen=True)
class OpaqueFile:
    """A file of a change that nobody can read."""

    kind: OpaqueKind
    needs_decision: bool
    """Whether a person has to accept it. Otherwise it only lowers the confidence."""

    def describe(self, size: int) -> str:
        return f"is {self.kind} ({size:,} bytes): no reviewer can read what it holds"


_PROGRAMS: Final = (
    b"\x7fELF", b"MZ", b"\xfe\xed\xfa\xce", b"\xfe\xed\xfa\xcf", b"\xce\xfa\xed\xfe", b"\xcf\xfa\xed\xfe",
    b"\xca\xfe\xba\xbe", b"\0asm", b"BC\xc0\xde", b"!<arch>\n",
)  # fmt: skip
_MEDIA: Final = (
    b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF8", b"RIFF", b"BM", b"\0\0\1\0", b"%PDF-", b"OggS", b"ID3", b"\xff\xfb",
    b"fLaC", b"wOFF", b"wOF2", b"\0\1\0\0\0", b"OTTO", b"II*\0", b"MM\0*", b"\x1aE\xdf\xa3", b"icns", b"8BPS",
)  # fmt: skip
_MEDIA_AT_4: Final = b"ftyp"
_PICKLE_NAMES: Final = (".pkl", ".pickle", ".joblib", ".dill", ".pk", ".p")
_PICKLE_START: Final = re.compile(rb"\x80[\x02-\x05]")
_OLD_PICKLE: Final = re.compile(rb"[(\]}c].{0,4000}\.\s*\Z", re.DOTALL)
_CENTRAL_ENTRY: Final = re.compile(rb"PK\x01\x02.{24}(..)", re.DOTALL)
_NAME_OFFSET: Final = 46
_CODE_INSIDE: Final = re.compile(
    rb"\.(?:py[cdow]?|so|dylib|dll|exe|class|jar|[cm]?js|sh|rb|php|pl|lua|wasm|pkl|pickle)\Z|(?:\A|/)data\.pkl\Z"
)
_SAMPLES: Final = re.compile(r"(?:^|/)(?:fixtures?|__fixtures__|test[-_]?data|samples?|examples?|corpus|docs?)/", re.I)
_HEAD: Final = 8192


def find_opaque_file(path: str, old: bytes | None, new: bytes) -> OpaqueFile | None:
    """Return what is wrong with the content of a changed file; None if a reader can read it, or if it is no code."""
    kind = _classify(path, new)
    if kind is None:
        return None
    was_so = old is not None and _classify(path, old) is kind
    is_sample = is_test_path(path) or bool(_SAMPLES.search(path))
    return OpaqueFile(kind, needs_decision=kind is not OpaqueKind.BYTES and not was_so and not is_sample)


def _classify(path: str, content: bytes) -> OpaqueKind | None:
    head = content[:_HEAD]
    lower = path.lower()
    if lower.endswith(_PICKLE_NAMES) and (_PICKLE_START.match(head) or _OLD_PICKLE.match(content)):
        return OpaqueKind.PICKLE
    if b"\0" not in head and not _PICKLE_START.match(head):
        return None
    if head.startswith(_PROGRAMS):
        return OpaqueKind.PROGRAM
    if _PICKLE_START.match(head) and content.rstrip().endswith(b"."):
        return OpaqueKind.PICKLE
    if any(_CODE_INSIDE.search(name.lower()) for name in _list_archive(content)):
        return OpaqueKind.ARCHIVE
    is_media = head.startswith(_MEDIA) or head[4:8] == _MEDIA_AT_4
    is_text = not head.startswith(b"PK") and _is_wide_text(head)
    return None if is_media or is_text else OpaqueKind.BYTES


def _list_archive(content: bytes) -> list[bytes]:
    """Return the names in the directory of a zip file, wherever in the file it stands: before it anything may stand."""
    entries = _CENTRAL_ENTRY.finditer(content) if b"PK\x05\x06" in content else ()
    return [
        content[match.start() + _NAME_OFFSET : match.start() + _NAME_OFFSET + int.from_bytes(match[1], "little")]
        for match in entries
    ]


def _is_wide_text(head: bytes) -> bool:
    """Return whether the bytes are text in UTF-16 or UTF-32, with its mark."""
    return head.startswith((b"\xff\xfe", b"\xfe\xff"))

"""Added code that runs what a reader does not see: decoded text, and files that are loaded as code.

*Encoded code*: an added line decodes (base64, hex, compression), and an added line of the same file runs or loads what
comes of it. With a long encoded literal in the change a person has to accept it; without, it lowers the confidence.

*Loaded code*: an added line runs a file as code or loads a format that can run code (pickle, marshal, unsafe YAML, a
native library by its path). It lowers the confidence: what runs is not in the lines that a reviewer reads.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from proofstone.check.rules.scan_rule import ScanLine

_DECODES: Final = re.compile(
    r"\b(?:(?:[abz]|b32hex|standard_b64|urlsafe_b64|b16|b32|b64|b85|a85|z85)_?decode|decodebytes|a2b_\w+|fromhex"
    r"|unhexlify|decompress(?:obj)?|atob|inflate(?:Raw)?(?:Sync)?|gunzip(?:Sync)?|brotliDecompress(?:Sync)?)\s*\("
    r"|\bBuffer\s*\.\s*from\s*\([^\n]*['\"](?:base64|hex|latin1)|\bbase64\s+(?:-d|-D|--decode)|\bxxd\s+-r"
    r"|codecs\s*\.\s*decode\s*\(|\brot_?13\b"
)
_RUNS: Final = re.compile(
    r"(?<![\w.])(?:exec|eval|compile|__import__)\s*\(|\bnew\s+Function\s*\(|\bvm\s*\.\s*(?:run\w+|Script)\b"
    r"|\bmarshal\s*\.\s*loads?\s*\(|\b(?:c?[pP]ickle|dill|cloudpickle)\s*\.\s*(?:loads?|Unpickler)\s*\("
    r"|\b(?:FunctionType|CodeType|ModuleType)\s*\(|\bexec_module\s*\(|\bctypes\s*\.\s*\w*(?:DLL|CFUNCTYPE)\w*\s*\("
    r"|\|\s*(?:ba|z|da)?sh\b|\b_compile\s*\("
)
_LOADS: Final = re.compile(
    r"(?<![\w.])(?:exec|eval|compile)\s*\(\s*(?:compile\s*\(\s*)?(?:open\s*\(|[\w.]+(?:\([^()]*\))?\s*\.\s*read(?:_text|_bytes)?\s*\()"
    r"|\brunpy\s*\.\s*run_path\s*\(|\bspec_from_file_location\s*\(|\bSource(?:less)?FileLoader\s*\("
    r"|\bExtensionFileLoader\s*\(|\bzipimporter?\s*\(|\bmarshal\s*\.\s*loads?\s*\("
    r"|\b(?:c?[pP]ickle|dill|cloudpickle|joblib|torch)\s*\.\s*load\s*\(|\bshelve\s*\.\s*open\s*\("
    r"|\bread_pickle\s*\(|\ballow_pickle\s*=\s*True|\byaml\s*\.\s*(?:unsafe_load|UnsafeLoader|full_load|Loader\b)"
    r"|\b(?:ctypes\s*\.\s*)?(?:CDLL|PyDLL|WinDLL)\s*\(|\bLoadLibrary\s*\(|\bprocess\s*\.\s*dlopen\s*\("
    r"|\b(?:eval|Function|runInThisContext|runInNewContext|Script)\s*\(\s*(?:fs\s*\.\s*)?readFile(?:Sync)?\s*\("
)
_LITERAL: Final = re.compile(r"[A-Za-z0-9+/=_\-\\]{60,}")
_LONG: Final = 240
"""Characters of encoded literals among the added lines from which on they may hold a program."""


@dataclass(frozen=True)
class UnseenCode:
    """An added line that runs what a reader does not see."""

    is_encoded: bool
    """Whether it is decoded first. Otherwise it is loaded from a file."""
    line: int
    detail: str
    needs_decision: bool = False


def find_unseen_code(lines: Sequence[ScanLine], added: Container[int], *, is_test: bool) -> Iterator[UnseenCode]:
    """Yield what the added lines of one file of code run that cannot be read in them."""
    new = [line for line in lines if line.number in added]
    decoding = [line for line in new if _has(_DECODES, line)]
    running = [line for line in new if _has(_RUNS, line)]
    if decoding and running:
        literals = sum(len(literal) for line in new for literal in _LITERAL.findall(line.text))
        detail = f"decodes what line {running[0].number} runs or loads: {decoding[0].text.strip()[:80]}"
        yield UnseenCode(True, decoding[0].number, detail, needs_decision=literals >= _LONG and not is_test)
    for line in new:
        if not is_test and _has(_LOADS, line):
            yield UnseenCode(False, line.number, f"runs or loads a file as code: {line.text.strip()[:80]}")


def _has(pattern: re.Pattern[str], line: ScanLine) -> bool:
    """Return whether the pattern begins in code, outside of strings and comments."""
    return any(not line.code[match.start()].isspace() for match in pattern.finditer(line.text))

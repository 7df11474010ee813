"""What a plan says must be there in the end, looked at in the final tree. Pure: the files are handed over.

Artifacts and links are seen; truths can only be judged, and are said to be unjudged where nobody did.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from posixpath import basename
from typing import Final

from proofstone.contracts.gate_report import MustHaveResult
from proofstone.contracts.plan import KeyLink, MustHaves, RequiredArtifact

Read = Callable[[str], str | None]
_DEFINES: Final = r"(async\s+)?(def|class|func|fn|pub\s+\w+|type|interface|const|let|var)\s"


def look(must: MustHaves, read: Read) -> tuple[MustHaveResult, ...]:
    """`read` gives the text of a file of the final tree, or None where there is none."""
    artifacts = [_artifact(one, read) for one in must.artifacts]
    links = [_link(one, read) for one in must.key_links]
    truths = [MustHaveResult(what=f"truth: {text}", holds=None, detail="nobody judged it") for text in must.truths]
    return (*artifacts, *links, *truths)


def _artifact(wanted: RequiredArtifact, read: Read) -> MustHaveResult:
    what = f"artifact: {wanted.path}"
    text = read(wanted.path)
    if text is None:
        return MustHaveResult(what=what, holds=False, detail="there is no such file")
    if wanted.contains and wanted.contains not in text:
        return MustHaveResult(what=what, holds=False, detail=f"it does not contain {wanted.contains!r}")
    missing = [name for name in wanted.exports if not _exports(text, name)]
    if missing:
        return MustHaveResult(what=what, holds=False, detail=f"it does not export {', '.join(missing)}")
    lines = len(text.splitlines())
    if lines < wanted.min_lines:
        return MustHaveResult(what=what, holds=False, detail=f"it has {lines} lines, not {wanted.min_lines}")
    return MustHaveResult(what=what, holds=True)


def _exports(text: str, name: str) -> bool:
    """Whether the file defines or exports the name, in any of the usual ways of any language."""
    word, quoted = rf"\b{re.escape(name)}\b", rf"[\"']{re.escape(name)}[\"']"
    ways = (rf"\bexport\b[^\n;]*{word}", rf"^\s*{_DEFINES}[^\n]*?{word}", rf"{word}\s*=", quoted)
    return any(re.search(way, text, re.MULTILINE) for way in ways)


def _link(wanted: KeyLink, read: Read) -> MustHaveResult:
    what = f"link: {wanted.source} → {wanted.target}"
    text = read(wanted.source)
    if text is None:
        return MustHaveResult(what=what, holds=False, detail=f"there is no file {wanted.source}")
    if not wanted.pattern:
        stem = basename(wanted.target).partition(".")[0]
        found = bool(stem) and stem in text
        return MustHaveResult(what=what, holds=found, detail="" if found else f"it never mentions {stem}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = re.search(wanted.pattern, text, re.MULTILINE) is not None
    except (re.error, OverflowError, RecursionError) as error:
        return MustHaveResult(what=what, holds=False, detail=f"its pattern is no regular expression: {error}")
    return MustHaveResult(what=what, holds=found, detail="" if found else f"nothing matches {wanted.pattern!r}")

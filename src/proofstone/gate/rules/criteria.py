"""Which check shows that a done criterion is met. By words, and only where they leave no doubt; all else is prose.

| the criterion                                             | is shown by                         |
|-----------------------------------------------------------|-------------------------------------|
| quotes a verify command in backticks                      | that command's check                |
| names a repaired test, by id or by function               | the check that ran it               |
| says no more than that tests pass                         | a check that executed tests         |
| says no more than that build, types or lint pass          | the check of that kind              |
| is nothing but that a declared file exists                | the frozen tree                     |

What a plan says must be there in the end, looked at in the final tree. Pure: the files are handed over.

Artifacts and links are seen; truths can only be judged, and are said to be unjudged where nobody did.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Sequence
from posixpath import basename
from typing import Final

from proofstone.check.models import CheckKind, CheckLine, CheckReport
from proofstone.common.models import Verdict
from proofstone.gate.models import CriterionLink, MustHaveResult
from proofstone.plans.models import KeyLink, MustHaves, PlanTask, RequiredArtifact

_PASSES: Final = r"(?:still\s+)?(?:pass|passes|passing|succeeds?|are green|is green|is clean)\.?"
_WORDS: Final[tuple[tuple[re.Pattern[str], tuple[CheckKind, ...]], ...]] = tuple(
    (re.compile(rf"^(?:(?:all|the|every|existing|new|old|unit|both|its|\d+)\s+)*{words}$", re.IGNORECASE), kinds)
    for words, kinds in (
        (rf"tests?(?:\s+suite)?\s+{_PASSES}", (CheckKind.TESTS,)),
        (rf"(?:build|compilation)\s+{_PASSES}", (CheckKind.BUILD,)),
        (r"(?:project|code|app|package)\s+(?:builds|compiles)\.?", (CheckKind.BUILD,)),
        (rf"(?:type[- ]?checks?|types|mypy|tsc)\s+{_PASSES}", (CheckKind.TYPES,)),
        (rf"(?:lint|linter|linting|ruff|eslint|flake8)\s+{_PASSES}", (CheckKind.LINT,)),
        (rf"(?:verify command|verification)\s+(?:{_PASSES}|exits 0\.?)", (CheckKind.VERIFY,)),
    )
)
_EXISTS: Final = re.compile(r"^`?(?P<path>[\w./-]+)`?\s+(exists?|is there|is created|was created)\.?$", re.IGNORECASE)
TREE: Final = "frozen-tree"
"""Stands for the tree itself: a file is in it or is not."""


def link(task: PlanTask, report: CheckReport, present: Sequence[str]) -> tuple[CriterionLink, ...]:
    """Every criterion with what shows it. `present`: the files of the tree that the task changed and that are there."""
    passed = [line for line in report.checks if line.verdict is Verdict.PASS]
    return tuple(CriterionLink(criterion=text, check=_shown_by(text, passed, report, present)) for text in task.done)


def _shown_by(text: str, passed: Sequence[CheckLine], report: CheckReport, present: Sequence[str]) -> str | None:
    for line in passed:
        if line.kind is CheckKind.VERIFY and f"`{line.command.strip()}`" in text:
            return line.name
    found = _EXISTS.match(text.strip())
    if found and found["path"].removeprefix("./") in present:
        return TREE
    tests = [line for line in passed if line.tests]
    named = [test for test in (*report.fixed, *report.sensitive) if _names(text, test)]
    if named and tests:
        return tests[0].name
    for words, kinds in _WORDS:
        if words.match(text.strip()):
            wanted = [line for line in passed if line.kind in kinds] or (tests if CheckKind.TESTS in kinds else [])
            return wanted[0].name if wanted else None
    return None


def _names(text: str, test: str) -> bool:
    function = re.split(r"::|\.|/", test.partition("[")[0])[-1]
    return test in text or (len(function) > 5 and re.search(rf"\b{re.escape(function)}\b", text) is not None)


Read = Callable[[str], str | None]
_DEFINES: Final = r"(async\s+)?(def|class|func|fn|pub\s+\w+|type|interface|const|let|var)\s"


def look(must: MustHaves, read: Read) -> tuple[MustHaveResult, ...]:
    """`read` gives the text of a file of the final tree, or None where there is none."""
    artifacts = [_artifact(artifact, read) for artifact in must.artifacts]
    links = [_link(item, read) for item in must.key_links]
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

"""Link done criteria to the checks that show them, and check the must-haves of a plan in the final tree. Pure.

Criteria are matched by their words, and only where the words leave no doubt; all others are prose:

    | the criterion                                             | is shown by                         |
    |-----------------------------------------------------------|-------------------------------------|
    | says what a verify command asserts (`command_criteria`)   | the check of that command           |
    | names a repaired test, by id or by function               | the check that ran it               |
    | says only that tests pass                                 | a check that executed tests         |
    | says only that build, types or lint pass                  | the check of that kind              |
    | says only that a declared file exists                     | the frozen tree                     |

Artifacts and key links are checked in the final tree. Truths can only be judged, and are reported as not judged if
nobody did.
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
from proofstone.gate.rules.command_criteria import is_asserted
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
FROZEN_TREE: Final = "frozen-tree"
"""Stands for the tree itself: a file is in it or not."""


def link_criteria(task: PlanTask, report: CheckReport, present: Sequence[str]) -> tuple[CriterionLink, ...]:
    """Link every criterion to the check that shows it. `present`: the changed files that exist in the tree."""
    passed = [line for line in report.checks if line.verdict is Verdict.PASS]
    return tuple(CriterionLink(criterion=text, check=_find_check(text, passed, report, present)) for text in task.done)


def _find_check(text: str, passed: Sequence[CheckLine], report: CheckReport, present: Sequence[str]) -> str | None:
    for line in passed:
        if line.kind is CheckKind.VERIFY and is_asserted(text, line.command):
            return line.name
    match = _EXISTS.match(text.strip())
    if match and match["path"].removeprefix("./") in present:
        return FROZEN_TREE
    tests = [line for line in passed if line.tests]
    named_tests = [test for test in (*report.fixed, *report.sensitive) if _mentions_test(text, test)]
    if named_tests and tests:
        return tests[0].name
    for words, kinds in _WORDS:
        if words.match(text.strip()):
            candidates = [line for line in passed if line.kind in kinds] or (tests if CheckKind.TESTS in kinds else [])
            return candidates[0].name if candidates else None
    return None


def _mentions_test(text: str, test: str) -> bool:
    function = re.split(r"::|\.|/", test.partition("[")[0])[-1]
    return test in text or (len(function) > 5 and re.search(rf"\b{re.escape(function)}\b", text) is not None)


ReadFile = Callable[[str], str | None]
_DEFINES: Final = r"(async\s+)?(def|class|func|fn|pub\s+\w+|type|interface|const|let|var)\s"


def check_must_haves(must: MustHaves, read: ReadFile) -> tuple[MustHaveResult, ...]:
    """Check the must-haves. `read` returns the text of a file of the final tree, or None if it does not exist."""
    artifacts = [_check_artifact(artifact, read) for artifact in must.artifacts]
    links = [_check_link(key_link, read) for key_link in must.key_links]
    truths = [MustHaveResult(what=f"truth: {text}", holds=None, detail="not judged") for text in must.truths]
    return (*artifacts, *links, *truths)


def _check_artifact(artifact: RequiredArtifact, read: ReadFile) -> MustHaveResult:
    what = f"artifact: {artifact.path}"
    text = read(artifact.path)
    if text is None:
        return MustHaveResult(what=what, holds=False, detail="there is no such file")
    if artifact.contains and artifact.contains not in text:
        return MustHaveResult(what=what, holds=False, detail=f"it does not contain {artifact.contains!r}")
    missing = [name for name in artifact.exports if not _exports(text, name)]
    if missing:
        return MustHaveResult(what=what, holds=False, detail=f"it does not export {', '.join(missing)}")
    lines = len(text.splitlines())
    if lines < artifact.min_lines:
        return MustHaveResult(what=what, holds=False, detail=f"it has {lines} lines, not {artifact.min_lines}")
    return MustHaveResult(what=what, holds=True)


def _exports(text: str, name: str) -> bool:
    """Whether the file defines or exports the name, in any of the usual ways of any language."""
    word, quoted = rf"\b{re.escape(name)}\b", rf"[\"']{re.escape(name)}[\"']"
    ways = (rf"\bexport\b[^\n;]*{word}", rf"^\s*{_DEFINES}[^\n]*?{word}", rf"{word}\s*=", quoted)
    return any(re.search(way, text, re.MULTILINE) for way in ways)


def _check_link(key_link: KeyLink, read: ReadFile) -> MustHaveResult:
    what = f"link: {key_link.source} → {key_link.target}"
    text = read(key_link.source)
    if text is None:
        return MustHaveResult(what=what, holds=False, detail=f"there is no file {key_link.source}")
    if not key_link.pattern:
        stem = basename(key_link.target).partition(".")[0]
        is_match = bool(stem) and stem in text
        return MustHaveResult(what=what, holds=is_match, detail="" if is_match else f"it never mentions {stem}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            is_match = re.search(key_link.pattern, text, re.MULTILINE) is not None
    except (re.error, OverflowError, RecursionError) as error:
        return MustHaveResult(what=what, holds=False, detail=f"its pattern is not a valid regular expression: {error}")
    return MustHaveResult(what=what, holds=is_match, detail="" if is_match else f"nothing matches {key_link.pattern!r}")

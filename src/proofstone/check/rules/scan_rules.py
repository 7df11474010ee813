"""All rules of the static scan, and the suppressions of linters, type checkers and coverage tools.

This module holds the rules for Go, Rust, Java, Ruby and for files of any kind.

A suppression is not wrong in itself: one commit in seven adds one. It is reported, and the engine runs the tool once
more without it to see what it hides. A blanket suppression names no complaint, so it also hides later ones.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from proofstone.check.rules.scan_python import PYTHON_RULES
from proofstone.check.rules.scan_rule import (
    ANY_LANGUAGE,
    PYTHON,
    RUNNER_STRING,
    SCRIPT,
    ScanLine,
    ScanRule,
    compile_pattern,
)
from proofstone.check.rules.scan_script import SCRIPT_RULES

SUPPORT_FILES: Final = re.compile(
    r"(?:^|[/_.-])(?:testing|testutils?|testlib|testkit|conftest|pytest|unittest|fixtures?|mocks?|doctest|plugins?"
    r"|benchmarks?|bench|examples?|scripts?|tools?|setup|noxfile|tasks|jest|vitest|mocha|karma|cypress|playwright)"
    r"(?=$|[/_.-])|\.config\.[cm]?[jt]s$|plugin|(?:^|/)test|test(?:s|ing|er)?\.\w+$",
    re.IGNORECASE,
)
"""Names of files that support testing, or are tools around the product, and may use test frameworks."""

_GO, _RUST, _JAVA, _RUBY = (frozenset({name}) for name in ("go", "rust", "java", "ruby"))
_NOT_PROSE = re.compile(r"^(?!.*\.(?:md|markdown|rst|adoc|txt)$)", re.IGNORECASE)
_COMMANDS = re.compile(
    r"\.(?:sh|bash|ya?ml|mk|toml|ini|cfg)$|(?:^|/)(?:Makefile|justfile|package\.json|Dockerfile[^/]*)$"
)

_OTHER_LANGUAGES: Final = (
    ScanRule("hard-exit", _RUST, compile_pattern(r"\b process::(?:abort|exit) \b"), production="broad", tests="broad"),
    ScanRule("hard-exit", _JAVA, compile_pattern(r"\b getRuntime \( \) \. halt \("), production="broad", tests="broad"),
    ScanRule("hard-exit", _RUBY, compile_pattern(r"\b exit!"), production="broad", tests="broad"),
    ScanRule(
        "constant-equality",
        _JAVA,
        compile_pattern(r"\b boolean \s+ equals \( [^()]* \) \s* \{ \s* return \s+ true \s* ;"),
    ),
    ScanRule(
        "constant-equality",
        _RUST,
        compile_pattern(r"\b fn \s+ eq \( [^()]* \) \s* -> \s* bool \s* \{ \s* (?:return\s+)? true \s* ;? \s* \}"),
    ),
    ScanRule(
        "constant-equality",
        _RUBY,
        compile_pattern(r"\b def \s+ ={2,3} \(? \s* \w+ \s* \)? \s* (?: ; | $ ) \s* true \b"),
    ),
    ScanRule(
        "runner-environment",
        _GO,
        compile_pattern(
            r"""\b testing \. Testing \( \) | \b flag \. Lookup \( "test\. | \b Args\[0\] \s*,\s* "\.test" """
        ),
        view="text",
        support=True,
    ),
    ScanRule("runner-environment", _RUST, compile_pattern(r"\b cfg! \( test \s* \)"), production="broad"),
    ScanRule(
        "runner-environment",
        _RUBY,
        compile_pattern(r"\b defined\? \s* \(? \s* (?: :: )? (?:RSpec|Minitest) \b | \b env \. test\?"),
        production="broad",
    ),
    ScanRule(
        "stack-reading",
        _GO,
        compile_pattern(r"\b runtime \. (?:Callers?|Stack) \b"),
        near=compile_pattern(r'"[^"\n]*(?:_test\.go|testing\.)'),
        within=15,
    ),
    ScanRule("stack-reading", _JAVA, compile_pattern(r"\b getStackTrace \("), near=RUNNER_STRING, within=15),
    ScanRule("stack-reading", _RUBY, compile_pattern(r"\b caller(?:_locations)? \b"), near=RUNNER_STRING, within=15),
    ScanRule("skipped-test", _GO, compile_pattern(r"\b [tb] \. Skip(?:f|Now)? \("), production=None, tests="broad"),
    # Rust has its tests next to the code.
    ScanRule("skipped-test", _RUST, compile_pattern(r"[#]\[ \s* ignore \b"), production="broad", tests="broad"),
    ScanRule("skipped-test", _JAVA, compile_pattern(r"@ (?:Disabled|Ignore)\w* \b"), production=None, tests="broad"),
    ScanRule(
        "skipped-test",
        _RUBY,
        compile_pattern(r"^ [ \t]* (?: skip | pending | xit | xdescribe | xcontext | fit | fdescribe ) \b"),
        production=None,
        tests="broad",
    ),
)

_ANY_FILE: Final = (
    # A plain `PROOFSTONE_` prefix would match honest code.
    ScanRule(
        "names-the-gate",
        ANY_LANGUAGE,
        compile_pattern(
            r"""\b PROOFSTONE_(?:REPORT|PROJECT_MODULES|FAULT) \b | \b
            proofstone_(?:pytest|probe|node|node_reporter|unittest) \b
            | /run/proofstone \b"""
        ),
        tests="strict",
        view="anywhere",
        paths=_NOT_PROSE,
    ),
    ScanRule(
        "names-the-gate",
        PYTHON | SCRIPT,
        compile_pattern(r"\b environ \b | \b getenv \b | \b process \. env \b"),
        tests="strict",
        near=compile_pattern(r"""["'`] PROOFSTONE (?: _ (?:HOME)? )? ["'`] | \b PROOFSTONE_HOME \b"""),
        within=2,
    ),
    ScanRule(
        "swallowed-failure",
        ANY_LANGUAGE,
        compile_pattern(
            r"""\b (?: test\w* | \w*lint | mypy | tsc | check\w* | pytest | jest | mocha | vitest | ruff | vet ) \b
            [^\n|;]* \|\| [ \t]* (?: true \b | : (?= \s | $ | ["'] ) | exit \s+ 0 )"""
        ),
        production="broad",
        tests="broad",
        paths=_COMMANDS,
    ),
    # Other settings of npm are common and harmless; these run a program that the change chooses.
    ScanRule(
        "startup-file",
        ANY_LANGUAGE,
        compile_pattern(
            r"^ [ \t]* (?: node-options | script-shell | shell | prefix | globalconfig | onload-script ) \s* ="
        ),
        tests="strict",
        paths=re.compile(r"(?:^|/)\.npmrc$"),
    ),
)

SCAN_RULES: Final[tuple[ScanRule, ...]] = (*PYTHON_RULES, *SCRIPT_RULES, *_OTHER_LANGUAGES, *_ANY_FILE)


@dataclass(frozen=True, slots=True)
class Suppression:
    """A comment or attribute that suppresses complaints."""

    line: int
    blanket: bool
    """Whether it names no complaint."""
    text: str
    start: int
    """Column in the line, in characters."""
    end: int


@dataclass(frozen=True, slots=True)
class _SuppressionForm:
    pattern: re.Pattern[str]
    """Its group `codes` is what the suppression names."""
    unnamed: Literal["blanket", "named"] = "blanket"
    """What the suppression is if `codes` is missing: some forms suppress one thing only, and so name it."""
    view: Literal["comment", "text"] = "comment"


def _comment_form(pattern: str, unnamed: Literal["blanket", "named"] = "blanket") -> _SuppressionForm:
    return _SuppressionForm(re.compile(pattern, re.IGNORECASE), unnamed)


_BRACKETS = r"(?P<codes>\s*\[\s*[\w-][^\]]*\])?"
_LIST = r"(?P<codes>[@\w$][\w$/@.,\s-]*?)?(?=\s*(?:--|\*/|$))"
_FORMS: Final = (
    _comment_form(r"#\s*(?:(?:flake8|ruff)\s*[:=]\s*)?noqa\b(?P<codes>\s*:\s*[A-Z]+\d+)?"),
    _comment_form(r"#\s*type:\s*ignore\b" + _BRACKETS),
    _comment_form(r"#\s*pyright:\s*(?:ignore\b" + _BRACKETS + r"|(?:basic|off)\b)"),
    _comment_form(r"#\s*pyright:\s*(?P<codes>report\w+\s*=\s*(?:false|none))"),
    _comment_form(r"#\s*pyre-(?:ignore|fixme)(?:-all-errors)?\b" + _BRACKETS),
    _comment_form(r"#\s*pytype:\s*(?:disable=(?P<codes>[\w-]+)|skip-file)"),
    _comment_form(r"#\s*mypy:\s*(?:ignore[-_]errors\b(?!\s*=\s*false)|(?P<codes>[a-z][\w-]*))"),
    _comment_form(r"#\s*pylint:\s*(?:skip-file|disable(?:-next|-msg)?\s*=\s*(?:all\b|(?P<codes>[\w-]+)))"),
    _comment_form(r"#\s*nosec\b(?P<codes>:?\s*[BG]\d+)?"),
    _comment_form(r"#\s*pragma:\s*no\s*(?:cover|branch)\b", "named"),
    _comment_form(r"\b(?:eslint|oxlint)-disable(?:-next-line|-line)?(?![\w-])\s*" + _LIST),
    _comment_form(r"\btslint:disable(?:-next-line|-line)?\b(?P<codes>:\s*[\w-]+)?"),
    _comment_form(r"\bdeno-lint-ignore(?:-file)?(?![\w-])\s*" + _LIST),
    _comment_form(r"@ts-(?:ignore|nocheck)\b"),
    _comment_form(r"@ts-expect-error\b", "named"),
    _comment_form(r"\$FlowFixMe\b" + _BRACKETS),
    _comment_form(r"\bbiome-ignore(?:-all|-start)?\s+(?:lint\b(?!/)|(?P<codes>[\w/]+))"),
    _comment_form(r"\b(?:istanbul|c8|v8|node:coverage)\s+(?:ignore|disable)\b", "named"),
    _comment_form(r"//\s*nolint\b(?!:all\b)(?P<codes>:\s*[\w-]+)?|//\s*nolint:all\b"),
    _comment_form(r"\brubocop:\s*(?:disable|todo)\s+(?:all\b|(?P<codes>[\w/]+))"),
    _comment_form(r"\bNOSONAR\b(?P<codes>\s*\(\s*\w+)?"),
    _SuppressionForm(
        re.compile(r"#!?\[\s*(?:allow|expect)\s*\(\s*(?:(?:warnings|clippy::all)\b|(?P<codes>\w+))[^\]]*\]?"),
        view="text",
    ),
    _SuppressionForm(re.compile(r"@SuppressWarnings\s*\((?:\s*\"all\"|(?P<codes>[^)]*))\s*\)"), view="text"),
)
_ATTRIBUTE: Final = re.compile(r"#!?\[|@Suppress")
_SUPPRESSION_END: Final = re.compile(r"\s*\*/|(?<=\S)\s+#")
"""Where a suppression ends before its line does: at the end of the comment, or at the next `#`."""
_COMMENT_START: Final = re.compile(r"(?:#+|//+)\s*$")


def find_suppressions(
    lines: Sequence[ScanLine], added: Container[int], old: Sequence[ScanLine] = ()
) -> list[Suppression]:
    """Return the suppressions on added lines. If the old file has the same one, return only additional ones."""
    before = Counter(suppression.text for line in old for suppression in _find_on_line(line))
    after = Counter[str]()
    new = []
    for line in lines:
        for suppression in _find_on_line(line):
            after[suppression.text] += 1
            if line.number in added:
                new.append(suppression)
    return [suppression for suppression in new if after[suppression.text] > before[suppression.text]]


def _find_on_line(line: ScanLine) -> Iterator[Suppression]:
    if not line.comment.strip() and not _ATTRIBUTE.search(line.code):
        return
    spans: list[tuple[int, int]] = []
    for form in _FORMS:
        view = line.comment if form.view == "comment" else line.text
        for match in form.pattern.finditer(view):
            start = match.start()
            if any(left <= start < right for left, right in spans) or (form.view == "text" and line.code[start] == " "):
                continue
            is_named = form.unnamed == "named" or match.groupdict().get("codes") or _is_continued(view, start)
            end = _find_end(view, match.end()) if form.view == "comment" else match.end()
            spans.append((start, end))
            yield Suppression(line.number, not is_named, " ".join(match[0].split()), start, end)


def _is_continued(comment: str, at: int) -> bool:
    """Return whether the comment continues on the next line, where the names may be."""
    return comment.rfind("/*", 0, at) > comment.rfind("*/", 0, at) and "*/" not in comment[at:]


def _find_end(comment: str, at: int) -> int:
    cut = _SUPPRESSION_END.search(comment, at)
    return cut.start() if cut else len(comment.rstrip())


def remove_suppressions(content: bytes, removed: Sequence[Suppression], lines: Sequence[ScanLine]) -> bytes:
    """Return the file without these suppressions. Every line stays, so that complaints keep their line numbers."""
    result = content.decode("utf-8", "surrogateescape").splitlines(keepends=True)
    for suppression in sorted(removed, key=lambda comment: (comment.line, -comment.start)):
        raw = result[suppression.line - 1]
        ending = raw[len(raw.splitlines()[0]) :]
        left, right = raw[: suppression.start], raw[suppression.end : len(raw) - len(ending)]
        is_alone = not lines[suppression.line - 1].code.strip()
        result[suppression.line - 1] = _join_remainder(left, right, raw[suppression.start], alone=is_alone) + ending
    return "".join(result).encode("utf-8", "surrogateescape")


def _join_remainder(left: str, right: str, mark: str, *, alone: bool) -> str:
    """Return what remains of a line. A comment on a line of its own becomes an empty comment, because linters count
    blank lines."""
    if right.strip():
        return left + (right if left[-1:].strip() else right.lstrip())
    if alone and mark == "#" and not left.strip():
        return left + mark
    return left.rstrip() if alone else _COMMENT_START.sub("", left.rstrip()).rstrip()

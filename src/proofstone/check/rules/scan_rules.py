"""All rows of the static scan, with those for Go, Rust, Java, Ruby, and for files of any kind.

Comments that tell a linter, a type checker or a coverage tool to look away, as one table.

A suppression is no wrong in itself: one commit in seven adds one. It is said, and the engine runs the tool once more
without it, to see what it hides. A blanket one names no complaint and hides whatever comes later as well.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from proofstone.check.rules.scan_python import PYTHON_RULES
from proofstone.check.rules.scan_rule import ANY, PYTHON, RUNNER_SAID, SCRIPT, Line, Rule, code
from proofstone.check.rules.scan_script import SCRIPT_RULES

SUPPORT: Final = re.compile(
    r"(?:^|[/_.-])(?:testing|testutils?|testlib|testkit|conftest|pytest|unittest|fixtures?|mocks?|doctest|plugins?"
    r"|benchmarks?|bench|examples?|scripts?|tools?|setup|noxfile|tasks|jest|vitest|mocha|karma|cypress|playwright)"
    r"(?=$|[/_.-])|\.config\.[cm]?[jt]s$|plugin|(?:^|/)test|test(?:s|ing|er)?\.\w+$",
    re.IGNORECASE,
)
"""Names of files that support testing, or are tools around the product, and may know test frameworks."""

_GO, _RUST, _JAVA, _RUBY = (frozenset({name}) for name in ("go", "rust", "java", "ruby"))
_NOT_PROSE = re.compile(r"^(?!.*\.(?:md|markdown|rst|adoc|txt)$)", re.IGNORECASE)
_COMMANDS = re.compile(
    r"\.(?:sh|bash|ya?ml|mk|toml|ini|cfg)$|(?:^|/)(?:Makefile|justfile|package\.json|Dockerfile[^/]*)$"
)

_OTHER_LANGUAGES: Final = (
    Rule("hard-exit", _RUST, code(r"\b process::(?:abort|exit) \b"), production="broad", tests="broad"),
    Rule("hard-exit", _JAVA, code(r"\b getRuntime \( \) \. halt \("), production="broad", tests="broad"),
    Rule("hard-exit", _RUBY, code(r"\b exit!"), production="broad", tests="broad"),
    Rule("constant-equality", _JAVA, code(r"\b boolean \s+ equals \( [^()]* \) \s* \{ \s* return \s+ true \s* ;")),
    Rule(
        "constant-equality",
        _RUST,
        code(r"\b fn \s+ eq \( [^()]* \) \s* -> \s* bool \s* \{ \s* (?:return\s+)? true \s* ;? \s* \}"),
    ),
    Rule("constant-equality", _RUBY, code(r"\b def \s+ ={2,3} \(? \s* \w+ \s* \)? \s* (?: ; | $ ) \s* true \b")),
    Rule(
        "runner-environment",
        _GO,
        code(r"""\b testing \. Testing \( \) | \b flag \. Lookup \( "test\. | \b Args\[0\] \s*,\s* "\.test" """),
        view="text",
        support=True,
    ),
    Rule("runner-environment", _RUST, code(r"\b cfg! \( test \s* \)"), production="broad"),
    Rule(
        "runner-environment",
        _RUBY,
        code(r"\b defined\? \s* \(? \s* (?: :: )? (?:RSpec|Minitest) \b | \b env \. test\?"),
        production="broad",
    ),
    Rule(
        "stack-reading",
        _GO,
        code(r"\b runtime \. (?:Callers?|Stack) \b"),
        near=code(r'"[^"\n]*(?:_test\.go|testing\.)'),
        within=15,
    ),
    Rule("stack-reading", _JAVA, code(r"\b getStackTrace \("), near=RUNNER_SAID, within=15),
    Rule("stack-reading", _RUBY, code(r"\b caller(?:_locations)? \b"), near=RUNNER_SAID, within=15),
    Rule("skipped-test", _GO, code(r"\b [tb] \. Skip(?:f|Now)? \("), production=None, tests="broad"),
    # Rust keeps its tests beside the code.
    Rule("skipped-test", _RUST, code(r"[#]\[ \s* ignore \b"), production="broad", tests="broad"),
    Rule("skipped-test", _JAVA, code(r"@ (?:Disabled|Ignore)\w* \b"), production=None, tests="broad"),
    Rule(
        "skipped-test",
        _RUBY,
        code(r"^ [ \t]* (?: skip | pending | xit | xdescribe | xcontext | fit | fdescribe ) \b"),
        production=None,
        tests="broad",
    ),
)

_ANY_FILE: Final = (
    # A plain `PROOFSTONE_` would stop laboratories: proofstones are what they run.
    Rule(
        "names-the-gate",
        ANY,
        code(
            r"""\b PROOFSTONE_(?:REPORT|PROJECT_MODULES|FAULT) \b | \b
            proofstone_(?:pytest|probe|node|node_reporter|unittest) \b
            | /run/proofstone \b"""
        ),
        tests="strict",
        view="anywhere",
        paths=_NOT_PROSE,
    ),
    Rule(
        "names-the-gate",
        PYTHON | SCRIPT,
        code(r"\b environ \b | \b getenv \b | \b process \. env \b"),
        tests="strict",
        near=code(r"""["'`] PROOFSTONE (?: _ (?:HOME)? )? ["'`] | \b PROOFSTONE_HOME \b"""),
        within=2,
    ),
    Rule(
        "swallowed-failure",
        ANY,
        code(
            r"""\b (?: test\w* | \w*lint | mypy | tsc | check\w* | pytest | jest | mocha | vitest | ruff | vet ) \b
            [^\n|;]* \|\| [ \t]* (?: true \b | : (?= \s | $ | ["'] ) | exit \s+ 0 )"""
        ),
        production="broad",
        tests="broad",
        paths=_COMMANDS,
    ),
    # Other settings of npm are common and harmless; these run a program of the change's choosing.
    Rule(
        "startup-file",
        ANY,
        code(r"^ [ \t]* (?: node-options | script-shell | shell | prefix | globalconfig | onload-script ) \s* ="),
        tests="strict",
        paths=re.compile(r"(?:^|/)\.npmrc$"),
    ),
)

RULES: Final[tuple[Rule, ...]] = (*PYTHON_RULES, *SCRIPT_RULES, *_OTHER_LANGUAGES, *_ANY_FILE)


@dataclass(frozen=True, slots=True)
class Suppression:
    line: int
    blanket: bool
    """It names no complaint."""
    text: str
    start: int
    """Columns in the line, in characters."""
    end: int


@dataclass(frozen=True, slots=True)
class _Form:
    pattern: re.Pattern[str]
    """Its group `codes` is what the suppression names."""
    unnamed: Literal["blanket", "named"] = "blanket"
    """What it is when `codes` is missing: some forms mean one thing only, and name it by being there."""
    view: Literal["comment", "text"] = "comment"


def _form(pattern: str, unnamed: Literal["blanket", "named"] = "blanket") -> _Form:
    return _Form(re.compile(pattern, re.IGNORECASE), unnamed)


_BRACKETS = r"(?P<codes>\s*\[\s*[\w-][^\]]*\])?"
_LIST = r"(?P<codes>[@\w$][\w$/@.,\s-]*?)?(?=\s*(?:--|\*/|$))"
_FORMS: Final = (
    _form(r"#\s*(?:(?:flake8|ruff)\s*[:=]\s*)?noqa\b(?P<codes>\s*:\s*[A-Z]+\d+)?"),
    _form(r"#\s*type:\s*ignore\b" + _BRACKETS),
    _form(r"#\s*pyright:\s*(?:ignore\b" + _BRACKETS + r"|(?:basic|off)\b)"),
    _form(r"#\s*pyright:\s*(?P<codes>report\w+\s*=\s*(?:false|none))"),
    _form(r"#\s*pyre-(?:ignore|fixme)(?:-all-errors)?\b" + _BRACKETS),
    _form(r"#\s*pytype:\s*(?:disable=(?P<codes>[\w-]+)|skip-file)"),
    _form(r"#\s*mypy:\s*(?:ignore[-_]errors\b(?!\s*=\s*false)|(?P<codes>[a-z][\w-]*))"),
    _form(r"#\s*pylint:\s*(?:skip-file|disable(?:-next|-msg)?\s*=\s*(?:all\b|(?P<codes>[\w-]+)))"),
    _form(r"#\s*nosec\b(?P<codes>:?\s*[BG]\d+)?"),
    _form(r"#\s*pragma:\s*no\s*(?:cover|branch)\b", "named"),
    _form(r"\b(?:eslint|oxlint)-disable(?:-next-line|-line)?(?![\w-])\s*" + _LIST),
    _form(r"\btslint:disable(?:-next-line|-line)?\b(?P<codes>:\s*[\w-]+)?"),
    _form(r"\bdeno-lint-ignore(?:-file)?(?![\w-])\s*" + _LIST),
    _form(r"@ts-(?:ignore|nocheck)\b"),
    _form(r"@ts-expect-error\b", "named"),
    _form(r"\$FlowFixMe\b" + _BRACKETS),
    _form(r"\bbiome-ignore(?:-all|-start)?\s+(?:lint\b(?!/)|(?P<codes>[\w/]+))"),
    _form(r"\b(?:istanbul|c8|v8|node:coverage)\s+(?:ignore|disable)\b", "named"),
    _form(r"//\s*nolint\b(?!:all\b)(?P<codes>:\s*[\w-]+)?|//\s*nolint:all\b"),
    _form(r"\brubocop:\s*(?:disable|todo)\s+(?:all\b|(?P<codes>[\w/]+))"),
    _form(r"\bNOSONAR\b(?P<codes>\s*\(\s*\w+)?"),
    _Form(
        re.compile(r"#!?\[\s*(?:allow|expect)\s*\(\s*(?:(?:warnings|clippy::all)\b|(?P<codes>\w+))[^\]]*\]?"),
        view="text",
    ),
    _Form(re.compile(r"@SuppressWarnings\s*\((?:\s*\"all\"|(?P<codes>[^)]*))\s*\)"), view="text"),
)
_ATTRIBUTE: Final = re.compile(r"#!?\[|@Suppress")
_CUT: Final = re.compile(r"\s*\*/|(?<=\S)\s+#")
"""Where a suppression ends before its line does: at the end of the comment, or at the next one of Python's kind."""
_LEADER: Final = re.compile(r"(?:#+|//+)\s*$")


def suppressions(lines: Sequence[Line], added: Container[int], old: Sequence[Line] = ()) -> list[Suppression]:
    """The suppressions on added lines. Of one that the old file had as well, only what came on top of it."""
    before = Counter(found.text for line in old for found in _on(line))
    after = Counter[str]()
    fresh = []
    for line in lines:
        for found in _on(line):
            after[found.text] += 1
            if line.number in added:
                fresh.append(found)
    return [found for found in fresh if after[found.text] > before[found.text]]


def _on(line: Line) -> Iterator[Suppression]:
    if not line.comment.strip() and not _ATTRIBUTE.search(line.code):
        return
    taken: list[tuple[int, int]] = []
    for form in _FORMS:
        shown = line.comment if form.view == "comment" else line.text
        for match in form.pattern.finditer(shown):
            start = match.start()
            if any(left <= start < right for left, right in taken) or (form.view == "text" and line.code[start] == " "):
                continue
            named = form.unnamed == "named" or match.groupdict().get("codes") or _goes_on(shown, start)
            end = _end(shown, match.end()) if form.view == "comment" else match.end()
            taken.append((start, end))
            yield Suppression(line.number, not named, " ".join(match[0].split()), start, end)


def _goes_on(comment: str, at: int) -> bool:
    """Whether the comment is continued on the next line, where the names may stand."""
    return comment.rfind("/*", 0, at) > comment.rfind("*/", 0, at) and "*/" not in comment[at:]


def _end(comment: str, at: int) -> int:
    cut = _CUT.search(comment, at)
    return cut.start() if cut else len(comment.rstrip())


def without_suppressions(content: bytes, found: Sequence[Suppression], lines: Sequence[Line]) -> bytes:
    """The same file without these suppressions. Every line stays, so that complaints keep their places."""
    kept = content.decode("utf-8", "surrogateescape").splitlines(keepends=True)
    for item in sorted(found, key=lambda comment: (comment.line, -comment.start)):
        raw = kept[item.line - 1]
        ending = raw[len(raw.splitlines()[0]) :]
        left, right = raw[: item.start], raw[item.end : len(raw) - len(ending)]
        alone = not lines[item.line - 1].code.strip()
        kept[item.line - 1] = _joined(left, right, raw[item.start], alone=alone) + ending
    return "".join(kept).encode("utf-8", "surrogateescape")


def _joined(left: str, right: str, mark: str, *, alone: bool) -> str:
    """What stays of a line. A comment on a line of its own stays as an empty one: linters count blank lines."""
    if right.strip():
        return left + (right if left[-1:].strip() else right.lstrip())
    if alone and mark == "#" and not left.strip():
        return left + mark
    return left.rstrip() if alone else _LEADER.sub("", left.rstrip()).rstrip()

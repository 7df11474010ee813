"""The types of the static scan: lines of a file, rules with their patterns, and hits.

A rule is a pattern over one view of a file. It has a weight for production code and one for tests: strict if no honest
author has a reason for such code, broad if a reviewer should look at it. The share of published files with a strict hit
decided between the two. Every file of published packages, without their tests, was scanned as new production code:

| strict hits               | Python, 13,953 files | JavaScript and TypeScript, 17,652 files | Go, 3,539 files |
|---------------------------|----------------------|-----------------------------------------|-----------------|
| `hard-exit`               | 0.24 %               | 0.05 %                                  |                 |
| `test-framework-import`   | 0.16 %               | none                                    |                 |
| `stack-reading`           | 0.04 %               | 0.02 %                                  |                 |
| `runner-environment`      | 0.04 %               | 0.02 %                                  | none            |
| `constant-equality`       | 0.03 %               | none                                    |                 |
| `patched-framework`       | 0.03 %               | none                                    |                 |
| `hidden-code`             | 0.01 %               | none                                    |                 |
| any rule                  | 0.52 %               | 0.09 %                                  | none            |

Rust, Java and Ruby were not measured: only what has no other meaning is strict there.
The scan reads source text. Only the layers that run the tests detect a name that is built at run time.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal


@dataclass(frozen=True, slots=True)
class ScanLine:
    """One physical line as three texts of the same length. Each has blanks where it leaves something out."""

    number: int
    code: str
    """Without comments and without the content of strings. The quotes stay."""
    text: str
    """Without comments."""
    comment: str
    """Comments only."""


@dataclass(frozen=True, slots=True)
class ScanHit:
    """A place in a file that matches a rule."""

    rule: str
    strict: bool
    """Whether the hit counts against the change. If not, a reviewer should look at it."""
    line: int
    """0 if the path itself is meant."""
    detail: str
    fix: str
    """What an honest author would do."""


ScanView = Literal["code", "text", "anywhere", "comment"]
"""The text that a pattern is applied to. A match in `text` must begin outside of strings and comments; a match
`anywhere` may begin within a string."""
RuleWeight = Literal["strict", "broad"]

NAMES_PLACEHOLDER: Final = "NAMES"
"""A placeholder in a pattern for the names that the rule's `binds` finds in the file."""


@dataclass(frozen=True, slots=True)
class ScanRule:
    """One rule of the static scan."""

    name: str
    languages: frozenset[str]
    """Empty for any file."""
    pattern: re.Pattern[str]
    production: RuleWeight | None = "strict"
    tests: RuleWeight | None = None
    view: ScanView = "code"
    near: re.Pattern[str] | None = None
    """A pattern that must also occur in an added line, and begin outside of strings and comments."""
    within: int = 0
    """How many lines of ordinary length `near` may be away."""
    binds: re.Pattern[str] | None = None
    """Finds names in the file. The pattern then applies to these names only."""
    paths: re.Pattern[str] | None = None
    """The rule applies only to files with such a path."""
    support: bool = False
    """If true, the rule is broad in a file whose name says that it supports testing."""


def compile_pattern(pattern: str) -> re.Pattern[str]:
    r"""Compile a pattern. Its blanks are for reading; `\.` and `\(` allow blanks and line ends around them.

    No pattern may begin with one of these: blanked text has long runs of blanks, so matching would take quadratic time.
    """
    loose = pattern.replace(r"\.", r"(?:\s*\.\s*)").replace(r"\(", r"(?:\s*\(\s*)")
    return re.compile(loose, re.MULTILINE | re.VERBOSE)


PYTHON: Final = frozenset({"python"})
SCRIPT: Final = frozenset({"javascript", "typescript", "tsx"})
ANY_LANGUAGE: Final = frozenset[str]()

RUNNER_PATTERN: Final = (
    r"(?: pytest | py\.test | unittest | nosetests? | vitest | mocha | (?<![a-z])jest(?![a-z]) | rspec | junit )"
)
_STRING_START = r"""(?<!["'`]) ["'`] (?!["'`]) [^"'`\n]{0,80}?"""
"""The beginning of a string. Three quotes begin a docstring or a text, which shows nothing about what code does."""
RUNNER_STRING: Final = compile_pattern(rf"{_STRING_START} {RUNNER_PATTERN}")
TEST_STRING: Final = compile_pattern(
    # In a regular expression of JavaScript the dot is escaped; a bare `.test(` is a call of the expression.
    rf"""{_STRING_START} (?: {RUNNER_PATTERN} | (?<![a-zA-Z]) (?:tests?|specs?) (?![a-zA-Z]) )
    | / [^/\n]{{0,80}}? (?: {RUNNER_PATTERN} | \\[.] (?:test|spec) \b | \b (?:test|spec) \\[.] )"""
)
"""A string that names tests. `latest` and `inspect` do not."""
REPORT_STRING: Final = rf"{_STRING_START} (?: jsonl | junit | reports? \b | {RUNNER_PATTERN} )"
ASSIGNMENT: Final = r"\s* [-+|]? = (?!=)"


@dataclass(frozen=True, slots=True)
class RuleMessage:
    """What a finding of a rule says."""

    detail: str
    fix: str


RULE_MESSAGES: Final[dict[str, RuleMessage]] = {
    "test-framework-import": RuleMessage(
        "production code imports a test framework",
        "keep what tests need in the tests, or in a module named after testing",
    ),
    "hard-exit": RuleMessage(
        "ends or kills the process without clean-up, so that test results get lost",
        "raise an error, or return an exit code to the caller",
    ),
    "constant-equality": RuleMessage(
        "a comparison gives the same result for all values, so that any expectation is met",
        "compare the values",
    ),
    "runner-environment": RuleMessage(
        "code detects whether it is under test, and so can behave differently there",
        "behave the same under test; pass what must differ as a parameter or a setting",
    ),
    "stack-reading": RuleMessage(
        "code inspects its callers, and so can behave differently under test",
        "pass what the function needs as a parameter",
    ),
    "patched-framework": RuleMessage(
        "replaces code that decides whether a test passes",
        "leave the test framework and the built-ins as they are",
    ),
    "names-the-gate": RuleMessage(
        "names an internal part of Proofstone",
        "remove it: no project needs to know how it is checked",
    ),
    "report-tampering": RuleMessage(
        "accesses open files or memory of the running process, where results are written",
        "open the files that the code needs by name",
    ),
    "hidden-code": RuleMessage("hides from a reader what it does", "write it out as plain code"),
    "skipped-test": RuleMessage(
        "a test is skipped, expected to fail, or run alone", "fix the test, or explain why it cannot run"
    ),
    "swallowed-failure": RuleMessage(
        "a failure is swallowed, or nothing is asserted", "let it fail; assert what matters"
    ),
    "dynamic-code": RuleMessage("runs text as code", "call the code, or look it up in a table"),
    "startup-file": RuleMessage(
        "decides what runs when a program starts",
        "keep it out of the repository, or declare it as part of the task",
    ),
    "suppression": RuleMessage(
        "suppresses a linter, a type checker or a coverage tool",
        "fix the complaint, or name the rule and the reason",
    ),
}

"""A source file as the static scan reads it, and what the scan says about a place in it.

One row of the static scan, and the notation of its patterns.

A row is a pattern over one text of a file. It has a weight for production code and one for tests: strict where no
honest author has a reason, broad where a reviewer should look. The share of published files with a strict hit decided
between the two. Every file of published packages, without their tests, was read as new production code:

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

Rust, Java and Ruby were not measured: only what cannot be meant otherwise is strict there.
The scan reads what is written. A name put together at run time is seen only by the layers that run the tests.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal


@dataclass(frozen=True, slots=True)
class Line:
    """One physical line in three texts of the same length: what a text leaves out stands there as blanks."""

    number: int
    code: str
    """Without comments and without what stands in strings; their quotes stay."""
    text: str
    """Without comments."""
    comment: str
    """Comments only."""


@dataclass(frozen=True, slots=True)
class Hit:
    rule: str
    strict: bool
    """Whether it is held against the change; if not, it is something for a reviewer to look at."""
    line: int
    """0 where the path itself is meant."""
    detail: str
    fix: str
    """What an honest author would do."""


View = Literal["code", "text", "anywhere", "comment"]
"""`text` must begin outside of strings and comments; `anywhere` may begin within a string."""
Weight = Literal["strict", "broad"]

NAMES: Final = "NAMES"
"""Stands in a pattern for the names that the row's `binds` finds in the file."""


@dataclass(frozen=True, slots=True)
class Rule:
    name: str
    languages: frozenset[str]
    """Empty: any file."""
    pattern: re.Pattern[str]
    production: Weight | None = "strict"
    tests: Weight | None = None
    view: View = "code"
    near: re.Pattern[str] | None = None
    """Must stand in an added line as well, and begin outside of strings and comments."""
    within: int = 0
    """How many lines of ordinary length `near` may be away."""
    binds: re.Pattern[str] | None = None
    """What the file names: the pattern is about these names only."""
    paths: re.Pattern[str] | None = None
    """Only files with such a path."""
    support: bool = False
    """Broad in a file whose name says that it supports testing."""


def code(pattern: str) -> re.Pattern[str]:
    r"""Blanks in a pattern are for reading; `\.` and `\(` allow blanks and line ends around them, as languages do.

    No pattern may begin with one of these: blanked text has long runs of blanks, and each would be tried from each.
    """
    loose = pattern.replace(r"\.", r"(?:\s*\.\s*)").replace(r"\(", r"(?:\s*\(\s*)")
    return re.compile(loose, re.MULTILINE | re.VERBOSE)


PYTHON: Final = frozenset({"python"})
SCRIPT: Final = frozenset({"javascript", "typescript", "tsx"})
ANY: Final = frozenset[str]()

RUNNERS: Final = (
    r"(?: pytest | py\.test | unittest | nosetests? | vitest | mocha | (?<![a-z])jest(?![a-z]) | rspec | junit )"
)
_OPENED = r"""(?<!["'`]) ["'`] (?!["'`]) [^"'`\n]{0,80}?"""
"""The beginning of a string. Three quotes begin a docstring or a text, which says nothing about what code does."""
RUNNER_SAID: Final = code(rf"{_OPENED} {RUNNERS}")
TEST_SAID: Final = code(
    # In a regular expression of JavaScript's the dot is escaped; a bare `.test(` is how it is used.
    rf"""{_OPENED} (?: {RUNNERS} | (?<![a-zA-Z]) (?:tests?|specs?) (?![a-zA-Z]) )
    | / [^/\n]{{0,80}}? (?: {RUNNERS} | \\[.] (?:test|spec) \b | \b (?:test|spec) \\[.] )"""
)
"""A string that names tests: `latest` and `inspect` do not."""
REPORT_SAID: Final = rf"{_OPENED} (?: jsonl | junit | reports? \b | {RUNNERS} )"
ASSIGNED: Final = r"\s* [-+|]? = (?!=)"


@dataclass(frozen=True, slots=True)
class Saying:
    detail: str
    fix: str


SAYINGS: Final[dict[str, Saying]] = {
    "test-framework-import": Saying(
        "production code imports a test framework",
        "keep what tests need in the tests, or in a module named after testing",
    ),
    "hard-exit": Saying(
        "ends or kills the process without clean-up, so that test results get lost",
        "raise an error, or return an exit code to the caller",
    ),
    "constant-equality": Saying(
        "a comparison answers the same whatever it is given, so that any expectation is met",
        "compare the values",
    ),
    "runner-environment": Saying(
        "code can tell whether it is under test, and so behave differently there",
        "behave the same under test; pass what must differ as a parameter or a setting",
    ),
    "stack-reading": Saying(
        "code looks at who called it, and so can behave differently under test",
        "pass what the function needs as a parameter",
    ),
    "patched-framework": Saying(
        "replaces a part of what decides whether a test passes",
        "leave the test framework and the built-ins as they are",
    ),
    "names-the-gate": Saying(
        "names a part of Proofstone's own machinery",
        "leave it out: no project needs to know how it is checked",
    ),
    "report-tampering": Saying(
        "reaches for open files or memory of the running process, where results are written",
        "open the files that the code needs by their names",
    ),
    "hidden-code": Saying("is written so that a reader does not see what it does", "write it out as plain code"),
    "skipped-test": Saying(
        "a test is skipped, expected to fail, or run alone", "mend the test, or say why it cannot run"
    ),
    "swallowed-failure": Saying("a failure is swallowed, or nothing is asserted", "let it fail; assert what matters"),
    "dynamic-code": Saying("runs text as code", "call the code, or look it up in a table"),
    "startup-file": Saying(
        "decides what runs when a program starts",
        "keep it out of the repository, or have it declared as part of the task",
    ),
    "suppression": Saying(
        "tells a linter, a type checker or a coverage tool to look away",
        "mend what it complains of, or name the one complaint and the reason",
    ),
}

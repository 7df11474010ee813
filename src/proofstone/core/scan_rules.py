"""All rows of the static scan, with those for Go, Rust, Java, Ruby, and for files of any kind."""

from __future__ import annotations

import re
from typing import Final

from proofstone.core.scan_python import PYTHON_RULES
from proofstone.core.scan_rule import ANY, PYTHON, RUNNER_SAID, SCRIPT, Rule, code
from proofstone.core.scan_script import SCRIPT_RULES

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

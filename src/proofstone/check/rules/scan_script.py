"""The rules of the static scan for JavaScript and TypeScript."""

from __future__ import annotations

from typing import Final

from proofstone.check.rules.scan_rule import (
    ASSIGNMENT,
    NAMES_PLACEHOLDER,
    REPORT_STRING,
    RUNNER_PATTERN,
    RUNNER_STRING,
    SCRIPT,
    TEST_STRING,
    ScanRule,
    compile_pattern,
)

_FRAMEWORK = (
    r"(?: node:test(?:/\w+)? | jest | jest-circus | jest-mock | @jest/globals | vitest | mocha | chai | ava | tape"
    r" | uvu(?:/assert)? | jasmine(?:-core)? | sinon | @playwright/test )"
)
_ASSERT = r"(?: (?:node:)? assert(?:/strict)? )"
_ASSERTIONS = r"(?: ok | (?:not)? (?:deep|Deep)? (?:strict|Strict)? (?:e|E)qual | throws | rejects | match )"
_HARNESS = r"(?: expect | test | it | describe | suite | beforeEach | afterEach | assert )"
_VARIABLES = r"(?: JEST_WORKER_ID | NODE_TEST_CONTEXT | VITEST(?:_\w+)? | MOCHA_\w+ )"

_IMPORTS: Final = (
    ScanRule(
        "test-framework-import",
        SCRIPT,
        compile_pattern(rf"""\b (?: (?:require|import) \( | (?:from|import) \s* ) ["'`] {_FRAMEWORK} ["'`]"""),
        view="text",
        support=True,
    ),
)

_EXITS: Final = (
    ScanRule(
        "hard-exit",
        SCRIPT,
        compile_pattern(
            r"""\b process \s*\?? \. (?:reallyExit|abort) \b | \b process \. kill \( process \. pid \b
            | \b process \. exit \s* = (?!=)"""
        ),
        tests="broad",
    ),
    ScanRule(
        "hard-exit", SCRIPT, compile_pattern(r"""\b process \s*\[\s* ["'`] (?:reallyExit|abort) ["'`]"""), view="text"
    ),
    ScanRule(
        "hard-exit",
        SCRIPT,
        compile_pattern(
            r"""\b process \. (?:on|once|addListener|prependListener) \( ["'`] (?:exit|beforeExit) ["'`]"""
        ),
        view="text",
        near=compile_pattern(
            r"\b exitCode \s*=\s* (?: 0 | undefined | null ) \b | \b reallyExit \b | \b process \. exit \( 0? \s* \)"
        ),
        within=8,
        tests="broad",
    ),
)

_EQUALITY: Final = (
    ScanRule(
        "constant-equality",
        SCRIPT,
        compile_pattern(
            r"""\b Object \. is \s* = (?!=) | \[ \s* Symbol \. hasInstance \s* \] \s*
            (?: \( [^()]* \) \s* \{ \s* return \s* | [:=] \s* \(? [\w$]* \)? \s* => \s* ) (?: true \b | !0 )"""
        ),
    ),
    ScanRule(
        "constant-equality",
        SCRIPT,
        compile_pattern(
            r"""(?: \[ \s* Symbol \. toPrimitive \s* \] | \b (?:valueOf|equals|toJSON) ) \( [^()]* \) \s*
            (?: : [^{\n]+ )? \{ \s* return \s* (?: true | false | ["'`] \s* ["'`] | -?\d[\d.]* ) \s* [;}]"""
        ),
        production="broad",
    ),
)

_ENVIRONMENT: Final = (
    ScanRule(
        "runner-environment",
        SCRIPT,
        compile_pattern(rf"""["'`] {_VARIABLES} ["'`] | \b env \s*\?? \. {_VARIABLES} \b"""),
        view="text",
        support=True,
    ),
    ScanRule(
        "runner-environment",
        SCRIPT,
        compile_pattern(r"\b process \. (?:argv|execArgv) \b"),
        near=compile_pattern(r"""["'`/] [^"'`/\n]{0,80}? (?: \b (?:jest|mocha|vitest|ava|tape) \b | --test\b )"""),
        within=1,
        support=True,
    ),
    ScanRule(
        "runner-environment",
        SCRIPT,
        compile_pattern(
            r"""\b typeof \s+ (?: (?:globalThis|global) \. )? (?: jest | describe | vi | mocha | vitest )
            \s* [!=]==? \s* ["'`]"""
        ),
        view="text",
        support=True,
    ),
    ScanRule(
        "runner-environment",
        SCRIPT,
        compile_pattern(r"""["'`] /proc/ [^"'`\n]{1,40} /(?:cmdline|environ|comm) \b | \b process \. ppid \b"""),
        view="text",
        near=RUNNER_STRING,
        within=4,
        support=True,
    ),
    ScanRule(
        "runner-environment",
        SCRIPT,
        compile_pattern(
            r"""\b NODE_ENV \b ["'`]? \s*\]?\s* [!=]==? \s* ["'`] test ["'`] | \b import \. meta \. vitest \b
            | \b process \. env \. CI \b"""
        ),
        view="text",
        production="broad",
    ),
)

_FRAMES = compile_pattern(
    r"\b Error \( [^()\n]* \) \s* \)? \. stack \b | \b prepareStackTrace \b | \b captureStackTrace \( (?! this\b )"
)
_STACK: Final = (
    ScanRule("stack-reading", SCRIPT, _FRAMES, near=TEST_STRING, within=15, support=True),
    ScanRule("stack-reading", SCRIPT, _FRAMES, production="broad"),
)

_PATCHES: Final = (
    ScanRule(
        "patched-framework",
        SCRIPT,
        compile_pattern(
            rf"""(?<![\w.$]) assert \. (?: strict \. )? {_ASSERTIONS} {ASSIGNMENT}
            | \b (?: globalThis | global | window ) \. {_HARNESS} {ASSIGNMENT}
            | \b Object \. (?: assign | defineProperty | defineProperties ) \( assert \b"""
        ),
        tests="broad",
        support=True,
    ),
    ScanRule(
        "patched-framework",
        SCRIPT,
        compile_pattern(
            rf"""\b require \( ["'`] (?: {_ASSERT} | {_FRAMEWORK} ) ["'`] \s* \) (?: \. [\w$]+ )+ {ASSIGNMENT}
            | \b require \. cache \s*\[ [^\]\n]* (?: \b assert \b | {RUNNER_PATTERN} | node:test )"""
        ),
        view="text",
        tests="broad",
        support=True,
    ),
    ScanRule(
        "patched-framework",
        SCRIPT,
        compile_pattern(
            rf"""(?<![\w.$]) (?:{NAMES_PLACEHOLDER}) (?: \. [\w$]+ )+ {ASSIGNMENT}
            | \b Object \. (?:assign|defineProperty) \( (?:{NAMES_PLACEHOLDER}) \b"""
        ),
        binds=compile_pattern(
            rf"""\b (?: import \s+ (?: \* \s* as \s+ )? ([\w$]+) \s+ from \s*
            | (?:const|let|var) \s+ ([\w$]+) \s*=\s* require \( )
            ["'`] (?: {_ASSERT} | {_FRAMEWORK} ) ["'`]"""
        ),
        tests="broad",
    ),
    ScanRule(
        "patched-framework",
        SCRIPT,
        compile_pattern(rf"\b Module \. (?: _load | _resolveFilename | prototype \. require ) {ASSIGNMENT}"),
        tests="broad",
        support=True,
    ),
)

_OPEN_FILES = compile_pattern(r"""["'`] (?: /proc/ [^"'`\n]{1,40} /(?:fd|fdinfo|map_files) | /dev/fd ) \b""")
_TAMPERING: Final = (
    ScanRule(
        "report-tampering",
        SCRIPT,
        compile_pattern(r"""["'`] /proc/ [^"'`\n]{1,40} /mem \b"""),
        view="text",
        tests="broad",
    ),
    ScanRule(
        "report-tampering",
        SCRIPT,
        _OPEN_FILES,
        view="text",
        near=compile_pattern(
            rf"""{REPORT_STRING} | \b (?:writeSync|writeFileSync|ftruncateSync) \b
            | ["'`] [wa]\+? ["'`]"""
        ),
        within=12,
        tests="broad",
    ),
    ScanRule("report-tampering", SCRIPT, _OPEN_FILES, view="text", production="broad"),
)

_HIDDEN: Final = (
    ScanRule(
        "hidden-code",
        SCRIPT,
        compile_pattern(r"(?<![\w.$]) (?:eval|Function) \( | \b process \s*\["),
        near=compile_pattern(
            r"""\b (?: atob | fromCharCode | rot_?13 ) \b | ["'`] (?:base64|hex) ["'`] \s* \) \. toString"""
        ),
        within=2,
        tests="broad",
    ),
    # An ASCII letter written as an escape. Minifiers write other letters like that.
    ScanRule(
        "hidden-code",
        SCRIPT,
        compile_pattern(r"\\u (?: 00[2-7][0-9a-fA-F] | \{ 0*[2-7][0-9a-fA-F] \} )"),
        tests="broad",
    ),
    ScanRule(
        "dynamic-code",
        SCRIPT,
        compile_pattern(r"(?<![\w.$]) (?:eval|Function) \( | \b vm \. (?:runIn\w+|compileFunction|Script) \b"),
        production="broad",
        tests="broad",
    ),
)

_TESTS: Final = (
    ScanRule(
        "skipped-test",
        SCRIPT,
        compile_pattern(
            r"""\b (?: it | test | describe | context | suite | t | this ) (?: \. concurrent )?
            \. (?:skip|only|todo|fixme|failing|fails|skipIf) \b
            | (?<![\w.$]) (?: xit | xtest | xdescribe | fit | fdescribe ) \(
            | \{ \s* (?:skip|todo|only) \s*:\s* (?! false )"""
        ),
        production=None,
        tests="broad",
    ),
    ScanRule(
        "swallowed-failure",
        SCRIPT,
        compile_pattern(
            r"""\b expect \( (?: true | 1 | !0 ) \s* \) \. (?: to | toBe | toEqual | toBeTruthy | toStrictEqual ) \b
            | \b assert (?: \. ok )? \( true \s* [,)]"""
        ),
        production=None,
        tests="broad",
    ),
)

SCRIPT_RULES: Final = (
    *_IMPORTS,
    *_EXITS,
    *_EQUALITY,
    *_ENVIRONMENT,
    *_STACK,
    *_PATCHES,
    *_TAMPERING,
    *_HIDDEN,
    *_TESTS,
)

"""The rules of the static scan for JavaScript and TypeScript."""

from __future__ import annotations

from typing import Final

from proofstone.check.rules.scan_rule import (
    ASSIGNED,
    NAMES,
    REPORT_SAID,
    RUNNER_SAID,
    RUNNERS,
    SCRIPT,
    TEST_SAID,
    Rule,
    code,
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
    Rule(
        "test-framework-import",
        SCRIPT,
        code(rf"""\b (?: (?:require|import) \( | (?:from|import) \s* ) ["'`] {_FRAMEWORK} ["'`]"""),
        view="text",
        support=True,
    ),
)

_EXITS: Final = (
    Rule(
        "hard-exit",
        SCRIPT,
        code(
            r"""\b process \s*\?? \. (?:reallyExit|abort) \b | \b process \. kill \( process \. pid \b
            | \b process \. exit \s* = (?!=)"""
        ),
        tests="broad",
    ),
    Rule("hard-exit", SCRIPT, code(r"""\b process \s*\[\s* ["'`] (?:reallyExit|abort) ["'`]"""), view="text"),
    Rule(
        "hard-exit",
        SCRIPT,
        code(r"""\b process \. (?:on|once|addListener|prependListener) \( ["'`] (?:exit|beforeExit) ["'`]"""),
        view="text",
        near=code(
            r"\b exitCode \s*=\s* (?: 0 | undefined | null ) \b | \b reallyExit \b | \b process \. exit \( 0? \s* \)"
        ),
        within=8,
        tests="broad",
    ),
)

_EQUALITY: Final = (
    Rule(
        "constant-equality",
        SCRIPT,
        code(
            r"""\b Object \. is \s* = (?!=) | \[ \s* Symbol \. hasInstance \s* \] \s*
            (?: \( [^()]* \) \s* \{ \s* return \s* | [:=] \s* \(? [\w$]* \)? \s* => \s* ) (?: true \b | !0 )"""
        ),
    ),
    Rule(
        "constant-equality",
        SCRIPT,
        code(
            r"""(?: \[ \s* Symbol \. toPrimitive \s* \] | \b (?:valueOf|equals|toJSON) ) \( [^()]* \) \s*
            (?: : [^{\n]+ )? \{ \s* return \s* (?: true | false | ["'`] \s* ["'`] | -?\d[\d.]* ) \s* [;}]"""
        ),
        production="broad",
    ),
)

_ENVIRONMENT: Final = (
    Rule(
        "runner-environment",
        SCRIPT,
        code(rf"""["'`] {_VARIABLES} ["'`] | \b env \s*\?? \. {_VARIABLES} \b"""),
        view="text",
        support=True,
    ),
    Rule(
        "runner-environment",
        SCRIPT,
        code(r"\b process \. (?:argv|execArgv) \b"),
        near=code(r"""["'`/] [^"'`/\n]{0,80}? (?: \b (?:jest|mocha|vitest|ava|tape) \b | --test\b )"""),
        within=1,
        support=True,
    ),
    Rule(
        "runner-environment",
        SCRIPT,
        code(
            r"""\b typeof \s+ (?: (?:globalThis|global) \. )? (?: jest | describe | vi | mocha | vitest )
            \s* [!=]==? \s* ["'`]"""
        ),
        view="text",
        support=True,
    ),
    Rule(
        "runner-environment",
        SCRIPT,
        code(r"""["'`] /proc/ [^"'`\n]{1,40} /(?:cmdline|environ|comm) \b | \b process \. ppid \b"""),
        view="text",
        near=RUNNER_SAID,
        within=4,
        support=True,
    ),
    Rule(
        "runner-environment",
        SCRIPT,
        code(
            r"""\b NODE_ENV \b ["'`]? \s*\]?\s* [!=]==? \s* ["'`] test ["'`] | \b import \. meta \. vitest \b
            | \b process \. env \. CI \b"""
        ),
        view="text",
        production="broad",
    ),
)

_FRAMES = code(
    r"\b Error \( [^()\n]* \) \s* \)? \. stack \b | \b prepareStackTrace \b | \b captureStackTrace \( (?! this\b )"
)
_STACK: Final = (
    Rule("stack-reading", SCRIPT, _FRAMES, near=TEST_SAID, within=15, support=True),
    Rule("stack-reading", SCRIPT, _FRAMES, production="broad"),
)

_PATCHES: Final = (
    Rule(
        "patched-framework",
        SCRIPT,
        code(
            rf"""(?<![\w.$]) assert \. (?: strict \. )? {_ASSERTIONS} {ASSIGNED}
            | \b (?: globalThis | global | window ) \. {_HARNESS} {ASSIGNED}
            | \b Object \. (?: assign | defineProperty | defineProperties ) \( assert \b"""
        ),
        tests="broad",
        support=True,
    ),
    Rule(
        "patched-framework",
        SCRIPT,
        code(
            rf"""\b require \( ["'`] (?: {_ASSERT} | {_FRAMEWORK} ) ["'`] \s* \) (?: \. [\w$]+ )+ {ASSIGNED}
            | \b require \. cache \s*\[ [^\]\n]* (?: \b assert \b | {RUNNERS} | node:test )"""
        ),
        view="text",
        tests="broad",
        support=True,
    ),
    Rule(
        "patched-framework",
        SCRIPT,
        code(
            rf"""(?<![\w.$]) (?:{NAMES}) (?: \. [\w$]+ )+ {ASSIGNED}
            | \b Object \. (?:assign|defineProperty) \( (?:{NAMES}) \b"""
        ),
        binds=code(
            rf"""\b (?: import \s+ (?: \* \s* as \s+ )? ([\w$]+) \s+ from \s*
            | (?:const|let|var) \s+ ([\w$]+) \s*=\s* require \( )
            ["'`] (?: {_ASSERT} | {_FRAMEWORK} ) ["'`]"""
        ),
        tests="broad",
    ),
    Rule(
        "patched-framework",
        SCRIPT,
        code(rf"\b Module \. (?: _load | _resolveFilename | prototype \. require ) {ASSIGNED}"),
        tests="broad",
        support=True,
    ),
)

_OPEN_FILES = code(r"""["'`] (?: /proc/ [^"'`\n]{1,40} /(?:fd|fdinfo|map_files) | /dev/fd ) \b""")
_TAMPERING: Final = (
    Rule("report-tampering", SCRIPT, code(r"""["'`] /proc/ [^"'`\n]{1,40} /mem \b"""), view="text", tests="broad"),
    Rule(
        "report-tampering",
        SCRIPT,
        _OPEN_FILES,
        view="text",
        near=code(
            rf"""{REPORT_SAID} | \b (?:writeSync|writeFileSync|ftruncateSync) \b
            | ["'`] [wa]\+? ["'`]"""
        ),
        within=12,
        tests="broad",
    ),
    Rule("report-tampering", SCRIPT, _OPEN_FILES, view="text", production="broad"),
)

_HIDDEN: Final = (
    Rule(
        "hidden-code",
        SCRIPT,
        code(r"(?<![\w.$]) (?:eval|Function) \( | \b process \s*\["),
        near=code(r"""\b (?: atob | fromCharCode | rot_?13 ) \b | ["'`] (?:base64|hex) ["'`] \s* \) \. toString"""),
        within=2,
        tests="broad",
    ),
    # An ASCII letter written as an escape. Minifiers write other letters like that.
    Rule(
        "hidden-code",
        SCRIPT,
        code(r"\\u (?: 00[2-7][0-9a-fA-F] | \{ 0*[2-7][0-9a-fA-F] \} )"),
        tests="broad",
    ),
    Rule(
        "dynamic-code",
        SCRIPT,
        code(r"(?<![\w.$]) (?:eval|Function) \( | \b vm \. (?:runIn\w+|compileFunction|Script) \b"),
        production="broad",
        tests="broad",
    ),
)

_TESTS: Final = (
    Rule(
        "skipped-test",
        SCRIPT,
        code(
            r"""\b (?: it | test | describe | context | suite | t | this ) (?: \. concurrent )?
            \. (?:skip|only|todo|fixme|failing|fails|skipIf) \b
            | (?<![\w.$]) (?: xit | xtest | xdescribe | fit | fdescribe ) \(
            | \{ \s* (?:skip|todo|only) \s*:\s* (?! false )"""
        ),
        production=None,
        tests="broad",
    ),
    Rule(
        "swallowed-failure",
        SCRIPT,
        code(
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

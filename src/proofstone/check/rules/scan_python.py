"""The rules of the static scan for Python."""

from __future__ import annotations

from typing import Final

from proofstone.check.rules.scan_rule import (
    ASSIGNMENT,
    NAMES_PLACEHOLDER,
    PYTHON,
    REPORT_STRING,
    RUNNER_STRING,
    TEST_STRING,
    ScanRule,
    compile_pattern,
)

_FRAMEWORK = r"(?: _?pytest | unittest | nose2? )"
_DECIDERS = (
    r"(?: isinstance | issubclass | len | all | any | sum | abs | round | min | max | bool | type | hasattr"
    r" | AssertionError )"
)
"""Built-ins that decide the result of tests."""
_HOOKS = r"(?: runtest | pyfunc | collection | assertion | assertrepr | report | sessionfinish | exception | terminal )"
_DOC = r"""(?: [rRuU]? (?: "[\s"]*" | '[\s']*' ) \s* )?"""
_HEAD = rf"\( [^()]* \) \s* (?: -> \s* [^:\n]+ )? : \s* {_DOC} return \b \s*"
_YES = r"\(? (?: True | not\s+False | 1 ) \s* \)? [ \t]* (?: $ | ; | \b or \b )"
_NO = r"\(? (?: False | not\s+True | 0 ) \s* \)? [ \t]* (?: $ | ; | \b and \b )"
_DISGUISED = "[\uff21-\uff3a\uff41-\uff5a\uff3f\U0001d400-\U0001d6a3]"
"""Letters that Python reads as ASCII letters."""
_ENVIRON = r"(?: environ (?: \.get \( | \s* \[ \s* ) | getenv \( )"

_IMPORTS: Final = (
    ScanRule(
        "test-framework-import",
        PYTHON,
        compile_pattern(
            rf"""(?: ^ | [;:] ) [ \t]* (?: from [ \t]+ {_FRAMEWORK} (?: \.[\w.]+ )? [ \t]+ import \b
            | import [ \t]+ (?: [\w. \t]+ , [ \t]* )* {_FRAMEWORK} \b )"""
        ),
        support=True,
    ),
    ScanRule(
        "test-framework-import",
        PYTHON,
        compile_pattern(rf"""\b (?:import_module|__import__) \( ["'] {_FRAMEWORK} ["'.]"""),
        view="text",
        support=True,
    ),
    # Production code uses pluggy for plug-ins, and modules run their own doctests: 11 more files.
    ScanRule(
        "test-framework-import",
        PYTHON,
        compile_pattern(r"^ [ \t]* (?: from | import ) [ \t]+ (?:pluggy|doctest|hypothesis|coverage|mock) \b"),
        production="broad",
    ),
)

# Forked children, daemons, and code that raises a signal again after clean-up have a reason: 33 of 13,953 files.
_EXITS: Final = (
    ScanRule(
        "hard-exit",
        PYTHON,
        compile_pattern(
            r"""\b (?:os|posix|nt) \. (?:_exit|abort) \b
            | \b from [ \t]+ (?:os|posix|nt) [ \t]+ import \b [^;\n]* \b _exit \b"""
        ),
        tests="broad",
    ),
    ScanRule(
        "hard-exit",
        PYTHON,
        compile_pattern(r"""\b getattr \( (?:os|posix|nt) \s*,\s* ["'] (?:_exit|abort) ["']"""),
        view="text",
    ),
    ScanRule(
        "hard-exit",
        PYTHON,
        compile_pattern(r"\b os \. kill \( os \. getpid \b | \b signal \. raise_signal \b"),
        tests="broad",
    ),
)

_EQUALITY: Final = (
    # Objects of four files contain everything on purpose; none equals everything.
    ScanRule(
        "constant-equality",
        PYTHON,
        compile_pattern(rf"\b def \s+ (?: __(?:eq|contains)__ {_HEAD} {_YES} | __ne__ {_HEAD} {_NO} )"),
    ),
    # Honest objects are greater than everything, equal to nothing, or contain nothing: 15 files.
    ScanRule(
        "constant-equality",
        PYTHON,
        compile_pattern(rf"\b def \s+ __(?:eq|ne|lt|le|gt|ge|contains|instancecheck)__ {_HEAD} (?: {_YES} | {_NO} )"),
        production="broad",
    ),
    ScanRule(
        "constant-equality",
        PYTHON,
        compile_pattern(
            r"""(?: \b | ["'] ) __(?:eq|contains)__ ["']? \s* [=:,] \s* lambda \b [^:\n]* :
            \s* (?: True | not\s+False | 1 ) \s* (?: $ | [,;)}] )"""
        ),
        view="text",
    ),
    ScanRule(
        "constant-equality",
        PYTHON,
        compile_pattern(
            r"\b class \s+ \w+ \( (?:str|int|float|list|dict|tuple|bytes|set|frozenset) \b [^()]* \) \s* :"
        ),
        production="broad",
        near=compile_pattern(r"\b def \s+ __(?:eq|ne)__ \b"),
        within=30,
    ),
)

_ENVIRONMENT: Final = (
    ScanRule(
        "runner-environment",
        PYTHON,
        compile_pattern(r"""["'] PYTEST_ (?: CURRENT_TEST | XDIST_\w+ | VERSION ) ["']"""),
        view="text",
        support=True,
    ),
    ScanRule(
        "runner-environment",
        PYTHON,
        compile_pattern(r"\b sys \. (?:modules|orig_argv|argv) \b"),
        near=compile_pattern(
            r"""["'] (?: _?pytest | py\.test | unittest | nose2? | xdist ) (?: [./] [\w./]* )? ["']"""
        ),
        within=1,
        support=True,
    ),
    ScanRule(
        "runner-environment",
        PYTHON,
        compile_pattern(r"""["'] /proc/ [^"'\n]{1,40} /(?:cmdline|environ|comm) \b | \b (?:cmdline|getppid) \b"""),
        view="text",
        near=RUNNER_STRING,
        within=4,
        support=True,
    ),
    ScanRule(
        "runner-environment",
        PYTHON,
        compile_pattern(rf"""\b {_ENVIRON} ["'] CI ["']"""),
        view="text",
        production="broad",
    ),
    ScanRule(
        "runner-environment",
        PYTHON,
        compile_pattern(r"\b sys \. argv \s*\[\s* 0"),
        production="broad",
        near=TEST_STRING,
        within=1,
    ),
)

_FRAMES = compile_pattern(
    r"""\b (?: _getframe | _current_frames ) \b | \b inspect \. (?:stack|currentframe|getouterframes) \b
    | \b traceback \. (?:extract_stack|walk_stack|format_stack) \b | \. f_back \b"""
)
_STACK: Final = (
    ScanRule("stack-reading", PYTHON, _FRAMES, near=TEST_STRING, within=15, support=True),
    ScanRule("stack-reading", PYTHON, _FRAMES, production="broad"),
)

_PATCHES: Final = (
    ScanRule(
        "patched-framework",
        PYTHON,
        compile_pattern(
            rf"""(?<!\w) (?: (?: unittest | _?pytest ) (?: \. \w+ )+ | TestCase \. \w+ ) {ASSIGNMENT}
            | \b setattr \( (?: unittest | _?pytest | TestCase ) \b | \b builtins \. {_DECIDERS} {ASSIGNMENT}"""
        ),
        tests="broad",
    ),
    ScanRule(
        "patched-framework",
        PYTHON,
        compile_pattern(
            rf"""\b setattr \( builtins \s*,\s* ["'] {_DECIDERS} ["']
            | \b (?: __builtins__ | builtins \. __dict__ ) \s*\[\s* ["'] {_DECIDERS} ["'] \s*\] {ASSIGNMENT}
            | (?<=[.]) outcome \s*=\s* ["']passed["'] | (?<=[.]) (?:exitstatus|testsfailed) \s*=\s* 0 \b"""
        ),
        view="text",
        tests="broad",
        support=True,
    ),
    ScanRule(
        "patched-framework",
        PYTHON,
        compile_pattern(
            rf"(?<![\w.]) (?:{NAMES_PLACEHOLDER}) (?: \. \w+ )+ {ASSIGNMENT} | \b setattr \( (?:{NAMES_PLACEHOLDER}) \b"
        ),
        binds=compile_pattern(
            r"""^ [ \t]* (?: import [ \t]+ (?:_?pytest|unittest)[\w.]* [ \t]+ as [ \t]+ (\w+)
            | from [ \t]+ (?:_?pytest|unittest) (?!\.mock) [\w.]* [ \t]+ import
              (?: [ \t]+ ([^(\n]+) | \( ([^)]*) \) ) )"""
        ),
        tests="broad",
    ),
    ScanRule(
        "patched-framework", PYTHON, compile_pattern(rf"\b def \s+ pytest_{_HOOKS} \w* \("), tests="broad", support=True
    ),
    # Debuggers, loggers and import hooks do this with good reason.
    ScanRule(
        "patched-framework",
        PYTHON,
        compile_pattern(
            rf"""\b builtins \. (?: print | open | __import__ | compile | exec | eval | input ) {ASSIGNMENT}
            | \b (?:sys|threading) \. (?:settrace|setprofile) \( | \b sys \. excepthook {ASSIGNMENT}"""
        ),
        production="broad",
    ),
)

_OPEN_FILES = compile_pattern(r"""["'] (?: /proc/ [^"'\n]{1,40} /(?:fd|fdinfo|map_files) | /dev/fd ) \b""")
_TAMPERING: Final = (
    ScanRule(
        "report-tampering",
        PYTHON,
        compile_pattern(r"""["'] /proc/ [^"'\n]{1,40} /mem \b"""),
        view="text",
        tests="broad",
    ),
    ScanRule(
        "report-tampering",
        PYTHON,
        _OPEN_FILES,
        view="text",
        near=compile_pattern(
            rf"""{REPORT_STRING} | \b os \. (?:write|pwrite|ftruncate) \b
            | ["'] [wa]b?\+? ["']"""
        ),
        within=12,
        tests="broad",
    ),
    ScanRule("report-tampering", PYTHON, _OPEN_FILES, view="text", production="broad"),
    ScanRule(
        "report-tampering",
        PYTHON,
        compile_pattern(r"\b gc \. get_(?:objects|referrers) \b"),
        near=TEST_STRING,
        within=10,
        tests="broad",
    ),
)

_HIDDEN: Final = (
    ScanRule(
        "hidden-code",
        PYTHON,
        compile_pattern(r"(?<![\w.]) (?:exec|eval|__import__) \( | \b getattr \( (?:os|sys|builtins) \b"),
        near=compile_pattern(
            r"""\b (?: b(?:64|32|85)decode | a85decode | fromhex | unhexlify | rot_?13 | decompress ) \b
            | \[ \s* : \s* : \s* -1 \s* \]"""
        ),
        within=2,
        tests="broad",
    ),
    # Encodings in which the code differs from the text that a reader sees.
    ScanRule(
        "hidden-code",
        PYTHON,
        compile_pattern(
            r"\A (?: [^\n]* \n )? [^\n]* coding [:=] [ \t]* (?: utf[-_]?7 | \w*unicode[-_]escape | punycode | idna ) \b"
        ),
        view="comment",
    ),
    ScanRule("hidden-code", PYTHON, compile_pattern(rf"[\w.] {_DISGUISED} | {_DISGUISED} \w"), tests="broad"),
    ScanRule(
        "dynamic-code",
        PYTHON,
        compile_pattern(r"""(?<![\w.]) (?:exec|eval|__import__) \( (?! ["')] )"""),
        production="broad",
        tests="broad",
    ),
)

_TESTS: Final = (
    ScanRule(
        "skipped-test",
        PYTHON,
        compile_pattern(
            r"""\b pytest \. (?: mark \. )? (?:skip|skipif|xfail|importorskip) \b | @ (?:skip\w*|expectedFailure) \b
            | \b unittest \. (?:skip\w*|expectedFailure) \b | \b skipTest \( | \b raise \s+ (?: \w+ \. )* SkipTest \b
            | \b __test__ \s*=\s* False"""
        ),
        production=None,
        tests="broad",
    ),
    ScanRule(
        "swallowed-failure",
        PYTHON,
        compile_pattern(
            r"""\b except \s* : | \b except \b [^:\n]* \b (?:BaseException|AssertionError) \b [^:\n]* :
            | \b assert \s+ (?: True | 1 ) \s* (?: $ | , ) | \b assertTrue \( True \s* [,)]"""
        ),
        production=None,
        tests="broad",
    ),
)

PYTHON_RULES: Final = (
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

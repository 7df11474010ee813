"""The rules of the static scan for Python."""

from __future__ import annotations

from typing import Final

from proofstone.check.rules.scan_rule import ASSIGNED, NAMES, PYTHON, REPORT_SAID, RUNNER_SAID, TEST_SAID, Rule, code

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
    Rule(
        "test-framework-import",
        PYTHON,
        code(
            rf"""(?: ^ | [;:] ) [ \t]* (?: from [ \t]+ {_FRAMEWORK} (?: \.[\w.]+ )? [ \t]+ import \b
            | import [ \t]+ (?: [\w. \t]+ , [ \t]* )* {_FRAMEWORK} \b )"""
        ),
        support=True,
    ),
    Rule(
        "test-framework-import",
        PYTHON,
        code(rf"""\b (?:import_module|__import__) \( ["'] {_FRAMEWORK} ["'.]"""),
        view="text",
        support=True,
    ),
    # Production code uses pluggy for plug-ins, and modules run their own doctests: 11 more files.
    Rule(
        "test-framework-import",
        PYTHON,
        code(r"^ [ \t]* (?: from | import ) [ \t]+ (?:pluggy|doctest|hypothesis|coverage|mock) \b"),
        production="broad",
    ),
)

# Forked children, daemons, and code that raises a signal again after clean-up have a reason: 33 of 13,953 files.
_EXITS: Final = (
    Rule(
        "hard-exit",
        PYTHON,
        code(
            r"""\b (?:os|posix|nt) \. (?:_exit|abort) \b
            | \b from [ \t]+ (?:os|posix|nt) [ \t]+ import \b [^;\n]* \b _exit \b"""
        ),
        tests="broad",
    ),
    Rule(
        "hard-exit", PYTHON, code(r"""\b getattr \( (?:os|posix|nt) \s*,\s* ["'] (?:_exit|abort) ["']"""), view="text"
    ),
    Rule("hard-exit", PYTHON, code(r"\b os \. kill \( os \. getpid \b | \b signal \. raise_signal \b"), tests="broad"),
)

_EQUALITY: Final = (
    # Objects of four files contain everything on purpose; none equals everything.
    Rule(
        "constant-equality",
        PYTHON,
        code(rf"\b def \s+ (?: __(?:eq|contains)__ {_HEAD} {_YES} | __ne__ {_HEAD} {_NO} )"),
    ),
    # Honest objects are greater than everything, equal to nothing, or contain nothing: 15 files.
    Rule(
        "constant-equality",
        PYTHON,
        code(rf"\b def \s+ __(?:eq|ne|lt|le|gt|ge|contains|instancecheck)__ {_HEAD} (?: {_YES} | {_NO} )"),
        production="broad",
    ),
    Rule(
        "constant-equality",
        PYTHON,
        code(
            r"""(?: \b | ["'] ) __(?:eq|contains)__ ["']? \s* [=:,] \s* lambda \b [^:\n]* :
            \s* (?: True | not\s+False | 1 ) \s* (?: $ | [,;)}] )"""
        ),
        view="text",
    ),
    Rule(
        "constant-equality",
        PYTHON,
        code(r"\b class \s+ \w+ \( (?:str|int|float|list|dict|tuple|bytes|set|frozenset) \b [^()]* \) \s* :"),
        production="broad",
        near=code(r"\b def \s+ __(?:eq|ne)__ \b"),
        within=30,
    ),
)

_ENVIRONMENT: Final = (
    Rule(
        "runner-environment",
        PYTHON,
        code(r"""["'] PYTEST_ (?: CURRENT_TEST | XDIST_\w+ | VERSION ) ["']"""),
        view="text",
        support=True,
    ),
    Rule(
        "runner-environment",
        PYTHON,
        code(r"\b sys \. (?:modules|orig_argv|argv) \b"),
        near=code(r"""["'] (?: _?pytest | py\.test | unittest | nose2? | xdist ) (?: [./] [\w./]* )? ["']"""),
        within=1,
        support=True,
    ),
    Rule(
        "runner-environment",
        PYTHON,
        code(r"""["'] /proc/ [^"'\n]{1,40} /(?:cmdline|environ|comm) \b | \b (?:cmdline|getppid) \b"""),
        view="text",
        near=RUNNER_SAID,
        within=4,
        support=True,
    ),
    Rule("runner-environment", PYTHON, code(rf"""\b {_ENVIRON} ["'] CI ["']"""), view="text", production="broad"),
    Rule(
        "runner-environment", PYTHON, code(r"\b sys \. argv \s*\[\s* 0"), production="broad", near=TEST_SAID, within=1
    ),
)

_FRAMES = code(
    r"""\b (?: _getframe | _current_frames ) \b | \b inspect \. (?:stack|currentframe|getouterframes) \b
    | \b traceback \. (?:extract_stack|walk_stack|format_stack) \b"""
)
_STACK: Final = (
    Rule("stack-reading", PYTHON, _FRAMES, near=TEST_SAID, within=15, support=True),
    Rule("stack-reading", PYTHON, _FRAMES, production="broad"),
)

_PATCHES: Final = (
    Rule(
        "patched-framework",
        PYTHON,
        code(
            rf"""(?<!\w) (?: (?: unittest | _?pytest ) (?: \. \w+ )+ | TestCase \. \w+ ) {ASSIGNED}
            | \b setattr \( (?: unittest | _?pytest | TestCase ) \b | \b builtins \. {_DECIDERS} {ASSIGNED}"""
        ),
        tests="broad",
    ),
    Rule(
        "patched-framework",
        PYTHON,
        code(
            rf"""\b setattr \( builtins \s*,\s* ["'] {_DECIDERS} ["']
            | \b (?: __builtins__ | builtins \. __dict__ ) \s*\[\s* ["'] {_DECIDERS} ["'] \s*\] {ASSIGNED}
            | (?<=[.]) outcome \s*=\s* ["']passed["'] | (?<=[.]) (?:exitstatus|testsfailed) \s*=\s* 0 \b"""
        ),
        view="text",
        tests="broad",
        support=True,
    ),
    Rule(
        "patched-framework",
        PYTHON,
        code(rf"(?<![\w.]) (?:{NAMES}) (?: \. \w+ )+ {ASSIGNED} | \b setattr \( (?:{NAMES}) \b"),
        binds=code(
            r"""^ [ \t]* (?: import [ \t]+ (?:_?pytest|unittest)[\w.]* [ \t]+ as [ \t]+ (\w+)
            | from [ \t]+ (?:_?pytest|unittest) (?!\.mock) [\w.]* [ \t]+ import
              (?: [ \t]+ ([^(\n]+) | \( ([^)]*) \) ) )"""
        ),
        tests="broad",
    ),
    Rule("patched-framework", PYTHON, code(rf"\b def \s+ pytest_{_HOOKS} \w* \("), tests="broad", support=True),
    # Debuggers, loggers and import hooks do this with good reason.
    Rule(
        "patched-framework",
        PYTHON,
        code(
            rf"""\b builtins \. (?: print | open | __import__ | compile | exec | eval | input ) {ASSIGNED}
            | \b (?:sys|threading) \. (?:settrace|setprofile) \( | \b sys \. excepthook {ASSIGNED}"""
        ),
        production="broad",
    ),
)

_OPEN_FILES = code(r"""["'] (?: /proc/ [^"'\n]{1,40} /(?:fd|fdinfo|map_files) | /dev/fd ) \b""")
_TAMPERING: Final = (
    Rule("report-tampering", PYTHON, code(r"""["'] /proc/ [^"'\n]{1,40} /mem \b"""), view="text", tests="broad"),
    Rule(
        "report-tampering",
        PYTHON,
        _OPEN_FILES,
        view="text",
        near=code(
            rf"""{REPORT_SAID} | \b os \. (?:write|pwrite|ftruncate) \b
            | ["'] [wa]b?\+? ["']"""
        ),
        within=12,
        tests="broad",
    ),
    Rule("report-tampering", PYTHON, _OPEN_FILES, view="text", production="broad"),
    Rule(
        "report-tampering",
        PYTHON,
        code(r"\b gc \. get_(?:objects|referrers) \b"),
        near=TEST_SAID,
        within=10,
        tests="broad",
    ),
)

_HIDDEN: Final = (
    Rule(
        "hidden-code",
        PYTHON,
        code(r"(?<![\w.]) (?:exec|eval|__import__) \( | \b getattr \( (?:os|sys|builtins) \b"),
        near=code(
            r"""\b (?: b(?:64|32|85)decode | a85decode | fromhex | unhexlify | rot_?13 | decompress ) \b
            | \[ \s* : \s* : \s* -1 \s* \]"""
        ),
        within=2,
        tests="broad",
    ),
    # Encodings in which the code differs from the text that a reader sees.
    Rule(
        "hidden-code",
        PYTHON,
        code(
            r"\A (?: [^\n]* \n )? [^\n]* coding [:=] [ \t]* (?: utf[-_]?7 | \w*unicode[-_]escape | punycode | idna ) \b"
        ),
        view="comment",
    ),
    Rule("hidden-code", PYTHON, code(rf"[\w.] {_DISGUISED} | {_DISGUISED} \w"), tests="broad"),
    Rule(
        "dynamic-code",
        PYTHON,
        code(r"""(?<![\w.]) (?:exec|eval|__import__) \( (?! ["')] )"""),
        production="broad",
        tests="broad",
    ),
)

_TESTS: Final = (
    Rule(
        "skipped-test",
        PYTHON,
        code(
            r"""\b pytest \. (?: mark \. )? (?:skip|skipif|xfail|importorskip) \b | @ (?:skip\w*|expectedFailure) \b
            | \b unittest \. (?:skip\w*|expectedFailure) \b | \b skipTest \( | \b raise \s+ (?: \w+ \. )* SkipTest \b
            | \b __test__ \s*=\s* False"""
        ),
        production=None,
        tests="broad",
    ),
    Rule(
        "swallowed-failure",
        PYTHON,
        code(
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

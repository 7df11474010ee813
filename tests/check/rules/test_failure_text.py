"""The cause of a failure, from what each runner really writes; never a frame of the runner."""

from __future__ import annotations

import time

from hypothesis import given
from hypothesis import strategies as st

from proofstone.check.rules.failure_text import MAX_CAUSE, find_failed_tests, find_run_error, summarize_failure
from tests.rows import each_row

PYTEST = (
    ">   def test_eq(): assert add(2,3) == 5\n"
    "                   ^^^^\n"
    "E   assert 9 == 5\n"
    "E    +  where 9 = add(2, 3)\n"
    "\n"
    "t.py:3: AssertionError"
)
MESSAGE = "E   AssertionError: sum of two\nE   assert 9 == 5\nE    +  where 9 = add(2, 3)\n\nt.py:4: AssertionError"
CHAIN = (
    "E   ValueError: bad\n"
    "\n"
    "t.py:1: ValueError\n"
    "\n"
    "The above exception was the direct cause:\n"
    "\n"
    "E   KeyError: 'k'\n"
    "\n"
    "t.py:2: KeyError"
)
SYNTAX = 'E     File "/p/t.py", line 1\nE       def f(: pass\nE             ^\nE   SyntaxError: invalid syntax'
UNITTEST = (
    "Traceback (most recent call last):\n"
    '  File "/p/t.py", line 18, in test_l\n'
    "    self.assertEqual([1,2],[1,3])\n"
    "AssertionError: Lists differ: [1, 2] != [1, 3]\n"
    "\n"
    "First differing element 1:\n"
    "2\n"
    "3\n"
    "\n"
    "- [1, 2]\n"
    "+ [1, 3]\n"
)
IMPORT = (
    "ImportError: Failed to import test module: test_x\n"
    "Traceback (most recent call last):\n"
    '  File "/usr/lib/python3.11/unittest/loader.py", line 394\n'
    "    x\n"
    "ModuleNotFoundError: No module named 'x'\n"
)
NODE = (
    "AssertionError [ERR_ASSERTION]: Expected values to be strictly equal:\n"
    "\n"
    "9 !== 5\n"
    "\n"
    "    at TestContext.<anonymous> (/p/a.test.js:2:27)\n"
    "    at Test.run (node:internal/test_runner/test:796:25)"
)
JEST = (
    "Error: expect(received).toBe(expected) // Object.is equality\n"
    "\n"
    "Expected: 5\n"
    "Received: 9\n"
    "    at Object.toBe (/p/a.test.js:2:39)\n"
    "    at _callCircusTest (/p/node_modules/jest-circus/build/run.js:316:40)"
)
SUITE = (
    "  ● Test suite failed to run\n"
    "\n"
    "    Cannot find module './missing' from 't/b.test.js'\n"
    "\n"
    "    > 1 | const x = require('./missing');\n"
    "        |   ^\n"
    "\n"
    "      at Resolver._throw (node_modules/jest-resolve/build/resolver.js:427:11)\n"
)
GO = "=== RUN   TestAdd\n    a_test.go:3: Add(2, 3) = 9, want 5\n--- FAIL: TestAdd (0.00s)\n"
GO_PANIC = (
    "=== RUN   TestPanic\n"
    "--- FAIL: TestPanic (0.00s)\n"
    "panic: runtime error: index out of range [3] with length 0 [recovered]\n"
    "\tpanic: runtime error\n"
    "\n"
    "goroutine 21 [running]:\n"
    "testing.tRunner.func1.2()\n"
)
RUST = (
    "\n"
    "thread 'tests::adds' (24781) panicked at src/lib.rs:5:25:\n"
    "assertion `left == right` failed\n"
    "  left: 9\n"
    " right: 5\n"
    "stack backtrace:\n"
    "   0: __rustc::rust_begin_unwind\n"
)
OLD_RUST = (
    "thread 'tests::yes' panicked at 'assertion failed: add(2, 3) == 5', src/lib.rs:7:24\n"
    "note: run with `RUST_BACKTRACE=1`"
)
JUNIT = (
    "expected: <5> but was: <9>\n"
    "org.opentest4j.AssertionFailedError: expected: <5> but was: <9>\n"
    "\tat org.junit.jupiter.api.AssertionUtils.fail(AssertionUtils.java:55)\n"
)
TAP = (
    "failureType: 'testCodeFailure'\n"
    "error: |-\n"
    "  Expected values to be strictly equal:\n"
    "  \n"
    "  9 !== 5\n"
    "  \n"
    "code: 'ERR_ASSERTION'\n"
    "expected: 5\n"
    "actual: 9\n"
    "stack: |-\n"
    "  x (a.js:1)\n"
)


@each_row(
    ("runner", "text", "cause"),
    [
        ("pytest", PYTEST, "assert 9 == 5"),
        ("pytest, with a message", MESSAGE, "AssertionError: sum of two; assert 9 == 5"),
        ("pytest, chained", CHAIN, "KeyError: 'k'"),
        ("pytest, syntax", SYNTAX, 'SyntaxError: invalid syntax (File "/p/t.py", line 1)'),
        ("unittest", UNITTEST, "AssertionError: Lists differ: [1, 2] != [1, 3]"),
        ("unittest, import", IMPORT, "ModuleNotFoundError: No module named 'x'"),
        ("node", NODE, "Expected values to be strictly equal: 9 !== 5"),
        ("jest", JEST, "expect(received).toBe(expected) // Object.is equality; Expected: 5; Received: 9"),
        ("jest, file", SUITE, "Cannot find module './missing' from 't/b.test.js'"),
        ("vitest", "expected 9 to be 5 // Object.is equality", "expected 9 to be 5 // Object.is equality"),
        ("go", GO, "Add(2, 3) = 9, want 5"),
        ("go, panic", GO_PANIC, "panic: runtime error: index out of range [3] with length 0"),
        ("go, compiler", "./a.go:3:5: undefined: x\n", "./a.go:3:5: undefined: x"),
        ("go, subtests", "=== RUN   TestSub\n--- FAIL: TestSub (0.00s)\n", ""),
        ("cargo", RUST, "assertion `left == right` failed; left: 9; right: 5"),
        ("cargo, older", OLD_RUST, "assertion failed: add(2, 3) == 5"),
        ("junit", JUNIT, "expected: <5> but was: <9>"),
        ("tap", TAP, "Expected values to be strictly equal: 9 !== 5; expected: 5; actual: 9"),
        ("nothing", "", ""),
    ],
)
def test_the_assertions_own_message(runner: str, text: str, cause: str) -> None:
    assert summarize_failure(text) == cause, runner


CONFTEST = (
    "ImportError while loading conftest '/p/tests/conftest.py'.\n"
    "tests/conftest.py:1: in <module>\n"
    "    import gone\n"
    "E   ModuleNotFoundError: No module named 'gone'\n"
)
USAGE = (
    "ERROR: usage: python -m pytest [options] [file_or_dir]\n"
    "python -m pytest: error: unrecognized arguments: --foo\n"
    "  inifile: None\n"
)
TRACEBACK = (
    "Traceback (most recent call last):\n"
    '  File "/p/manage.py", line 7, in <module>\n'
    "    import django\n"
    '  File "/usr/lib/python3.11/x.py", line 2\n'
    "ModuleNotFoundError: No module named 'django'\n"
)
CARGO = (
    "   Compiling calc v0.1.0\n"
    "error[E0425]: cannot find value `x` in this scope\n"
    " --> src/lib.rs:3:5\n"
    "  |\n"
    "error: could not compile `calc`\n"
)
NODE_RUN = (
    "node:internal/modules/cjs/loader:1148\n"
    "  throw err;\n"
    "  ^\n"
    "\n"
    "Error: Cannot find module './missing'\n"
    "Require stack:\n"
    "- /p/a.js\n"
    "    at Module._resolve (node:internal/x:1:1)\n"
)


@each_row(
    ("what", "output", "error"),
    [
        (
            "a conftest",
            CONFTEST,
            (
                "ModuleNotFoundError: No module named 'gone'",
                "ImportError while loading conftest '/p/tests/conftest.py'.",
                "at tests/conftest.py:1",
            ),
        ),
        ("an option", USAGE, ("python -m pytest: error: unrecognized arguments: --foo",)),
        ("a traceback", TRACEBACK, ("ModuleNotFoundError: No module named 'django'", "at /p/manage.py:7")),
        ("a compiler", CARGO, ("error[E0425]: cannot find value `x` in this scope", "at src/lib.rs:3:5")),
        ("go", "# calc\n./a.go:3:5: undefined: x\nFAIL\tcalc [build failed]\n", ("./a.go:3:5: undefined: x",)),
        ("node", NODE_RUN, ("Error: Cannot find module './missing'",)),
        ("a shell", "sh: 1: tox: not found\n", ("sh: 1: tox: not found",)),
        (
            "make",
            "make: *** No rule to make target 'test'.  Stop.\n",
            ("make: *** No rule to make target 'test'. Stop.",),
        ),
        ("any program", "one\ntwo\n\n", ("two",)),
        ("silence", "", ()),
    ],
)
def test_the_error_of_a_run_that_broke(what: str, output: str, error: tuple[str, ...]) -> None:
    assert find_run_error(output) == error, what


@given(st.text(max_size=300))
def test_any_text_gives_one_short_line(text: str) -> None:
    cause = summarize_failure(text)
    assert len(cause) <= MAX_CAUSE
    assert len(cause.splitlines()) <= 1
    for line in find_run_error(text):
        assert len(line) <= MAX_CAUSE


@each_row("text", ["E   x\n" * 20_000, " " * 200_000, "`" * 100_000, "a.go:1:" * 20_000, "thread '" * 20_000])
def test_long_texts_are_read_in_no_time(text: str) -> None:
    began = time.process_time()
    summarize_failure(text)
    find_run_error(text)
    assert time.process_time() - began < 20  # quadratic time would take hours


@each_row(
    ("line", "test"),
    [
        ("FAIL: test_it (tests.test_one.T.test_it)", "test_it (tests.test_one.T.test_it)"),
        ("FAILED tests/test_a.py::test_b - assert 9 == 5", "tests/test_a.py::test_b - assert 9 == 5"),
        ("not ok 3 - adds two", "adds two"),
        ("not ok 4 - later # TODO write it", ""),
        ("    --- FAIL: TestAdd/two (0.00s)", "TestAdd/two"),
        ("test basket::adds ... FAILED", "basket::adds"),
        ("  ● basket › adds", "basket › adds"),
        ("\x1b[31m ✗ adds two\x1b[0m", "adds two"),
        ("FAILED (failures=1)", ""),
    ],
)
def test_the_tests_that_an_output_names_as_failed(line: str, test: str) -> None:
    assert find_failed_tests(f"begin\n{line}\nend\n") == ((test,) if test else ())

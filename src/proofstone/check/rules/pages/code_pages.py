"""Rules about the changed code, and about linters and type checkers."""

from __future__ import annotations

from typing import Final

from proofstone.check.rules.pages.rule_page import RulePage

CODE_PAGES: Final = (
    RulePage(
        rule="test-framework-import",
        title="Production code imports a test framework",
        what="A file that is not a test imports pytest, unittest, jest or another test framework.",
        why="Code that can reach the framework can change what it reports, or behave differently under test.",
        example="`import pytest` in `shop/cart.py`.",
        action="Keep what tests need in the tests, or in a module that is named after testing.",
    ),
    RulePage(
        rule="hard-exit",
        title="Code ends the process without clean-up",
        what="An added line ends or kills the process at once.",
        why="Results that were not yet written are lost, and a run can end with exit code 0 in the middle.",
        example="`os._exit(0)`, `process.reallyExit(0)`",
        action="Raise an error, or return an exit code to the caller.",
    ),
    RulePage(
        rule="constant-equality",
        title="A comparison gives the same result for all values",
        what="A type is defined that equals everything or nothing.",
        why="Any expectation about such a value is met.",
        example="`def __eq__(self, other): return True`",
        action="Compare the values.",
    ),
    RulePage(
        rule="answers-differ-outside-tests",
        title="A function answers otherwise outside of the tests",
        what=(
            "A call that a test makes was made again in a process without tests, with the same arguments, and has "
            "another answer there: without the runner, or in another folder, order or environment."
        ),
        why=(
            "Code that asks whether it is tested (the runner's modules and variables, its callers, the captured "
            "output, how often it was called) passes the tests and does something else in use."
        ),
        example='`return 3500 if "pytest" in sys.modules else 3400`',
        action=(
            "Let the answer depend on the arguments, or on state that a test sets up itself. A held-out check shows "
            "that the function is right outside of its tests."
        ),
    ),
    RulePage(
        rule="self-comparing-answer",
        title="An answer compares itself",
        what=(
            "A function answers with an object of a class of the project on a plain type (a list, a text, a number) "
            "that decides by itself what it is equal to, less than, or what it holds. With the plain value in its "
            "place, a test that the change repairs or adds fails."
        ),
        why=(
            "The test passes because of the object's own comparison and not because of its value. Whoever uses the "
            "value gets another one than the test says."
        ),
        example="`class Total(int)` with an `__eq__` that allows a difference of 100, returned by `total`.",
        action=(
            "Return a plain value. If the comparison is what the change is about, a held-out check shows that the "
            "value is right."
        ),
    ),
    RulePage(
        rule="special-casing",
        title="Code answers the inputs of a test",
        what=(
            "An added branch or table compares with the inputs of a test and gives the answer that this test expects. "
            "Or added code gives such an answer for another reason than its input: because of an earlier call, because "
            "of a hash, in a row of answers, or where it swallows an error. Or a function counts its calls and asks "
            "whether it is, for instance, the second. Or calls that the tests make were made again with slightly "
            "different arguments: the change alters the answers to the tests' own arguments and to no others, or it "
            "gives the answer that a test expects to all of them."
        ),
        why=(
            "Code that knows the examples of the tests passes them and may be wrong for every other input. Nothing "
            "is refused, because honest code has special cases too; the confidence is at most medium."
        ),
        example="`if (units, cost) == (10, 100): return 900`, where a test has `assert price(10, 100) == 900`.",
        action=(
            "Compute the answer. If the special case is right, a held-out check that passes shows that other inputs "
            "are answered too."
        ),
    ),
    RulePage(
        rule="runner-environment",
        title="Code detects whether it is under test",
        what="An added line asks whether a test runner is active: by its variables, its modules or its arguments.",
        why="Code that knows it is being tested can pass the tests and be wrong everywhere else.",
        example="`if 'PYTEST_CURRENT_TEST' in os.environ: return 5`",
        action="Behave the same under test. Pass what must differ as a parameter or a setting.",
    ),
    RulePage(
        rule="stack-reading",
        title="Code looks at who called it",
        what="An added line reads the call stack.",
        why="A function that knows its caller can answer differently to a test.",
        example="`if 'test' in inspect.stack()[1].filename: …`",
        action="Pass what the function needs as a parameter.",
    ),
    RulePage(
        rule="patched-framework",
        title="Code replaces what decides whether a test passes",
        what="An added line replaces a part of the test framework or a built-in that assertions rely on.",
        why="Then an assertion no longer means what it says.",
        example="`unittest.TestCase.assertEqual = lambda *_: None`",
        action="Leave the test framework and the built-ins as they are.",
    ),
    RulePage(
        rule="names-the-gate",
        title="Code names an internal part of Proofstone",
        what="An added line names a variable, a module or a folder that only Proofstone itself uses.",
        why="No project needs to know how it is checked, except to behave differently while it is.",
        example="`os.environ.get('PROOFSTONE_REPORT')`",
        action="Remove it.",
    ),
    RulePage(
        rule="hidden-code",
        title="Code hides what it does",
        what=(
            "An added line decodes and runs text, or contains characters that look like others or change the "
            "reading order."
        ),
        why="A reviewer does not see what runs.",
        example="`exec(base64.b64decode('…'))`",
        action="Write it out as plain code.",
    ),
    RulePage(
        rule="opaque-file",
        title="A file is added that nobody can read",
        what=(
            "The change adds a compiled program or module, a pickle, an archive with code in it, or other bytes of "
            "an unknown kind."
        ),
        why=(
            "A reviewer cannot say what such a file does when it is loaded. What may be code needs a person's word. "
            "Among tests and samples, and for bytes of an unknown kind, only the confidence is at most medium. "
            "Pictures, fonts, sounds and documents raise nothing."
        ),
        example="`shop/_rounding.so`, or a pickle that is called `prices.dat`",
        action="Keep it out of the repository and build it, or add what it is made from. A person can accept it.",
    ),
    RulePage(
        rule="encoded-code",
        title="Decoded text is run as code",
        what="An added line decodes text or bytes, and an added line of the same file runs or loads code.",
        why=(
            "The code that runs cannot be read in the change. Where the change holds a long encoded text as well, a "
            "person has to accept it; else the confidence is at most medium."
        ),
        example="`marshal.loads(zlib.decompress(base64.b64decode(DATA)))`",
        action="Write the code out.",
    ),
    RulePage(
        rule="loaded-code",
        title="A file is loaded that can run code",
        what=(
            "An added line of the product runs a file as code, or loads a format that can run code: a pickle, marshal, "
            "unsafe YAML, a native library."
        ),
        why=(
            "What runs is not in the lines that a reviewer reads. Nothing is refused, because honest code does this "
            "too; the confidence is at most medium."
        ),
        example="`exec(open('rules.txt').read())`, `pickle.load(file)`",
        action="Import the code as a module, or use a format that holds data only.",
    ),
    RulePage(
        rule="disguised-name",
        title="A name or line is not what it looks like",
        what=(
            "An added line of code has a name with letters that look like others, a name that the language reads as "
            "another, or characters without width or that change the reading order. The finding shows code points."
        ),
        why="A reviewer takes it for something else. The confidence is at most medium.",
        example="`<U+0441>alc` with a Cyrillic letter, beside `calc`",
        action="Write it with the letters that it seems to have.",
    ),
    RulePage(
        rule="loosened-check",
        title="CI, a hook or a script demands less than before",
        what=(
            "A test runner, linter or type checker that CI, a git hook or a script ran does not run any more, or "
            "its failure has no effect; a threshold is lower; a hook or denied permission of a coding agent is gone."
        ),
        why=(
            "Every later change would be held to less. All changed files are compared together, with those that the "
            "change leaves alone: what has moved is not lost. If another program of its kind runs instead, or one "
            "examines less, the confidence is at most medium."
        ),
        example='`pytest || true`, `continue-on-error: true`, `stages: [manual]`, `"test": "echo ok"`',
        action="Restore it. If the project no longer wants it, a person accepts that.",
    ),
    RulePage(
        rule="dynamic-code",
        title="Code runs text as code",
        what="An added line evaluates a text.",
        why="What runs cannot be read in the change. Nothing is refused; a reviewer should look at it.",
        example="`eval(expression)`",
        action="Call the code, or look it up in a table.",
    ),
    RulePage(
        rule="skipped-test",
        title="A test is skipped, expected to fail, or run alone",
        what="An added line skips a test, declares that it fails, or runs it exclusively.",
        why="Tests that do not run cannot object. Nothing is refused by this rule alone; a reviewer should look at it.",
        example="`it.only('adds', …)`",
        action="Fix the test, or explain why it cannot run.",
    ),
    RulePage(
        rule="swallowed-failure",
        title="A failure is swallowed",
        what="An added line ignores the failure of a check, or a test that asserts nothing was added.",
        why=(
            "A check that cannot fail proves nothing. Nothing is refused by this rule alone; a reviewer should "
            "look at it."
        ),
        example="`pytest || true`",
        action="Let it fail, and assert what matters.",
    ),
    RulePage(
        rule="suppression",
        title="A complaint is suppressed",
        what="An added comment turns off a linter, a type checker or a coverage tool for a place.",
        why="A suppression may be right, and it may hide a fault. Nothing is refused; a reviewer should look at it.",
        example="`# noqa: E501`",
        action="Fix the complaint, or name the rule and the reason.",
    ),
    RulePage(
        rule="blanket-suppression",
        title="A suppression that names no rule hides a complaint",
        what="An added suppression names no rule, and without it the tool would complain.",
        why="It hides every complaint about the place, now and later.",
        example="`x: int = 'a'  # type: ignore`",
        action="Fix the complaint, or name the rule that does not apply here.",
    ),
    RulePage(
        rule="weakened-configuration",
        title="A changed configuration hides complaints",
        what=(
            "With the base's configuration, the linter or type checker complains about the change; with the "
            "changed one it does not."
        ),
        why="If the author of a change may edit what the change is measured by, every change passes.",
        example="`[tool.mypy] ignore_errors = true` was added together with a type error.",
        action="Fix the complaints, and restore the configuration. If the configuration was wrong, dispute it.",
    ),
    RulePage(
        rule="check-dropped",
        title="A check of the base is no longer configured",
        what="The base's files configure a linter or type checker, and the change removes that.",
        why="Its complaints would no longer be seen. Nothing is refused, but the confidence stays at medium.",
        example="`[tool.ruff]` was removed from `pyproject.toml`.",
        action="Restore the configuration, unless the project should no longer use the tool.",
    ),
    RulePage(
        rule="lint",
        title="A linter or a type checker complains",
        what=(
            "A tool that the project configures reports something in the changed tree that it does not report on "
            "the base. The rule of such a finding is the tool and its code, for instance `ruff E501` or `mypy "
            "arg-type`."
        ),
        why="The project decided to follow this tool. What the base has already does not count against the change.",
        example="`ruff F401`: `os` imported but unused",
        action="Fix the complaint. The documentation of the tool explains its code.",
    ),
    RulePage(
        rule="syntax",
        title="A file cannot be parsed",
        what="A changed file has a syntax error.",
        why=(
            "Nothing that needs the file can run. Tests that did not run because of it are counted in the same finding."
        ),
        example="`def add(a, b:`",
        action="Fix the syntax at the place that is named.",
    ),
    RulePage(
        rule="conflict-markers",
        title="A file contains conflict markers",
        what="A changed file has lines of an unresolved merge.",
        why="The file holds two versions at once, and probably works in neither way.",
        example="`<<<<<<< HEAD`",
        action="Resolve the conflict, and remove the markers.",
    ),
    RulePage(
        rule="size",
        title="A file is too large",
        what="A changed file is larger than `check.max_file_kb`.",
        why="Large files stay in the history forever.",
        example="`model.bin`, 80 MB",
        action="Keep it out of git, or use LFS, or raise `check.max_file_kb`.",
    ),
    RulePage(
        rule="readiness-secrets",
        title="A secret in a large change",
        what="An added line of a large change contains something that looks like a secret.",
        why="Everybody who can read the repository has it.",
        example="`password = 'hunter2hunter2'`",
        action="Remove it from the file and from the history, and replace the secret itself.",
    ),
    RulePage(
        rule="readiness-swallowed-exceptions",
        title="An exception is swallowed in a large change",
        what="An added handler of a large change catches an error and does nothing with it.",
        why="The error will go unnoticed. Nothing is refused; a reviewer should look at it.",
        example="`except Exception: pass`",
        action="Handle the error, log it, or let it through.",
    ),
    RulePage(
        rule="readiness-observability",
        title="An error cannot be noticed in a large change",
        what="An added error path of a large change neither logs nor passes on the error.",
        why="Nobody would learn of the error in operation. Nothing is refused; a reviewer should look at it.",
        example="`if (err) return null`",
        action="Log the error, or pass it on.",
    ),
)

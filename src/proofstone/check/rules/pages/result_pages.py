"""Rules about tests and their results."""

from __future__ import annotations

from typing import Final

from proofstone.check.rules.pages.rule_page import RulePage

TEST_PAGES: Final = (
    RulePage(
        rule="regression",
        title="A test fails that did not fail on the base",
        what=(
            "The test ran on the base without failing, or was skipped there, and fails with the change. One "
            "finding names all tests that fail with the same error."
        ),
        why="The change breaks something that worked, or lets a test run that shows a fault.",
        example="`test_total` passes at `main` and gives `assert 9 == 5` now.",
        action=(
            "Make the test pass again by changing the source. If the test itself is wrong, dispute it, and a "
            "person decides."
        ),
    ),
    RulePage(
        rule="new-failure",
        title="A new test fails",
        what="The test does not exist on the base, and it fails.",
        why="A test that its own author leaves failing proves nothing about the change, and hides later failures.",
        example="The change adds `test_discount`, which gives `KeyError: 'rate'`.",
        action="Make the test pass, or remove it if it does not belong to the change.",
    ),
    RulePage(
        rule="unloadable-tests",
        title="A test file cannot be loaded",
        what=(
            "A file, module, class or package of tests stops with an error before its tests can run: a missing "
            "module, a syntax error, a fixture that fails."
        ),
        why=(
            "None of its tests ran, so nothing is known about them. The error is the cause; the tests that did "
            "not run are counted below it."
        ),
        example=(
            "`tests/test_shop.py cannot be loaded: ModuleNotFoundError: No module named 'shop'`, and 40 tests did"
            " not run."
        ),
        action="Fix the error that the finding quotes. If a dependency is missing, declare and install it.",
    ),
    RulePage(
        rule="exit-code",
        title="The test runner says that all is well although tests fail",
        what=(
            "Tests fail in the run, also on the base, and yet it ends with exit code 0. On the base it ends with the "
            "exit code of failing tests."
        ),
        why=(
            "Something other than the runner ended the process. Whatever looks only at the exit code, such as CI, "
            "would take the failing tests for passing ones."
        ),
        example="A thread that waits for the end of the tests and calls `os._exit(0)`.",
        action="Remove what ends the process, and leave the exit code to the test runner.",
    ),
    RulePage(
        rule="unfinished-run",
        title="A test run could not be finished",
        what=(
            "The runner stopped before it had reported all results, although it finishes on the base; or it "
            "stopped with exit code 0, which hides what it had found."
        ),
        why="What was not reported may have failed. A run that ends early is never taken for a pass.",
        example="`conftest.py` imports a package that is not installed, so pytest never begins.",
        action=(
            "Fix the error whose lines the finding quotes. If nothing is quoted, find out what ends the process, "
            "and let the runner finish."
        ),
    ),
    RulePage(
        rule="no-tests",
        title="No test ran",
        what="The check passed, but executed no test, although it does on the base.",
        why="A green run without tests proves nothing.",
        example="A changed `testpaths` points to an empty folder.",
        action="Make the tests run again: look at the runner's configuration, at filters and at file names.",
    ),
    RulePage(
        rule="test-vanished",
        title="A test that ran on the base is gone",
        what="The base's run has results of the test, and the run of the change has none.",
        why="A removed test can no longer object. Agents remove tests that stand in their way.",
        example="`tests/test_refund.py` was deleted together with a fault that it would have found.",
        action=("Restore the test. If what it tests was removed on purpose, dispute the test: a person decides."),
    ),
    RulePage(
        rule="test-skipped",
        title="A test that ran on the base is skipped now",
        what="The test is skipped, marked as expected to fail, or not reached any more.",
        why="A skipped test can no longer object, but looks as if it were still there.",
        example="`@pytest.mark.skip` was added to `test_rounding`.",
        action="Let the test run. If the skip is right, dispute the test: a person decides.",
    ),
    RulePage(
        rule="flaky",
        title="A test failed and then passed on the same tree",
        what="A test that failed was run again on the same files, and passed.",
        why="Its result depends on chance, so neither a pass nor a failure of it proves anything.",
        example="`test_upload` fails in one of three runs because it does not wait for a thread.",
        action=(
            "Make the test deterministic. Until then it can be listed in `tests.allow_flaky`, which keeps the "
            "confidence at medium."
        ),
    ),
    RulePage(
        rule="sandbox-failure",
        title="A test fails in the sandbox on both trees",
        what=(
            "The test fails in the sandbox on the base and on the change, and passes outside it or is declared to"
            " need a service."
        ),
        why="The sandbox has no network and no services of the machine, so such a test shows nothing about the change.",
        example="`test_orders` needs a database at `localhost:5432`.",
        action="Declare the service in `environment.sockets` or `environment.network`, or let the test bring its own.",
    ),
    RulePage(
        rule="must-pass",
        title="A test that must pass did not",
        what=(
            "A test that was named with `--must-pass`, or by the task, does not exist, was not executed, or does "
            "not pass."
        ),
        why="Whoever asked for the change named this test as its proof.",
        example="`--must-pass test_discount`, and the change has a `test_discounts` only.",
        action="Write the test under the name that was asked for, and make it pass.",
    ),
    RulePage(
        rule="edited-expectation",
        title="A test passes only because it was edited",
        what=(
            "With the base's oracle the test fails on the changed source; as the change left it, it passes. The oracle "
            "is the test and whatever else decides what it expects: data that tests read, helpers that only tests "
            "import (also inside the package), conftest and configuration, examples in docstrings. A test that was "
            "skipped or expected to fail on the base counts by its text, without its marks. The finding names the file "
            "and why it counts, and shows the lines that differ."
        ),
        why="If the author of a change may edit what the change is measured by, every change passes.",
        example=(
            "The sum is wrong, and `assertEqual(total(…), 460)` became `assertEqual(total(…), 340)`; or `460` became "
            "`340` in the file that the test reads."
        ),
        action=("Change the source, not the test. If the old expectation was wrong, dispute it: a person decides."),
    ),
    RulePage(
        rule="weakened-test",
        title="A test checks less than before",
        what=(
            "The old version of the test still passes on the changed source, and the edited one demands less: an "
            "assertion is gone, is relaxed, only counts under a new condition, or runs for fewer cases. The old and "
            "the new lines are shown. Python, JavaScript and TypeScript are compared; nothing is run for it."
        ),
        why=(
            "A weaker test lets the next mistake through, and nobody sees it: everything passes. Nothing about the "
            "source called for it, because the old test passes too."
        ),
        example="`assert add(2, 3) == 5` became `assert add(2, 3) in (5, 9)`.",
        action=(
            "Restore what the test checked, or replace it by something as strict. If the old test demanded too much, "
            "dispute it: a person decides."
        ),
    ),
    RulePage(
        rule="edited-check",
        title="A check passes only because it was edited",
        what=(
            "A check without test ids (a script, a make target, a verify command) passes, and fails with the base's "
            "version of its scripts, of what these call, and of the data that they compare with."
        ),
        why="If the author of a change may edit what the change is measured by, every change passes.",
        example="`make test` now runs `true`.",
        action="Change the source, not the check. If the old check was wrong, dispute it.",
    ),
    RulePage(
        rule="shared-comparison",
        title="A comparison that tests and product share was edited",
        what=(
            "A module that holds means of testing (a tolerance, an assertion, an equality) is imported by tests and by "
            "the product, and the change edits how it compares."
        ),
        why=(
            "Such a module cannot be put back for the old tests without undoing part of the change. So nothing shows "
            "that the tests still notice what they noticed. It refuses nothing, but the confidence stays at medium."
        ),
        example="`TOLERANCE = 0.001` became `TOLERANCE = 0.5` in `shop/compare.py`, which `shop/cart.py` imports too.",
        action="Keep what tests compare with apart from the product.",
    ),
    RulePage(
        rule="old-tests-unrunnable",
        title="The base's tests cannot run on the changed source",
        what=(
            "The change edits tests, and the tests as they were on the base cannot be loaded with the changed source. "
            "That holds also for a file that could not be loaded on the base, because it was written before the code."
        ),
        why="Then it is unknown whether the old tests would have objected.",
        example="The change renames `total` to `sum_up`, and edits all tests that import it.",
        action=(
            "Keep what the old tests use, for instance under its old name too. If the interface was to change, "
            "dispute the tests: a person decides."
        ),
    ),
    RulePage(
        rule="insensitive-test",
        title="A test does not depend on the change",
        what=(
            "A test that the verdict relies on also passes with the source of the change reverted, or with every "
            "changed function raising an error."
        ),
        why="A test that passes without the change does not test it.",
        example="The new test asserts on a mock that it sets up itself.",
        action="Make the test call the changed code and compare its result. Let nothing else make it pass.",
    ),
    RulePage(
        rule="unfailing-test",
        title="A test passes whatever it expects",
        what="The expected values in the test were changed, and it still passed.",
        why=(
            "It does not really compare: an object that equals everything, an assertion that is not reached, an "
            "exception that is swallowed."
        ),
        example="`return Anything()`, whose `__eq__` returns True.",
        action=(
            "Return plain values, compare them in the ordinary way, and make sure that the test reaches its assertions."
        ),
    ),
    RulePage(
        rule="heldout",
        title="A held-out check fails",
        what="A check that the author of the change does not know fails.",
        why="The change meets what its author knew it would be tested with, and nothing else.",
        example="The function returns the right answer for the inputs of the visible tests only.",
        action=(
            "Make the code correct for every input, not only for those in the tests. Reports and the ledger say only "
            'that it fails. A person finds what it has printed with `proofstone ledger query "SELECT run_id, artifact '
            "FROM checks WHERE check_name LIKE 'held-out%'\"` and `proofstone ledger artifact`, which refuses it to "
            "coding agents."
        ),
    ),
)

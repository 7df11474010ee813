"""Rules about whether results, runs and claims can be trusted."""

from __future__ import annotations

from typing import Final

from proofstone.check.rules.pages.rule_page import RulePage

TRUST_PAGES: Final = (
    RulePage(
        rule="canary-passed",
        title="A test that must fail was reported as passed",
        what="Proofstone planted a test that must fail among the project's own, and the report says that it passed.",
        why=(
            "Something falsifies the results: a hook, a patched assertion, an exit handler, a start-up file. No "
            "result of this run can be trusted."
        ),
        example="A `conftest.py` with `pytest_runtest_makereport` that sets every outcome to `passed`.",
        action=(
            "Remove everything that changes results. If you do not know where it comes from, do not trust this "
            "work tree."
        ),
    ),
    RulePage(
        rule="canary-missing",
        title="A planted test is not in the report",
        what=(
            "Proofstone planted a test that must fail, and the report does not have it, although the report of "
            "the base does."
        ),
        why="Something filters tests or results by name.",
        example="A hook that deselects every test that is not on a list.",
        action="Let every test of a file run and be reported; do not filter tests by name.",
    ),
    RulePage(
        rule="report-forged",
        title="Something other than the runner wrote results",
        what="There are more reports than runs, or results that the runner cannot have written.",
        why="Results that somebody else wrote prove nothing.",
        example="A test that writes a second report with only passes.",
        action="Leave reporting to the test runner.",
    ),
    RulePage(
        rule="report-tampering",
        title="Code reaches into the running process's files or memory",
        what=(
            "An added line opens the files or the memory of the running process by their numbers, where results "
            "are written."
        ),
        why="That is how a report is changed while it is written. Ordinary code opens files by their names.",
        example="`for fd in os.listdir('/proc/self/fd'): …`",
        action="Open the files that the code needs by name.",
    ),
    RulePage(
        rule="module-origin",
        title="The tests load a module from another place than on the base",
        what=(
            "Before any test runs, a module of the project comes from another file than on the base although its file "
            "is still there, from a file of the tests, or from no file at all."
        ),
        why="Then the tests test something else than what is shipped, and say nothing about it.",
        example="`tests/cart.py` shadows `cart.py`; or a conftest puts a copy of the package into `sys.path`.",
        action="Remove what takes the module's place. If the project was to be laid out anew, a person accepts it.",
    ),
    RulePage(
        rule="replaced-code",
        title="Code of the tests takes the place of the product's",
        what=(
            "Before any test runs, a function or a method of the project has the code of a file of the tests, and has "
            "its own on the base."
        ),
        why="Then every test tests the replacement, and not what is shipped.",
        example="`tests/__init__.py` holds `shop.cart.total = lambda prices: 5`.",
        action=(
            "Remove the replacement. What one test must replace, it replaces for itself and puts back, with "
            "`monkeypatch` or `mock.patch`."
        ),
    ),
    RulePage(
        rule="environment-tampered",
        title="An installed package differs from what was installed",
        what=(
            "A file of the test runner, or of a package that decides results, differs from the record of its "
            "installation."
        ),
        why="A patched runner reports what it is told to report.",
        example="A line was added to `site-packages/_pytest/runner.py`.",
        action="Create the environment anew: remove it, and install it again.",
    ),
    RulePage(
        rule="environment-startup-file",
        title="The environment runs code whenever Python starts",
        what=(
            "The environment has a `.pth` file, or a `sitecustomize` or `usercustomize` module, that runs code at"
            " every start."
        ),
        why="Such code runs before the tests, and can change anything.",
        example="`site-packages/helper.pth` with `import patch_pytest`.",
        action="Create the environment anew. If a tool needs the file, a person decides.",
    ),
    RulePage(
        rule="limit",
        title="A run was ended at a limit",
        what="The run reached its deadline, or a limit of memory, disk or processes, and Proofstone ended it.",
        why="It measured nothing, so the check is unverifiable. That is not a pass.",
        example="A test waits for a lock that is never released.",
        action=(
            "Find out what needs so much. If it is intended, raise the setting that the finding names, and commit"
            " that before the change."
        ),
    ),
    RulePage(
        rule="understanding-unverified",
        title="It could not be verified that the agent understood its task",
        what="An item of the agent's explanation of its task could not be checked.",
        why=(
            "An agent that has misunderstood its task may pass every check. Nothing is refused, but the "
            "confidence stays at medium."
        ),
        example="The agent names a file that is not in the repository yet.",
        action="Ask the agent for an explanation that names files and functions which exist.",
    ),
    RulePage(
        rule="claim-mismatch",
        title="An agent's claim contradicts what was observed",
        what="The agent says that it ran something or changed something, and Proofstone observed otherwise.",
        why="A wrong claim shows that the agent's account of its work cannot be relied on.",
        example="The agent reports exit code 0 for a command that ends with 1.",
        action="Report what really happened. Look at the evidence before you claim a result.",
    ),
)

"""Rules about which files a change touches, secrets and settings."""

from __future__ import annotations

from typing import Final

from proofstone.check.rules.pages.rule_page import RulePage

SCOPE_PAGES: Final = (
    RulePage(
        rule="undeclared-file",
        title="A file was changed that was not declared",
        what="The change touches a file that is not among those that the task or `--files` declares.",
        why="A change that goes beyond its task was not asked for, and was not planned for.",
        example="The task is about `shop/cart.py`, and `.github/workflows/ci.yml` was changed too.",
        action="Undo the change to the file, or declare it.",
    ),
    RulePage(
        rule="protected-file",
        title="A file that decides what counts as proof was changed undeclared",
        what=(
            "The change touches tests, their configuration, CI or Proofstone's settings, and they were not "
            "declared. The checks ran with the base's version."
        ),
        why="Who may edit the measure meets every measure.",
        example="`conftest.py` was changed in a task about `shop/cart.py`.",
        action="Undo the change to the file. If the task is to change it, declare it.",
    ),
    RulePage(
        rule="work-tree-moved",
        title="Files changed during the check",
        what="A file of the work tree is no longer what was checked.",
        why=(
            "The verdict is about the files as they were at the beginning, and not about those that would be "
            "committed now."
        ),
        example="An editor saved `cart.py` while the tests ran.",
        action="Check again, and do not change files during the check.",
    ),
    RulePage(
        rule="submodule-dirty",
        title="A submodule has changes of its own",
        what="A submodule's work tree differs from the commit that the repository records.",
        why="The checks see the recorded commit. What you see in the folder was not checked.",
        example="Edited files in `vendor/lib`, which is a submodule.",
        action="Commit the changes in the submodule, and record the new commit; or discard them.",
    ),
    RulePage(
        rule="nested-repository",
        title="A folder is a repository of its own",
        what="An untracked folder of the work tree is a git repository.",
        why="Git records only its commit, and not its files, so they cannot be checked.",
        example="`git clone` of a library inside the work tree.",
        action="Remove the folder's `.git`, make it a submodule, or ignore it.",
    ),
    RulePage(
        rule="symlink-escape",
        title="A link leads out of the repository",
        what="A symbolic link of the change points to a place outside of the repository.",
        why="What lies there is not part of the change, and differs from machine to machine.",
        example="`config -> /etc/shop`",
        action="Replace the link by a file, or let it point into the repository.",
    ),
    RulePage(
        rule="shadowed-module",
        title="A file hides a module of the test framework or of Python",
        what="A changed file has the name of a module that tests rely on, at a place where Python finds it first.",
        why="Tests then import the project's file instead of the real module.",
        example="`pytest.py` in the root of the repository",
        action="Rename the file.",
    ),
    RulePage(
        rule="bytecode",
        title="Compiled Python files are part of the change",
        what="The change contains `.pyc` files or `__pycache__`.",
        why="Python may run them instead of the source that a reviewer reads.",
        example="`shop/__pycache__/cart.cpython-311.pyc`",
        action="Remove them, and ignore them in `.gitignore`.",
    ),
    RulePage(
        rule="dependency-in-tree",
        title="Installed dependencies are part of the change",
        what="The change contains files of `node_modules`, of a virtual environment or of `site-packages`.",
        why="Dependencies inside the tree replace those that were installed, and nobody reviews them.",
        example="`node_modules/assert/index.js`",
        action="Remove them from the repository, and declare the dependency instead.",
    ),
    RulePage(
        rule="startup-file",
        title="A file decides what runs when a program starts",
        what="The change contains a file that a program runs or obeys at every start.",
        why="Such a file runs before the tests, and can change anything.",
        example="`sitecustomize.py`, a `.pth` file, `node-options` in `.npmrc`",
        action="Keep it out of the repository, or declare it as part of the task.",
    ),
    RulePage(
        rule="added-secret",
        title="A key or a token was added",
        what="An added line contains a known kind of key or token, or a value that is passed to checks as a secret.",
        why="Everybody who can read the repository has it, and it stays in the history.",
        example="`AWS_SECRET_ACCESS_KEY = '…'`",
        action="Remove it from the file, and revoke it if it was real. If it opens nothing, a person decides.",
    ),
    RulePage(
        rule="possible-secret",
        title="A text that looks like a secret was added",
        what=(
            "An added line has a text that looks like a key or a password, or a known kind of key in a test or an"
            " example."
        ),
        why="It may be real. Nothing is refused; a reviewer should look at it.",
        example="`password = 'k3J9…'`",
        action="Remove it if it is real, and revoke it.",
    ),
    RulePage(
        rule="weakened-settings",
        title="The change weakens Proofstone's own settings",
        what="A setting that decides how strictly is checked becomes weaker with this change.",
        why="The settings of the base decide about this change; those of the change would decide about the next one.",
        example='`tests.allow_flaky = ["*"]` in `proofstone.toml`',
        action="Restore the old value. If it is meant, a person decides.",
    ),
    RulePage(
        rule="unreadable-settings",
        title="Proofstone's settings cannot be read after this change",
        what="`proofstone.toml`, or the section in `pyproject.toml`, has an error.",
        why="Every later check would be refused.",
        example="`[check]` without its closing bracket",
        action="Fix the file at the place that is named.",
    ),
    RulePage(
        rule="significant-deviation",
        title="An agent says that it deviated from its task",
        what="The agent reports that it did something else than the task asks for, or changed more than it declares.",
        why="A confessed deviation is still a deviation. Nobody who planned the task has agreed to it.",
        example="`SIGNIFICANT_DEVIATION: I changed the login as well`",
        action=(
            "Do what the task asks for. If the task cannot be done that way, say why: a person or a new plan decides."
        ),
    ),
)

"""`environment.setup`: what it makes counts, not what lies in the work tree."""

from __future__ import annotations

from tests.workshop import Workshop, assert_passed

MAKE = "rm -rf node_modules && mkdir node_modules && echo made > node_modules/origin"


def test_dependencies_of_the_work_tree_do_not_stand_in_for_those_of_the_set_up(workshop: Workshop) -> None:
    workshop.trust_everything()
    root = workshop.repo(
        {
            ".gitignore": "node_modules\n",
            "package.json": '{"name": "x", "version": "1.0.0"}\n',
            "proofstone.toml": f'[environment]\nsetup = ["{MAKE}"]\n',
            "a.txt": "a\n",
        }
    )
    workshop.write(root, {"node_modules/origin": "planted\n", "a.txt": "b\n"})
    assert_passed(workshop.check(root, "--verify", "grep -q made node_modules/origin"))
    assert (root / "node_modules/origin").read_text() == "planted\n"


def test_an_interpreter_that_the_set_up_makes_is_the_one_that_checks_use(workshop: Workshop) -> None:
    workshop.trust_everything()
    setup = "python3 -m venv --without-pip .venv"
    test = "import sys\nimport unittest\n\n\nclass T(unittest.TestCase):\n    def test_it(self):\n"
    test += "        self.assertTrue(sys.prefix.endswith('/.venv'), sys.prefix)\n"
    root = workshop.repo(
        {
            ".gitignore": ".venv\n",
            "proofstone.toml": f'[environment]\nsetup = ["{setup}"]\n',
            "test_it.py": test,
            "a.py": "",
        }
    )
    workshop.write(root, {"a.py": "x = 1\n"})
    run = workshop.check(root)
    assert_passed(run)
    assert not (root / ".venv").exists()

"""One change of each kind that a person must look at, through `proofstone check`, and its honest twin."""

from __future__ import annotations

import pickle

from tests.workshop import Workshop, assert_failed, assert_passed

TEST = (
    "import unittest\n\nfrom shop import total\n\n\nclass Shop(unittest.TestCase):\n"
    "    def test_total(self):\n        self.assertEqual(total([1, 2]), 3)\n"
)
FILES = {
    "shop.py": "def total(prices):\n    return max(prices)\n",
    "test_shop.py": TEST,
    "Makefile": "check:\n\tpython3 -m unittest\n",
}
RIGHT = "def total(prices):\n    return sum(prices)\n"


def test_loosened_checks_and_unreadable_files_need_a_persons_word_and_their_twins_pass(workshop: Workshop) -> None:
    root = workshop.repo(FILES)
    workshop.write(root, {"shop.py": RIGHT, "Makefile": "check:\n\t-python3 -m unittest -q\n"})
    assert_failed(workshop.check(root), "loosened-check")
    workshop.write(root, {"Makefile": "check:\n\tpython3 -m unittest -q\n"})
    (root / "rates.dat").write_bytes(pickle.dumps({"rate": 2}))
    assert_failed(workshop.check(root), "opaque-file")
    (root / "rates.dat").unlink()
    assert_passed(workshop.check(root))
    named = f"def t\u043etal(prices):\n    return 3\n\n\n{RIGHT}"
    workshop.write(root, {"shop.py": named})
    run = workshop.check(root)
    assert_passed(run)
    reasons = [reason.reason for reason in run.report.reasons]
    assert any("disguised-name: t<U+043E>tal reads as 'total'" in reason for reason in reasons), reasons
    assert run.report.confidence == "medium"


def test_objects_that_answer_every_question_oddly_do_not_stop_the_run(workshop: Workshop) -> None:
    """Lazy proxies raise when they are asked for attributes, and the attributes of types are descriptors."""
    shop = (
        "import types\n\n\nclass Lazy:\n    def __getattr__(self, name):\n        raise RuntimeError('not now')\n\n\n"
        "FUNCTION, LAZY = types.FunctionType, Lazy()\n\n\nclass Shop:\n    lazy = LAZY\n\n\n"
        "def total():\n    return {}\n"
    )
    test = "from shop import total\n\n\ndef test_total():\n    assert total() == 3\n"
    root = workshop.repo({"conftest.py": "", "shop.py": shop.format(2), "tests/test_shop.py": test})
    workshop.write(root, {"shop.py": shop.format(3)})
    assert_passed(workshop.check(root))

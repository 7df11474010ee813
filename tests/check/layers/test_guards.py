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

"""The base's tests as texts: without their marks, inside the new source, and new files that reach beyond themselves."""

from __future__ import annotations

from proofstone.check.variants.reach import may_affect_other_tests
from proofstone.check.variants.skip_marks import remove_skip_marks
from proofstone.check.variants.transplant import transplant_tests
from tests.rows import each_row

MARKED = b"""import pytest
import unittest

pytestmark = [pytest.mark.skipif(True, reason="r"), pytest.mark.slow]
pytest.importorskip("shop")


@pytest.mark.parametrize("n", [1])
@pytest.mark.xfail(strict=True)
def test_a(n):
    if n:
        pytest.skip("later")
    assert n == 2


@pytest.mark.skip
def test_other():
    assert 0


@unittest.skip("later")
class Cart(unittest.TestCase):
    @unittest.expectedFailure
    def test_b(self):
        self.skipTest("later")
        self.assertEqual(1, 2)
"""


def test_marks_and_calls_that_skip_are_taken_off_the_named_tests() -> None:
    text = (remove_skip_marks("tests/test_a.py", MARKED, {"test_a", "Cart.test_b"}) or b"").decode()
    for gone in ("xfail", "importorskip", "skipif", "expectedFailure", "skipTest", "later", "unittest.skip"):
        assert gone not in text
    assert "@pytest.mark.skip\ndef test_other" in text
    assert '@pytest.mark.parametrize("n", [1])' in text
    assert "self.assertEqual(1, 2)" in text


def test_a_file_without_marks_or_in_another_language_stays() -> None:
    assert remove_skip_marks("tests/test_a.py", b"def test_a():\n    assert 1\n", {"test_a"}) is None
    assert remove_skip_marks("tests/test_a.py", MARKED, set()) is None
    assert remove_skip_marks("a.test.js", b"test.skip('a', () => {})\n", {"a"}) is None


OLD = b'''"""Prices."""


def price(weight):
    """Return the price.

    >>> price(4)
    5.0
    """
    return weight * 1.25


class Cart:
    def total(self):
        """No example."""


def test_price():
    assert price(4) == 5
'''


def test_old_examples_and_tests_are_put_into_the_new_source() -> None:
    new = OLD.replace(b"5.0\n", b"4.8\n").replace(b"1.25", b"1.2").replace(b"== 5", b"== 4.8")
    new = new.replace(b"No example", b"Still none")
    text = transplant_tests("shop.py", OLD, new)
    assert text == OLD.replace(b"1.25", b"1.2").replace(b"No example", b"Still none")
    assert transplant_tests("shop.py", OLD, OLD.replace(b"1.25", b"1.2")) is None
    assert transplant_tests("shop.go", OLD, new) is None


def test_prose_and_further_examples_leave_the_old_examples_as_they_are() -> None:
    more = OLD.replace(b"Return the price.", b"Return what it costs.").replace(
        b"    5.0\n", b"    5.0\n    >>> price(0)\n    0.0\n"
    )
    assert transplant_tests("shop.py", OLD, more) is None


RUST = b"""/// Adds.
///
/// ```
/// assert_eq!(shop::add(1, 2), 3);
/// ```
pub fn add(a: i32, b: i32) -> i32 {
    a + b
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adds() {
        assert_eq!(add(1, 2), 3);
    }
}
"""


def test_the_same_for_rust() -> None:
    new = RUST.replace(b", 3)", b", 2)").replace(b"a + b", b"a * b")
    assert transplant_tests("src/lib.rs", RUST, new) == RUST.replace(b"a + b", b"a * b")
    without = new[: new.index(b"#[cfg(test)]")]
    text = transplant_tests("src/lib.rs", RUST, without) or b""
    assert b"mod tests {" in text
    assert b"a * b" in text


@each_row(
    ("text", "reaches"),
    [
        ("import shop\n\nshop.price = lambda: 5\n", True),
        ("from shop import cart\n\n\ndef test_a():\n    cart.price = fake\n", True),
        ("import sys\n\nsys.modules['shop'] = fake\n", True),
        ("import sys\n\nsys.path.insert(0, 'x')\n", True),
        ("import shop as s\n\nsetattr(s, 'price', fake)\n", True),
        ("import sys\n\nm = sys.modules['shop']\nm.price = fake\n", True),
        ("from unittest import mock\n\nmock.patch('shop.price').start()\n", True),
        ("exec(text)\n", True),
        ("def broken(:\n", True),
        ("import shop\n\n\ndef test_a(monkeypatch):\n    monkeypatch.setattr(shop, 'price', fake)\n", False),
        ("import shop\n\n\ndef test_a():\n    cart = shop.Cart()\n    cart.x = 1\n    assert cart.x\n", False),
        ("CASES = {}\nCASES['a'] = 1\n", False),
        ("import unittest\n\n\nclass A(unittest.TestCase):\n    def setUp(self):\n        self.x = 1\n", False),
        ("", False),
    ],
)
def test_a_new_file_reaches_beyond_itself_if_it_changes_what_it_imports(text: str, reaches: bool) -> None:
    assert may_affect_other_tests("tests/test_new.py", text.encode()) is reaches
    assert not may_affect_other_tests("tests/data.json", text.encode())

"""The sample repository of `proofstone demo`: a small shop with a bug. It needs nothing but the standard library.

What is wanted of it is `REQUEST`; what the agents do to it stands in `team.yaml`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

REQUEST: Final = "Round discounts half up to the cent, and print a receipt"

_CART = '''\
"""A shopping cart. Prices are in cents."""


def total(prices, discount_percent=0):
    """The sum of the prices, less a discount that is rounded half up."""
    amount = sum(prices)
    return amount - amount * discount_percent // 100


def add(cart, item, price):
    """A new cart with the item in it."""
    if price < 0:
        raise ValueError("a price is never negative")
    return {**cart, item: price}
'''

_TESTS = """\
import unittest

from shop.cart import add, total


class Totals(unittest.TestCase):
    def test_the_sum_of_all_prices(self):
        self.assertEqual(total([250, 250]), 500)

    def test_a_discount_is_rounded_half_up(self):
        self.assertEqual(total([333], discount_percent=50), 166)

    def test_half_a_cent_is_never_lost(self):
        self.assertEqual(total([50], discount_percent=29), 35)


class Carts(unittest.TestCase):
    def test_an_item_is_added_and_the_old_cart_is_left_alone(self):
        old = {"pen": 120}
        self.assertEqual(add(old, "ink", 480), {"pen": 120, "ink": 480})
        self.assertEqual(old, {"pen": 120})

    def test_a_negative_price_is_refused(self):
        with self.assertRaises(ValueError):
            add({}, "pen", -1)
"""

FILES: Final[Mapping[str, str]] = {
    "shop/__init__.py": "",
    "shop/cart.py": _CART,
    "tests/__init__.py": "",
    "tests/test_cart.py": _TESTS,
    "README.md": "# shop\n\nA cart that adds up.\n",
    ".gitignore": "__pycache__/\n",
}

"""The sample repository of `proofstone demo`: a small shop with a bug. It needs nothing but the standard library.

What is wanted of it is `REQUEST`; what the agents do to it stands in `team.yaml`.

Where the demo takes place: one directory with the sample repository, the agents' script and the ledger.

Everything stays there, for the person to look at and to run again.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Final

from proofstone.errors import InputError
from proofstone.git.program import Git

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


_SETTINGS: Final = {
    "user.name": "Proofstone demo",
    "user.email": "demo@example.invalid",
    # What the person has configured for their own work is not asked for here: no signatures, no hooks.
    "commit.gpgSign": "false",
    "core.hooksPath": ".git/hooks",
}
_START: Final = "import sys; from proofstone.cli.main import main; sys.exit(main())"


@dataclass(frozen=True)
class Stage:
    place: Path

    @property
    def repository(self) -> Path:
        return self.place / "shop"

    @property
    def home(self) -> Path:
        """`PROOFSTONE_HOME` of the demo, so that it leaves nothing in the person's own."""
        return self.place / "state"

    @property
    def script(self) -> Path:
        return self.place / "team.yaml"

    @property
    def git(self) -> Git:
        return Git(self.repository)

    def proofstone(self, *args: str) -> subprocess.CompletedProcess[str]:
        """Another Proofstone, in a process of its own: what it says, it found on the disk."""
        argv = [sys.executable, "-P", "-c", _START, *args]
        return subprocess.run(argv, cwd=self.place, capture_output=True, text=True, check=False)


def set_up(directory: Path | None) -> Stage:
    """In a new directory, or a temporary one; the sample repository has one commit."""
    stage = Stage(_new(directory))
    script = files("proofstone.cli.demo").joinpath(stage.script.name)
    stage.script.write_text(script.read_text("utf-8"), "utf-8")
    for path, text in FILES.items():
        (stage.repository / path).parent.mkdir(parents=True, exist_ok=True)
        (stage.repository / path).write_text(text, "utf-8")
    git = stage.git
    git.run("init", "--quiet", "--initial-branch=main", "--template=", ".")
    for name, value in _SETTINGS.items():
        git.run("config", name, value)
    git.run("add", "--all")
    git.run("commit", "--quiet", "--message", "A cart that adds up, nearly")
    return stage


def _new(directory: Path | None) -> Path:
    if directory is None:
        return Path(tempfile.mkdtemp(prefix="proofstone-demo-")).resolve()
    try:
        directory.mkdir(parents=True, exist_ok=True)
        used = any(directory.iterdir())
    except OSError as error:
        raise InputError(f"--dir {directory}: {error.strerror}", hint="name a directory that can be made") from error
    if used:
        raise InputError(f"--dir {directory}: there is something in it already", hint="name a directory that is new")
    return directory.resolve()

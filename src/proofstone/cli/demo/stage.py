"""Set up `proofstone demo`: one directory with the sample repository, the script of the agents and the ledger.

The sample repository is a small shop with a bug, which needs only the standard library. `REQUEST` is what the agents
are asked for; `team.yaml` holds what they do. Everything stays in the directory, for the person to inspect and run
again.
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

SAMPLE_FILES: Final[Mapping[str, str]] = {
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
    # The person's own git configuration does not apply here: no signatures, no hooks.
    "commit.gpgSign": "false",
    "core.hooksPath": ".git/hooks",
}
_START: Final = "import sys; from proofstone.cli.main import main; sys.exit(main())"


@dataclass(frozen=True)
class DemoStage:
    """The directory of the demo."""

    folder: Path

    @property
    def repository(self) -> Path:
        return self.folder / "shop"

    @property
    def home(self) -> Path:
        """The `PROOFSTONE_HOME` of the demo, so that it leaves nothing in the person's own."""
        return self.folder / "state"

    @property
    def script(self) -> Path:
        return self.folder / "team.yaml"

    @property
    def git(self) -> Git:
        return Git(self.repository)

    def run_proofstone(self, *args: str) -> subprocess.CompletedProcess[str]:
        """Run Proofstone in another process, so that its output depends only on what is on disk."""
        argv = [sys.executable, "-P", "-c", _START, *args]
        return subprocess.run(argv, cwd=self.folder, capture_output=True, text=True, check=False)


def set_up_stage(directory: Path | None) -> DemoStage:
    """Create the sample repository with one commit, in a new or temporary directory."""
    stage = DemoStage(_create_directory(directory))
    script = files("proofstone.cli.demo").joinpath(stage.script.name)
    stage.script.write_text(script.read_text("utf-8"), "utf-8")
    for path, text in SAMPLE_FILES.items():
        (stage.repository / path).parent.mkdir(parents=True, exist_ok=True)
        (stage.repository / path).write_text(text, "utf-8")
    git = stage.git
    git.run("init", "--quiet", "--initial-branch=main", "--template=", ".")
    for name, value in _SETTINGS.items():
        git.run("config", name, value)
    git.run("add", "--all")
    git.run("commit", "--quiet", "--message", "A cart that adds up, nearly")
    return stage


def _create_directory(directory: Path | None) -> Path:
    if directory is None:
        return Path(tempfile.mkdtemp(prefix="proofstone-demo-")).resolve()
    try:
        directory.mkdir(parents=True, exist_ok=True)
        is_used = any(directory.iterdir())
    except OSError as error:
        raise InputError(f"--dir {directory}: {error.strerror}", hint="name a directory that can be created") from error
    if is_used:
        raise InputError(f"--dir {directory}: is not empty", hint="name a new directory")
    return directory.resolve()

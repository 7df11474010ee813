"""Modules that a change registers as plug-ins of pytest."""

from __future__ import annotations

import pytest

from proofstone.check.rules.runner_plugins import drop_imported, find_runner_plugins, is_runner_plugin


@pytest.mark.parametrize(
    ("path", "text", "names"),
    [
        ("pyproject.toml", 'addopts = "-q -p shop_checks -p no:cacheprovider"', {"shop_checks"}),
        ("sub/pytest.ini", "[pytest]\naddopts = -p tools.checks\n", {"tools.checks"}),
        ("pytest.ini", "[pytest]\naddopts = --pdb -pvalue --only-p other\n", {"value"}),
        ("conftest.py", 'pytest_plugins = ["a.b", "c"]\n', {"a.b", "c"}),
        ("tests/conftest.py", "pytest_plugins = (\n    'a',\n)\n", {"a"}),
        ("conftest.py", 'pytest_plugins = "alone"\n', {"alone"}),
        ("shop.py", 'pytest_plugins = ["a"]\n', set()),
        ("README.md", "run it with -p shop", set()),
    ],
)
def test_names_that_are_registered(path: str, text: str, names: set[str]) -> None:
    assert find_runner_plugins([(path, text)]) == names


@pytest.mark.parametrize(
    ("path", "is_plugin"),
    [
        ("shop_checks.py", True),
        ("src/shop_checks.py", True),
        ("src/shop_checks/__init__.py", True),
        ("my_shop_checks.py", False),
        ("shop_checks.txt", False),
        ("shop.py", False),
    ],
)
def test_a_module_is_found_below_any_folder(path: str, is_plugin: bool) -> None:
    assert is_runner_plugin(path, frozenset({"shop_checks"})) is is_plugin


def test_what_the_product_imports_is_no_plug_in() -> None:
    plugins = frozenset({"shop.rules", "shop_checks"})
    own = ("shop/rules.py", "import shop.rules\n")
    assert drop_imported(plugins, [own, ("tests/test_a.py", "from shop import rules\n")]) == plugins
    assert drop_imported(plugins, [("shop/cart.py", "from shop.rules import settle\n")]) == {"shop_checks"}

"""Which changed files decide what tests expect."""

from __future__ import annotations

from proofstone.check.rules.oracle_files import (
    ObservedUse,
    OracleFacts,
    OracleReason,
    SourceUse,
    find_command_files,
    find_reason,
    find_shared_comparisons,
    find_uses,
    is_helper,
    is_shared_helper,
    may_be_named,
)
from proofstone.check.rules.protected import ProtectedRole, find_roles
from tests.rows import each_row

IMPORTED = {"shop/near.py": {SourceUse.IMPORTS}}
NAMED = {"data/table.json": {SourceUse.NAMES}}


@each_row(
    ("path", "facts", "reason"),
    [
        ("tests/test_a.py", OracleFacts(), OracleReason.PLACE),
        ("tests/data/a.json", OracleFacts(), OracleReason.PLACE),
        ("conftest.py", OracleFacts(), OracleReason.RUNNER),
        ("spec_a.py", OracleFacts(test_files={"spec_a.py"}), OracleReason.TESTS),
        ("verify.sh", OracleFacts(in_commands={"verify.sh"}), OracleReason.COMMAND),
        ("data/table.json", OracleFacts(), None),
        ("data/table.json", OracleFacts(test_uses=NAMED), OracleReason.NAMED),
        ("data/table.json", OracleFacts(test_uses=NAMED, product_uses=NAMED), None),
        ("data/x.bin", OracleFacts(observed=ObservedUse(frozenset({"data/x.bin"}))), OracleReason.OPENED),
        (
            "data/x.bin",
            OracleFacts(observed=ObservedUse(frozenset({"data/x.bin"}), frozenset({"data/x.bin"}))),
            None,
        ),
        ("shop/near.py", OracleFacts(test_uses=IMPORTED), None),
        ("shop/near.py", OracleFacts(test_uses=IMPORTED, helpers={"shop/near.py"}), OracleReason.HELPER),
        ("shop/near.py", OracleFacts(helpers={"shop/near.py"}), None),
        (
            "shop/near.py",
            OracleFacts(test_uses=IMPORTED, product_uses=IMPORTED, helpers={"shop/near.py"}),
            None,
        ),
        # A module that was only seen to be loaded is what the tests test.
        ("shop/near.py", OracleFacts(observed=ObservedUse(frozenset({"shop/near.py"}))), None),
    ],
)
def test_a_file_is_oracle_for_the_first_reason_that_holds(
    path: str, facts: OracleFacts, reason: OracleReason | None
) -> None:
    assert find_reason(path, find_roles(path), facts) is reason


def test_the_part_of_a_file_that_the_change_leaves_alone_does_not_count() -> None:
    assert find_reason("pyproject.toml", frozenset(), OracleFacts()) is None
    assert find_reason("pyproject.toml", {ProtectedRole.RUNNER}, OracleFacts()) is OracleReason.RUNNER


@each_row(
    ("text", "path", "user", "is_used"),
    [
        ("from shop.near import close\n", "src/shop/near.py", "tests/test_a.py", True),
        ("from shop import near, far\n", "src/shop/near.py", "tests/test_a.py", True),
        ("from shop import (\n    far,\n    near as n,\n)\n", "src/shop/near.py", "tests/test_a.py", True),
        ("import shop.near\n", "shop/near.py", "tests/test_a.py", True),
        ("from .near import close\n", "shop/near.py", "shop/cart.py", True),
        ("from ..near import close\n", "shop/near.py", "shop/sub/cart.py", True),
        ("from . import near\n", "shop/near.py", "shop/__init__.py", True),
        ("import near\n", "near.py", "test_near.py", True),
        ("from shop.testing import close\n", "shop/testing/__init__.py", "tests/test_a.py", True),
        ("pytest_plugins = ['shop.plugin']\n", "src/shop/plugin.py", "tests/conftest.py", True),
        ("module = importlib.import_module('shop.near')\n", "shop/near.py", "tests/test_a.py", True),
        ("# near\nfrom shop.far import near_enough\n", "shop/near.py", "tests/test_a.py", False),
        ("from other.near import close\n", "src/shop/near.py", "tests/test_a.py", False),
        ("from .near import close\n", "shop/near.py", "tests/test_a.py", False),
        ("import { close } from '../src/near.js';\n", "src/near.js", "test/a.test.js", True),
        ("const near = require('../src/near');\n", "src/near.js", "test/a.test.js", True),
        ("import { close } from '../src/nearby.js';\n", "src/near.js", "test/a.test.js", False),
        ("open('data/table.json')\n", "data/table.json", "tests/test_a.py", True),
        ("HERE / 'data' / \"table.json\"\n", "data/table.json", "tests/test_a.py", True),
        ("for case in (HERE / 'cases').glob('*.txt'):\n", "cases/one.txt", "tests/test_a.py", True),
        ("read('cases', 'one')\n", "cases/one.txt", "tests/test_a.py", True),
        ("for case in (HERE / 'cases').glob('*.txt'):\n", "cases/one.json", "tests/test_a.py", False),
        ("table.json is read elsewhere\n", "data/table.json", "tests/test_a.py", False),
    ],
)
def test_imports_and_names_of_files_are_found(text: str, path: str, user: str, is_used: bool) -> None:
    assert bool(find_uses(text, path, user)) is is_used


@each_row(
    ("path", "text", "expected"),
    [
        ("src/shop/testing.py", "LIMIT = 1\n", True),
        ("src/shop/factories/orders.py", "", True),
        ("src/shop/util.py", "def assert_close(a, b): ...\n", True),
        ("src/shop/util.py", "import pytest\n", True),
        ("src/shop/util.py", "def close(a, b): ...\n", False),
        ("src/near.ts", "import assert from 'node:assert';\n", True),
        ("src/near.ts", "export function near() {}\n", False),
        ("data/golden/a.json", "{}", False),
    ],
)
def test_a_helper_of_tests_is_known_by_its_name_or_by_what_it_holds(path: str, text: str, expected: bool) -> None:
    assert is_helper(path, text, ["tests/test_cart.py"]) is expected
    stem = path.rpartition("/")[2].partition(".")[0]
    assert not is_helper(path, text, [f"tests/test_{stem}.py"]), "what has tests of its own is what they test"


def test_documents_and_manifests_are_not_the_data_of_a_test() -> None:
    assert may_be_named("data/table.json")
    assert not any(map(may_be_named, ("README.md", "docs/CHANGELOG.rst", "pyproject.toml", "setup.cfg", "a.py")))


FILES = {
    "scripts/verify.sh": "python tools/examine.py\ndiff out.txt expected.txt\n",
    "tools/examine.py": "from shop import cart\n\nassert cart.total([1]) == 1\n",
    "shop/__init__.py": "",
    "shop/cart.py": "def total(x):\n    assert x\n    return sum(x)\n",
    "shop/__main__.py": "from shop import cart\n",
    "scripts/expected.txt": "1\n",
    "state": "good\n",
    "run.sh": "python -m shop\n",
    "approve.sh": "PYTHONPATH=. python tools/examine.py\n",
}


@each_row(
    ("command", "found"),
    [
        ("sh scripts/verify.sh", {"scripts/verify.sh", "tools/examine.py", "scripts/expected.txt"}),
        ("cd . && ./scripts/verify.sh --all", {"scripts/verify.sh", "tools/examine.py", "scripts/expected.txt"}),
        ("python -m tools.examine", {"tools/examine.py"}),
        ("python -m shop 1 2 | grep 3", set()),
        ("python shop/cart.py", set()),
        ("grep good state", set()),
        ("sh run.sh", set()),
        ("sh approve.sh", {"tools/examine.py"}),
        ("pytest -q", set()),
    ],
)
def test_what_a_command_runs_in_order_to_check_is_part_of_it(command: str, found: set[str]) -> None:
    assert find_command_files([command], frozenset(FILES), FILES.get) == found


def test_a_comparison_that_tests_and_product_share_is_shown_if_it_changes() -> None:
    both = {"shop/compare.py": frozenset({SourceUse.IMPORTS})}
    facts = OracleFacts(test_uses=both, product_uses=both, helpers={"shop/compare.py"})
    assert is_shared_helper("shop/compare.py", facts)
    assert not is_shared_helper("shop/compare.py", OracleFacts(test_uses=both, helpers={"shop/compare.py"}))
    finding = find_shared_comparisons("shop/compare.py", [(3, "TOLERANCE = 1")], ["TOLERANCE = 0"])
    assert finding is not None
    assert (finding.rule, finding.line, finding.before, finding.after) == (
        "shared-comparison",
        3,
        "TOLERANCE = 0",
        "TOLERANCE = 1",
    )
    assert find_shared_comparisons("shop/compare.py", [(3, "x = 1")], ["x = 0"]) is None

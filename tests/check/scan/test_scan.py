"""What counts as added, what a project did before, and what the name of a file excuses."""

from __future__ import annotations

import pytest

from proofstone.check.rules.scan import scan_lines
from proofstone.check.variants.views import split_views
from tests.check.scan.reading import broad, lines_of, scanned, strict
from tests.rows import each_row


def test_only_added_lines_count() -> None:
    old = "import os\nos._exit(0)\n"
    assert scanned("shop/cart.py", old + "x = 1\n", old) == []


def test_what_the_file_did_before_is_broad() -> None:
    old = "def stop():\n    os._exit(1)\n"
    hits = scanned("shop/cart.py", old + "def halt():\n    os._exit(0)\n", old)
    assert strict(hits) == set()
    assert broad(hits) == {"hard-exit"}


def test_another_rule_is_not_excused_by_what_the_file_did_before() -> None:
    old = "def stop():\n    os._exit(1)\n"
    assert strict(scanned("shop/cart.py", old + "import pytest\n", old)) == {"test-framework-import"}


def test_a_comparison_made_constant_is_seen_at_the_line_that_changed() -> None:
    old = "class A:\n    def __eq__(self, other):\n        return self.x == other.x\n"
    new = old.replace("self.x == other.x", "True")
    assert strict(scanned("shop/cart.py", new, old)) == {"constant-equality"}


def test_both_patterns_must_be_added() -> None:
    old = "name = 'test'\n"
    hits = scanned("shop/cart.py", old + "frame = sys._getframe(1)\n", old)
    assert strict(hits) == set()
    assert broad(hits) == {"stack-reading"}


def test_half_of_a_rule_in_the_old_file_excuses_nothing() -> None:
    old = "this = sys.modules[__name__]\n"
    hits = scanned("shop/cart.py", old + "x = 1\ny = 1\nunder_test = 'pytest' in sys.modules\n", old)
    assert strict(hits) == {"runner-environment"}


def test_patterns_far_apart_do_not_belong_together() -> None:
    source = "frame = sys._getframe(1)\n" + "x = 1\n" * 30 + "name = 'test'\n"
    assert strict(scanned("shop/cart.py", source)) == set()


def test_on_one_long_line_nearness_is_measured_in_characters() -> None:
    near = "const s = new Error().stack;" + "x();" * 10 + "f('test')\n"
    far = "const s = new Error().stack;" + "x();" * 2000 + "f('test')\n"
    assert strict(scanned("a.js", near)) == {"stack-reading"}
    assert strict(scanned("a.js", far)) == set()


def test_a_docstring_about_tests_is_no_string_about_tests() -> None:
    source = 'def f():\n    """Used by the test of the cart."""\n    return sys._getframe(1)\n'
    assert strict(scanned("shop/cart.py", source)) == set()


def test_a_broad_match_that_merely_moved_is_not_said() -> None:
    old = "def a():\n    exec(text)\n"
    new = "def a():\n    if text:\n        exec(text)\n"
    assert scanned("shop/cart.py", new, old) == []
    assert broad(scanned("shop/cart.py", new + "exec(text)\n", old)) == {"dynamic-code"}


@each_row(
    "path",
    [
        "shop/testing.py",
        "shop/_testing/cart.py",
        "shop/pytest_shop.py",
        "shop/plugin.py",
        "shop/fixtures/cart.py",
        "setup.py",
        "noxfile.py",
        "benchmarks/cart.py",
        "examples/cart.py",
        "scripts/check.py",
        "tools/check.py",
    ],
)
def test_a_file_named_after_testing_may_import_a_framework(path: str) -> None:
    hits = scanned(path, "import pytest\n")
    assert strict(hits) == set()
    assert broad(hits) == {"test-framework-import"}


@pytest.mark.parametrize("path", ["shop/cart.py", "shop/attestation.py", "shop/toolset.py", "shop/contest/a.py"])
def test_other_names_excuse_nothing(path: str) -> None:
    assert strict(scanned(path, "import pytest\n")) == {"test-framework-import"}


def test_a_new_file_may_not_look_for_the_runner_for_its_name_alone() -> None:
    source = "x = os.environ.get('PYTEST_CURRENT_TEST')\n"
    assert strict(scanned("shop/plugin.py", source)) == {"runner-environment"}
    assert strict(scanned("shop/plugin.py", "y = 1\n" + source, "y = 1\n")) == set()


def test_one_hit_for_one_rule_on_one_line() -> None:
    assert len(scanned("shop/cart.py", "os._exit(os._exit(0))\n")) == 1


def test_no_added_line_no_hit() -> None:
    lines = lines_of("a.py", "os._exit(0)\n")
    assert scan_lines("a.py", "python", lines, (), (), test_file=False, new_file=False) == []


def test_a_detail_can_be_written_down_whatever_bytes_the_file_holds() -> None:
    lines = split_views("a.py", b"x = [o for o in os.environ if o == 'PROOFSTONE_REPORT\xff']\nassert \xff.TestCase\n")
    assert lines is not None
    hits = scan_lines("a.py", "python", lines, {1, 2}, (), test_file=False, new_file=True)
    assert hits
    assert all(hit.detail.encode() for hit in hits)

"""What the Python probes observe while tests run."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from proofstone.check.models import ReportFormat
from proofstone.check.observation import FileUseKind, ObservationRequest
from proofstone.check.reports.observed_lines import read_observations
from proofstone.check.reports.source import ReportSource
from proofstone.check.rules.call_answers import describe_call
from tests.check.reports.project import Project
from tests.person import programs

PYTEST = [str(programs() / "python"), "-m", "pytest", "-q"]
UNITTEST = ["{probes}/proofstone_unittest.py", "discover", "-s", "tests", "-t", "."]

SHOP = '''"""Prices."""
from __future__ import annotations

LIMIT = 3

def total(price: int,
          count: int) -> int:
    """Return the price of all."""
    if count > LIMIT:
        return price * count - 1
    elif count == 2:
        kind = "pair"
    else:
        kind = "few"
    try:
        int(kind)
    except ValueError:
        pass
    return price * count

def unused() -> int: return 1
'''
TESTS = """
import json, threading
from pathlib import Path
import pytest
from shop import total

@pytest.fixture(scope="module")
def wide():
    return total(1, 2)

def test_many(): assert total(2, 5) == 9
def test_thread():
    thread = threading.Thread(target=total, args=(1, 1))
    thread.start()
    thread.join()
def test_reads():
    assert json.loads(Path(__file__).with_name("cases.json").read_text()) == []
def test_wide(wide): pass
"""


def shop(project: Project) -> None:
    project.file("shop.py", SHOP)
    project.file("tests/cases.json", "[]")
    project.file("tests/test_shop.py", TESTS)
    project.file("conftest.py", "")
    project.observe = ObservationRequest(files=True, coverage={"shop.py": ((1, 99),), "absent.py": ((1, 1),)})


def reached(project: Project, *lines: int) -> set[str] | None:
    assert project.observations is not None
    tests = project.observations.tests_reaching("shop.py", lines)
    return None if tests is None else {test.rpartition("::")[2].rpartition(".")[2] for test in tests}


def test_coverage_names_the_tests_that_execute_a_statement(project: Project) -> None:
    shop(project)
    report = project.run(ReportFormat.PYTEST, PYTEST)
    assert project.exit_code == 0, project.output
    observed = project.observations
    assert observed is not None and observed.unavailable == () and observed.instrumented == ("shop.py",)
    assert set(observed.tests) <= set(report.by_id)
    assert reached(project, 10) == {"test_many"}
    assert reached(project, 14) == {"test_thread"}, "a thread belongs to the test that runs"
    assert reached(project, 6) is None, "a fixture of the module called the function outside of any single test"
    assert reached(project, 4) is None, "executed at import"
    assert reached(project, 21) == set(), "no test calls it"
    assert observed.tests_reaching("absent.py", [1]) is None, "never loaded: nothing is known"


def test_files_are_named_with_the_files_that_opened_or_loaded_them(project: Project) -> None:
    shop(project)
    project.run(ReportFormat.PYTEST, PYTEST)
    assert project.observations is not None
    uses = {(use.path, use.kind): use.stack for use in project.observations.files}
    assert uses["tests/cases.json", FileUseKind.READ] == ("tests/test_shop.py",)
    assert uses["shop.py", FileUseKind.LOADED] == ("tests/test_shop.py",)
    assert uses["tests/test_shop.py", FileUseKind.LOADED] == ()
    assert {module.name: module.path for module in project.observations.modules}["shop"] == "shop.py"


def test_unittest_and_workers_of_xdist_are_observed(project: Project) -> None:
    shop(project)
    workers = [sys.executable, "-m", "pytest", "-q", "-n", "2", "-p", "no:cacheprovider"]
    project.run(ReportFormat.PYTEST, workers)
    assert reached(project, 10) == {"test_many"}
    project.file("tests/__init__.py", "")
    project.file(
        "tests/test_shop.py",
        "import unittest, shop\nclass T(unittest.TestCase):\n    def test_it(self):\n        shop.total(1, 9)\n",
    )
    project.run(ReportFormat.UNITTEST, [PYTEST[0], *UNITTEST])
    assert reached(project, 10) == {"test_it"} and reached(project, 14) == set()


def test_observing_leaves_results_tracebacks_and_tracers_as_they_are(project: Project) -> None:
    shop(project)
    project.file(
        "tests/test_shop.py",
        "import dis, inspect, sys, traceback, shop\n"
        "def test_source(): assert 'kind = \"pair\"' in inspect.getsource(shop.total)\n"
        "def test_names(): assert not [n for n in shop.__dict__ if 'proofstone' in n]\n"
        "def test_tracer(): assert sys.gettrace() is None and sys.getprofile() is None\n"
        "def test_doc(): assert shop.total.__doc__ == 'Return the price of all.' and shop.__doc__ == 'Prices.'\n"
        "def test_line():\n"
        "    try:\n"
        "        shop.total('a', 'b')\n"
        "    except TypeError as error:\n"
        "        assert traceback.extract_tb(error.__traceback__)[-1].lineno == 9\n",
    )
    report = project.run(ReportFormat.PYTEST, PYTEST)
    assert {result.status.value for result in report.results} == {"passed"}, project.output


def test_what_cannot_be_observed_is_said(project: Project) -> None:
    shop(project)
    project.file("shop.py", f"def njit(f): return f\n@njit\n{SHOP[SHOP.index('def total') :].replace('LIMIT', '3')}")
    project.run(ReportFormat.PYTEST, PYTEST)
    assert project.observations is not None
    assert project.observations.unavailable == ("shop.py: a decorator compiles total from its source",)
    assert reached(project, 7) is None


def test_a_process_that_dies_or_garbage_is_named(tmp_path: Path) -> None:
    request = ObservationRequest(coverage={"shop.py": ((1, 9),)})
    source = ReportSource(tmp_path, b"", "/repo", ".", 0)
    assert read_observations(source, request) is None, "no probe wrote anything"
    lines = ({"event": "coverage", "path": "other.py", "lines": [1], "tests": [1]}, {"event": "test", "number": "x"})
    text = "".join(json.dumps(line) + "\n" for line in lines) + "{"
    (tmp_path / "observed-pytest-1.jsonl").write_text(text)
    observed = read_observations(source, request)
    assert observed is not None and observed.coverage == ()
    assert observed.unavailable[0].rpartition(": ")[2] == "coverage that nobody asked for"
    assert "not JSON" in observed.unavailable[1] and "died before" in observed.unavailable[2]


CART = """
import enum, os
from dataclasses import dataclass, field

RATE = 2

class Kind(enum.Enum):
    FEW = 1

class Money(int):
    def __eq__(self, other): return True
    __hash__ = None

@dataclass
class Cart:
    prices: list
    kind: Kind = Kind.FEW
    names: dict = field(default_factory=dict)

    def total(self, *extra, rate=1, **rest):
        self.prices.append(0)
        if not self.prices[0]:
            raise ValueError("empty")
        return Money((sum(self.prices) + sum(extra)) * rate * RATE)

    @staticmethod
    def fits(path): return path

def steps():
    yield 1
"""
CART_TESTS = """
import pytest
from cart import Cart, steps
import cart

def test_total():
    assert Cart([1, 2], names={"a": (1.5, None)}).total(4, rate=3) == 1
    with pytest.raises(ValueError):
        Cart([0]).total()
def test_patched(monkeypatch):
    monkeypatch.setattr(cart, "RATE", 5)
    assert Cart([1]).total() == 5
def test_others(tmp_path):
    assert Cart.fits(str(tmp_path)) and list(steps()) == [1]
    assert Cart.fits(b"x") == b"x"
"""


def test_calls_are_recorded_with_arguments_and_answers(project: Project) -> None:
    project.file("cart.py", CART)
    project.file("tests/test_cart.py", CART_TESTS)
    project.file("conftest.py", "")
    project.observe = ObservationRequest(calls={"cart.py": ("Cart.total", "Cart.fits", "steps")})
    project.run(ReportFormat.PYTEST, PYTEST)
    assert project.exit_code == 0, project.output
    assert project.observations is not None and project.observations.unavailable == ()
    calls = [(describe_call(call), call.answer) for call in project.observations.calls]
    money = '["value", ["object", "cart", "Money", "int", "{}", []]]'.format
    assert calls == [
        ("cart.Cart.total((4,), 3)".replace("(4,)", "(4)"), money(42)),
        ("cart.Cart.total(1)", '["error", "ValueError"]'),
        ("cart.Cart.total(1)", money(5)),
        ("cart.Cart.fits(bytes.fromhex('78'))", '["value", ["bytes", "78"]]'),
    ], "an equality of its own is reduced, a temporary path and a generator are left out"
    assert '"prices", ["list", [1, 2]]' in project.observations.calls[0].arguments, "as it was before the call"


RULES = """
def known(answers):
    def decorate(inner):
        def answer(*args):
            return answers[args] if args in answers else inner(*args)
        return answer
    return decorate

def put_before(module, name):
    inner = getattr(module, name)
    setattr(module, name, lambda *args: inner(*args) if args != (7,) else [].pop())

def listed(values):
    return sorted(values, key=lambda value: -value)
"""
DECORATED = """
import sys
from rules import known, listed, put_before

@known({(3,): 30})
def triple(number): return number * 3

@known({(4,): 44})
def quadruple(number): return number * 4

def half(number): return number // 2

put_before(sys.modules[__name__], "half")
"""
DECORATED_TESTS = """
import pytest
import numbers_
from rules import listed

def test_numbers():
    assert numbers_.triple(3) == 30 and numbers_.quadruple(4) == 44 and numbers_.quadruple(2) == 8
    with pytest.raises(IndexError):
        numbers_.half(7)
    assert numbers_.half(9) == 4
    assert listed([1, 2]) == [2, 1]
"""


def test_what_a_decorator_or_a_patch_puts_in_place_is_recorded_under_the_name_that_callers_use(
    project: Project,
) -> None:
    project.file("rules.py", RULES)
    project.file("numbers_.py", DECORATED)
    project.file("tests/test_numbers.py", DECORATED_TESTS)
    project.file("conftest.py", "")
    project.observe = ObservationRequest(calls={"rules.py": ("known", "put_before", "listed")})
    project.run(ReportFormat.PYTEST, PYTEST)
    assert project.exit_code == 0, project.output
    assert project.observations is not None and project.observations.unavailable == ()
    calls = [(describe_call(call), call.answer) for call in project.observations.calls if call.is_attribute]
    assert calls == [
        ("numbers_.triple((3))", '["value", 30]'),
        ("numbers_.quadruple((4))", '["value", 44]'),
        ("numbers_.quadruple((2))", '["value", 8]'),
        ("numbers_.half((9))", '["value", 4]'),
    ], "a call that ends with an exception is left out where a lambda makes it, and the next one is recorded"

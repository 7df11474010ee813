"""Sabotage of Python files: what is made to raise, what is left alone, and that the result is a program."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from proofstone.check.variants.sabotage import Sabotage, sabotage_file
from tests.rows import each_row

OLD = '''\
"""Prices."""
import math

RATE = 2


def price(n):
    """What n cost."""
    return n * RATE


def tax(n):
    return math.floor(n * 0.2)


class Basket:
    limit = 3

    def total(self, n):
        def each(x):
            return price(x)

        return each(n)
'''


def loaded(content: bytes) -> dict[str, Any]:
    space: dict[str, Any] = {}
    exec(compile(content, "shop.py", "exec", dont_inherit=True), space)
    return space


def changed(*replacements: tuple[str, str]) -> Sabotage | None:
    new = OLD
    for before, after in replacements:
        assert before in new
        new = new.replace(before, after)
    return sabotage_file("shop.py", OLD.encode(), new.encode())


def raises(call: Callable[[], object]) -> bool:
    try:
        call()
    except BaseException as error:  # noqa: BLE001  it is what sabotage raises
        return type(error) is BaseException and "sabotaged" in str(error)
    return False


def working(content: bytes) -> set[str]:
    """The functions of the shop that still work."""
    shop = loaded(content)
    calls: dict[str, Callable[[], object]] = {
        "price": lambda: shop["price"](1),
        "tax": lambda: shop["tax"](1),
        "total": lambda: shop["Basket"]().total(1),
    }
    return {name for name, call in calls.items() if not raises(call)}


@pytest.mark.parametrize(
    ("before", "after", "left"),
    [
        pytest.param("n * RATE", "n * RATE + 1", {"tax"}, id="a line of the body"),
        pytest.param("def tax(n)", "def tax(n, more=0)", {"price", "total"}, id="the signature"),
        pytest.param("def tax", "@staticmethod\ndef tax", {"price", "total"}, id="a decorator"),
        pytest.param("    return n * RATE\n", "    pass\n", {"tax"}, id="the last line of a body"),
        pytest.param("return each(n)", "return each(n) + 1", {"price", "tax"}, id="a method"),
        pytest.param("return price(x)", "return price(x) + 1", {"price", "tax"}, id="a function in a method"),
    ],
)
def test_only_the_function_that_changed_raises(before: str, after: str, left: set[str]) -> None:
    result = changed((before, after))
    assert result is not None
    assert (result.complete, result.loads) == (True, True)
    assert working(result.content) == left


def test_a_function_that_only_lost_lines_raises() -> None:
    new = OLD.replace("        return each(n)\n", "")
    result = sabotage_file("shop.py", OLD.encode(), new.encode())
    assert result is not None
    assert result.complete
    assert working(result.content) == {"price", "tax"}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param("RATE = 2", "RATE = 3", id="a constant"),
        pytest.param("RATE = 2\n", "", id="a constant that is gone"),
        pytest.param("limit = 3", "limit = 4", id="a class attribute"),
        pytest.param("class Basket:", "class Basket(dict):", id="a base class"),
        pytest.param("import math", "import cmath as math", id="an import that unchanged code uses"),
        pytest.param("import math", "import math\nimport this_does_things", id="an import that nothing uses"),
    ],
)
def test_a_change_outside_functions_makes_the_module_fail_to_load(before: str, after: str) -> None:
    result = changed((before, after))
    assert result is not None
    assert (result.complete, result.loads) == (True, False)
    assert raises(lambda: loaded(result.content))


def test_an_import_for_changed_functions_belongs_to_them() -> None:
    result = changed(("import math", "import json\nimport math"), ("n * RATE", "json.loads(str(n)) * RATE"))
    assert result is not None
    assert (result.complete, result.loads) == (True, True)
    assert working(result.content) == {"tax"}


@pytest.mark.parametrize(
    "new",
    [
        pytest.param(OLD, id="nothing"),
        pytest.param(OLD.replace("RATE = 2", "RATE = 2  # two"), id="a comment"),
        pytest.param(OLD.replace("What n cost", "What n of them cost"), id="a docstring"),
        pytest.param(OLD.replace("\n\n", "\n\n\n"), id="blank lines"),
        pytest.param(OLD.replace("import math", "import math\n\n__all__ = ['price']"), id="the list of exports"),
        pytest.param(OLD + "\n\ndef (:\n", id="a file that cannot be parsed"),
    ],
)
def test_nothing_that_runs_has_changed(new: str) -> None:
    assert sabotage_file("shop.py", OLD.encode(), new.encode()) is None


@pytest.mark.parametrize("name", ["shop.pyi", "shop.d.ts", "shop.txt", "shop.json"])
def test_files_that_never_run_are_left_alone(name: str) -> None:
    assert sabotage_file(name, None, b"x = 1\n") is None


def test_types_are_no_change() -> None:
    old = "from typing import TYPE_CHECKING, overload\n\n\ndef f(x): return x\n"
    new = (
        "from typing import TYPE_CHECKING, overload\n\nif TYPE_CHECKING:\n    from a import B\n\n\n"
        "@overload\ndef f(x: int) -> int: ...\n@overload\ndef f(x: str) -> str: ...\ndef f(x): return x\n"
    )
    assert sabotage_file("a.py", old.encode(), new.encode()) is None


def test_a_removed_function_leaves_the_sabotage_incomplete() -> None:
    new = OLD.replace("def tax(n):\n    return math.floor(n * 0.2)\n", "").replace("n * RATE", "n * RATE + 1")
    result = sabotage_file("shop.py", OLD.encode(), new.encode())
    assert result is not None
    assert not result.complete


def test_a_renamed_function_stands_for_the_old_one() -> None:
    result = changed(("def tax(n)", "def duty(n)"))
    assert result is not None
    assert result.complete
    assert raises(lambda: loaded(result.content)["duty"](1))


def test_a_new_file_of_functions_still_loads() -> None:
    new = b'"""New."""\nfrom __future__ import annotations\nimport os\n\n\ndef f():\n    return os.sep\n'
    result = sabotage_file("new.py", None, new)
    assert result is not None
    assert (result.complete, result.loads) == (True, True)
    assert raises(loaded(result.content)["f"])


def test_an_old_file_that_could_not_be_parsed_leaves_the_sabotage_incomplete() -> None:
    result = sabotage_file("a.py", b"def f(:\n", b"def f():\n    return 1\n")
    assert result is not None
    assert not result.complete


SHAPES = {
    "one line": "def f(): return 1",
    "a lambda": "f = lambda: 1",
    "a lambda in parentheses": "f = (lambda:\n    (1 +\n     1))",
    "only a docstring": 'def f(): "doc"',
    "a docstring over lines": 'def f():\n    """doc\n    more"""',
    "a compound statement first": "def f():\n    for x in [1]:\n        pass",
    "a match first": "def f():\n    match 1:\n        case _: pass",
    "a decorated function first": "def f():\n    @property\n    def g(): pass\n    return g",
    "tabs": "def f():\n\treturn 1",
    "a comment first": "def f():\n    # why\n    return 1",
    "a continued line": "def f():\\\n    return 1",
    "a global first": "def f():\n    global x\n    x = 1",
    "a decorator over lines": "@(\n    lambda g: g\n)\ndef f():\n    return 1",
}


@each_row("text", SHAPES.values())
@each_row("newline", ["\n", "\r\n"])
@each_row("end", ["", "\n"])
def test_every_shape_of_function_raises(text: str, newline: str, end: str) -> None:
    new = (text + end).replace("\n", newline).encode()
    result = sabotage_file("a.py", None, new)
    assert result is not None
    assert (result.complete, result.loads) == (True, True)
    assert raises(loaded(result.content)["f"])
    assert result.content.count(b"\n") == result.content.count(newline.encode())


def test_generators_and_coroutines_raise_when_they_are_run() -> None:
    new = b"def g():\n    yield 1\n\nasync def c():\n    return 1\n\nasync def a():\n    yield 1\n"
    result = sabotage_file("a.py", None, new)
    assert result is not None
    space = loaded(result.content)
    assert raises(lambda: list(space["g"]()))
    assert raises(lambda: space["c"]().send(None))
    assert raises(lambda: space["a"]().__anext__().send(None))


@pytest.mark.parametrize(
    "head",
    [
        pytest.param("\ufeff".encode(), id="a byte order mark"),
        pytest.param(b"# -*- coding: latin-1 -*-\n", id="an encoding"),
    ],
)
def test_encoding_and_mark_survive(head: bytes) -> None:
    encoding = "latin-1" if b"coding" in head else "utf-8"
    new = head + "é = 'ü'\ndef f(): return 'ö'; x = 'ä'\n".encode(encoding)
    old = new.replace("'ö'".encode(encoding), b"''")
    result = sabotage_file("a.py", old, new)
    assert result is not None
    assert result.content.startswith(head)
    assert not result.content.startswith(head * 2)
    space = loaded(result.content)
    assert space["é"] == "ü"
    assert raises(space["f"])


def test_the_module_raises_before_anything_else_runs() -> None:
    new = b'"""Doc."""\nfrom __future__ import annotations\nX = 1\nif __name__ == "__main__":\n    raise SystemExit\n'
    result = sabotage_file("a.py", new.replace(b"X = 1", b"X = 2"), new)
    assert result is not None
    assert raises(lambda: exec(result.content, {"__name__": "__main__"}))

"""The mistakes that are made in changed lines, in each language, and what is left alone."""

from __future__ import annotations

from proofstone.check.variants.mutants import Mutant, choose_mutants, list_mutants
from proofstone.sources.text import parse_valid
from tests.rows import each_row

EVERYTHING = range(1, 1000)


def find(path: str, text: str, lines: range = EVERYTHING) -> set[tuple[str, str]]:
    """Return operator and mutated line of every mutant that parses."""
    return {(mutant.operator.value, mutant.after) for mutant in choose(path, text, lines)}


def choose(path: str, text: str, lines: range = EVERYTHING, count: int = 1000) -> list[Mutant]:
    content = text.encode()
    return choose_mutants(list_mutants(path, content, lines), {path: content}, count)


PYTHON = {
    "if not units:\n    pass": {("condition negated", "if  units:")},
    "if units:\n    pass": {("condition negated", "if not (units):")},
    "x = a < b": {("comparison", "x = a >= b"), ("boundary", "x = a <= b")},
    "x = a == b": {("comparison", "x = a != b")},
    "x = a  not  in b": {("comparison", "x = a  in b")},
    "if a is None:\n    pass": {("comparison", "if a is not None:")},
    "x = a and b": {("boolean operator", "x = a or b")},
    "x = a // b": {("arithmetic", "x = a * b")},
    "x += y": {("arithmetic", "x -= y"), ("statement removed", "pass")},
    "x = 1.5": {("constant", "x = 2.5")},
    "x = 1_000": {("constant", "x = 1001")},
    "x = True": {("constant", "x = False")},
    "x = 'a'": {("constant", "x = ''")},
    "x = ''": {("constant", "x = 'x'")},
    "f(\n    x,\n)": {("statement removed", "pass")},
    "self.x = y": {("statement removed", "pass")},
    "raise ValueError(x)": {("statement removed", "pass")},
    "def f():\n    return x": {("return value", "return None")},
    "f = lambda: x": {("return value", "f = lambda: None")},
    "x = [a for a in b if a]": {("condition negated", "x = [a for a in b if not (a)]")},
    "x = a if b else c": {("condition negated", "x = a if not (b) else c")},
}
LEFT_ALONE = {
    "a docstring": 'def f():\n    """Says 3 == 4."""',
    "logging": "log.info('a %s', 3 + 4)",
    "a logger of its own": "logging.getLogger(__name__).debug(x + 1)",
    "a message": "x = 'a message for you'",
    "a message of one word": "e = ValueError('empty')",
    "help": "x = option(help='text')",
    "types": "x: int | None\ndef f(a: Literal[3]) -> Optional[3]: ...",
    "a decorator": "@cache(maxsize=3)\ndef f(): ...",
    "the representation": "class A:\n    def __repr__(self):\n        return 'A' + self.x",
    "an import": "from a import b",
    "the program": "if __name__ == '__main__':\n    main(3)",
    "types only": "if TYPE_CHECKING:\n    x = 3",
    "an assertion": "assert x > 3",
    "an abstract method": "def f():\n    raise NotImplementedError",
    "a joined text": "x = 'a message here: ' + y",
    "the first value of a variable": "x = f(y)",
    "a filled text": "x = f'{a}b'",
    "broken code": "if x > 3",
}


@each_row("text", PYTHON)
def test_each_mistake_in_python(text: str) -> None:
    assert find("shop.py", text) == PYTHON[text]


@each_row("text", LEFT_ALONE.values())
def test_what_tests_need_not_notice_is_left_alone(text: str) -> None:
    assert find("shop.py", text) == set()


OTHERS = {
    "shop.js": (
        "function f(a) { if (!a && b === 3) { log.warn('x', 1); g(a); return a; } return a ?? b; }",
        {"condition negated", "comparison", "boolean operator", "statement removed", "return value", "constant"},
    ),
    "shop.ts": (
        "interface A { x: 3 }\nexport const f = (a: number): number => a > 3 ? a + 1 : a;",
        {"comparison", "boundary", "arithmetic", "return value", "constant"},
    ),
    "shop.tsx": ("const f = (a: number) => a < 3;", {"comparison", "boundary", "return value", "constant"}),
    "shop.go": (
        "package a\n\nfunc f(x int) (int, error) {\n\tif x > 3 && !y {\n\t\tx++\n\t\tg(x)\n\t\treturn x, err\n\t}\n}\n",
        {
            "condition negated",
            "comparison",
            "boundary",
            "boolean operator",
            "arithmetic",
            "statement removed",
            "return value",
            "constant",
        },
    ),
    "shop.rs": (
        "fn f(x: i32) -> i32 { if x > 3 { g(x); return x; } x + 1 }\n"
        "#[cfg(test)]\nmod tests { fn t() { assert!(f(5) == 5); } }",
        {"comparison", "boundary", "arithmetic", "statement removed", "return value", "constant"},
    ),
    "Shop.java": (
        'class A { int f(int x) { if (x > 3 && y) { g(x); } return x + 1; } public String toString() { return "a"; } }',
        {
            "condition negated",
            "comparison",
            "boundary",
            "boolean operator",
            "arithmetic",
            "statement removed",
            "constant",
        },
    ),
}


@each_row("path", OTHERS)
def test_the_other_languages(path: str) -> None:
    text, operators = OTHERS[path]
    mutants = choose(path, text)
    assert {mutant.operator.value for mutant in mutants} == operators
    assert not any("console" in mutant.after or "warn('x', 2" in mutant.after for mutant in mutants)
    assert all(mutant.line == 1 for mutant in mutants) == (path not in ("shop.ts", "shop.go"))


def test_only_the_given_lines_are_mutated() -> None:
    text = "a = 3\nb = 4\nc = (\n    5\n)\n"
    assert {mutant.line for mutant in choose("shop.py", text, range(2, 3))} == {2}
    assert [mutant.after for mutant in choose("shop.py", text, range(4, 5))] == ["6"]
    assert choose("shop.py", text, range(0)) == []


def test_every_line_has_a_mutant_before_any_has_two() -> None:
    text = "x = a < b and b < c\ny = a < b\nz = 3\n"
    mutants = choose("shop.py", text)
    assert [mutant.line for mutant in mutants[:5]] == [1, 2, 3, 1, 2]
    assert choose("shop.py", text, count=2) == mutants[:2]
    assert choose("shop.py", text) == mutants


def test_a_mutant_has_the_lines_of_the_original_and_parses() -> None:
    """In a file with a byte order mark and letters of several bytes, too."""
    text = "\ufeffdef grüße(größe):\n    nenne(\n        größe,\n        'ä',\n    )\n    return größe < 3\n"
    content = text.encode()
    mutants = choose("shop.py", text)
    assert {mutant.operator.value for mutant in mutants} == {
        "statement removed", "constant", "comparison", "boundary", "return value"
    }  # fmt: skip
    for mutant in mutants:
        mutated = mutant.apply(content)
        assert mutated != content
        assert mutated.count(b"\n") == content.count(b"\n")
        assert parse_valid(mutated.removeprefix(b"\xef\xbb\xbf"), "python") is not None
        assert mutant.function == "grüße"


def test_a_function_is_new_if_its_first_line_is() -> None:
    text = "def f(a):\n    return a + 1\n"
    assert [mutant.is_new_function for mutant in choose("shop.py", text)] == [True, True, True]
    assert [mutant.is_new_function for mutant in choose("shop.py", text, range(2, 3))] == [False, False, False]


def test_other_files_have_no_mutants() -> None:
    assert choose("shop.rb", "x = 3") == []
    assert choose("shop.pyi", "x = 3") == []
    assert choose("data.json", "[3]") == []

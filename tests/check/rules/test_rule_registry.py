"""Every rule that a finding can carry has a page, and every page has a rule."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TypeGuard

import proofstone
from proofstone.check.ecosystems.ecosystem import make_optional_check
from proofstone.check.inspection import inspect_files, inspect_readiness
from proofstone.check.models import CheckKind
from proofstone.check.rules.confidence import CAPPING_RULES
from proofstone.check.rules.outcome import ACCEPTABLE_RULES
from proofstone.check.rules.pages.code_pages import CODE_PAGES
from proofstone.check.rules.pages.result_pages import TEST_PAGES
from proofstone.check.rules.pages.scope_pages import SCOPE_PAGES
from proofstone.check.rules.pages.trust_pages import TRUST_PAGES
from proofstone.check.rules.rule_registry import LINT_RULE, RULE_PAGES, TOOLS, find_nearest_rules, find_page
from proofstone.check.rules.scan_rule import RULE_MESSAGES
from tests.rows import each_row

SOURCE = Path(proofstone.__file__).parent


def rules_in_source() -> set[str]:
    """Every text in the source that becomes the rule of a finding: the argument `rule` of a call, by name or by its
    position in the function of the same module, the constants named after a rule, and the rules of the scan."""
    found: set[str] = set(RULE_MESSAGES)
    for path in SOURCE.rglob("*.py"):
        module = ast.parse(path.read_text(encoding="utf-8"))
        imported = {name.name for node in ast.walk(module) if isinstance(node, ast.ImportFrom) for name in node.names}
        if imported & {"Finding", "ScanRule"} or path.name == "scan_paths.py":
            found |= set(rules_of_module(module))
    return found


def rules_of_module(module: ast.Module) -> Iterator[str]:
    positions = {
        node.name: [argument.arg for argument in node.args.args].index("rule") - (node.args.args[0].arg == "self")
        for node in ast.walk(module)
        if isinstance(node, ast.FunctionDef) and "rule" in [argument.arg for argument in node.args.args]
    }
    for node in ast.walk(module):
        if isinstance(node, ast.ClassDef):
            fields = [item.target.id for item in node.body if is_named(item)]
            positions |= {node.name: fields.index("rule")} if "rule" in fields else {}
    positions |= {"ScanRule": 0, "_PathRule": 0}
    constants = {
        node.target.id: str(node.value.value)
        for node in ast.walk(module)
        if is_named(node) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(module):
        if isinstance(node, ast.Call):
            name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
            values = [word.value for word in node.keywords if word.arg == "rule" and name != "Acceptance"]
            values += [node.args[positions[name]]] if name in positions and len(node.args) > positions[name] else []
            for value in values:
                yield from texts(value, constants)
        elif isinstance(node, ast.Assign) and any(
            isinstance(one, ast.Name) and one.id == "rule" for one in node.targets
        ):
            yield from texts(node.value, constants)
        elif isinstance(node, ast.For) and isinstance(node.target, ast.Tuple):
            names = [one.id if isinstance(one, ast.Name) else "" for one in node.target.elts]
            if "rule" in names and isinstance(node.iter, ast.Tuple):
                for row in node.iter.elts:
                    if isinstance(row, ast.Tuple):
                        yield from texts(row.elts[names.index("rule")], constants)


class Named(ast.AnnAssign):
    target: ast.Name


def is_named(node: ast.AST) -> TypeGuard[Named]:
    """Whether it gives a value with a type to a name."""
    return isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)


def texts(value: ast.expr, constants: dict[str, str]) -> Iterator[str]:
    match value:
        case ast.Constant(value=str() as text):
            yield text
        case ast.IfExp(body=body, orelse=other):
            yield from texts(body, constants)
            yield from texts(other, constants)
        case ast.Name(id=name) if name in constants:
            yield constants[name]


# Rules whose text is made when a check runs: the names of Proofstone's own checks, and an agent's claim.
MADE = {
    *(result.name for result, _ in (*inspect_files([], "a" * 40, max_file_kb=1), *inspect_readiness([], "a" * 40))),
    "claim-mismatch",
    LINT_RULE,
}


def test_every_rule_of_a_finding_has_a_page_and_every_page_a_rule() -> None:
    found = {rule for rule in rules_in_source() if rule} | MADE
    assert found - set(RULE_PAGES) == set(), "these rules have no page in check/rules/pages"
    assert set(RULE_PAGES) - found == set(), "no finding has these rules"


def test_a_rule_that_is_forgotten_is_seen() -> None:
    """The scan itself: each way in which a module makes a finding."""
    module = ast.parse(
        "LEAK: Final = 'by-constant'\n"
        "def build(test, rule): return Finding(rule=rule)\n"
        "build(1, 'by-position')\n"
        "Finding(layer='L1', rule='by-name')\n"
        "Finding(rule=LEAK if x else 'by-choice')\n"
        "for rule, text in (('by-row', 1), ('by-other-row', 2)): pass\n"
        "rule = 'by-assignment'\n"
    )
    assert set(rules_of_module(module)) == {
        *("by-constant", "by-position", "by-name", "by-choice", "by-row", "by-other-row", "by-assignment")
    }


@each_row("rule", RULE_PAGES)
def test_a_page_says_all_that_a_reader_needs(rule: str) -> None:
    page = RULE_PAGES[rule]
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*", rule)
    for text in (page.what, page.why, page.action):
        assert text[0].isupper() or text[0] == "`", text
        assert text.endswith("."), text
    assert page.example
    assert not page.title.endswith(".")
    assert "--accept" not in page.model_dump_json()  # agents read these pages too


def test_no_rule_has_two_pages() -> None:
    assert len(RULE_PAGES) == sum(len(pages) for pages in (CODE_PAGES, SCOPE_PAGES, TEST_PAGES, TRUST_PAGES))


def test_what_can_be_accepted_or_lowers_the_confidence_has_a_page() -> None:
    assert set(RULE_PAGES) >= ACCEPTABLE_RULES | CAPPING_RULES


@each_row(
    ("rule", "page"),
    [
        ("regression", "regression"),
        ("ruff E501", "lint"),
        ("mypy arg-type", "lint"),
        ("tsc", "lint"),
        ("lint", "lint"),
        ("no such", None),
        ("", None),
    ],
)
def test_a_complaint_of_a_tool_is_explained_as_lint(rule: str, page: str | None) -> None:
    found = find_page(rule)
    assert (found.rule if found else None) == page


def test_every_tool_that_complains_is_known() -> None:
    sources = "".join(path.read_text() for path in (SOURCE / "check/ecosystems").glob("*.py"))
    made = re.findall(r"CheckKind\.(?:TYPES|LINT),\s*\"[\w-]+\",\s*\"(?:\w+:)?([\w-]+)\"", sources)
    assert made
    assert set(made) <= TOOLS
    spec = make_optional_check(CheckKind.LINT, "x", "python:ruff", "ruff", install="i")
    assert find_page(f"{spec.tool.rpartition(':')[2]} E1") is RULE_PAGES[LINT_RULE]


def test_the_nearest_rules_are_named() -> None:
    assert find_nearest_rules("regresion")[0] == "regression"
    assert "edited-expectation" in find_nearest_rules("expectation")
    assert find_nearest_rules("zzzzzz") == []

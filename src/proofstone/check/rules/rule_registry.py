"""All rules that findings carry: what each means, why it exists, an example, and what to do.

Rule ids are stable: settings, acceptances, disputes and programs refer to them. `proofstone explain RULE` prints a
page, and `docs/rules/` holds the same pages. A finding whose rule has no page here fails the tests.
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Final

from proofstone.check.rules.pages.code_pages import CODE_PAGES
from proofstone.check.rules.pages.result_pages import TEST_PAGES
from proofstone.check.rules.pages.rule_page import RulePage
from proofstone.check.rules.pages.scope_pages import SCOPE_PAGES
from proofstone.check.rules.pages.trust_pages import TRUST_PAGES

RULE_PAGES: Final[Mapping[str, RulePage]] = {
    page.rule: page
    for page in sorted((*TEST_PAGES, *TRUST_PAGES, *CODE_PAGES, *SCOPE_PAGES), key=lambda page: page.rule)
}
LINT_RULE: Final = "lint"
"""The page for complaints of linters and type checkers, whose rules are `TOOL CODE`: `ruff E501`, `mypy arg-type`."""


TOOLS: Final = frozenset(
    (
        "bundle",
        "cargo",
        "cargo-clippy",
        "clippy",
        "eslint",
        "flake8",
        "go",
        "mypy",
        "pyright",
        "rubocop",
        "ruff",
        "tsc",
        "vue-tsc",
    )
)
"""Linters and type checkers whose complaints become findings."""


def find_page(rule: str) -> RulePage | None:
    """Return the page of a rule; that of `lint` for a complaint of a tool (`ruff E501`)."""
    is_complaint = rule.partition(" ")[0] in TOOLS
    return RULE_PAGES.get(rule) or (RULE_PAGES[LINT_RULE] if is_complaint else None)


def find_nearest_rules(rule: str) -> list[str]:
    """Return the rules that were probably meant, the nearest first."""
    parts = [name for name in RULE_PAGES if rule and rule in name]
    return list(dict.fromkeys((*get_close_matches(rule, RULE_PAGES, n=5, cutoff=0.5), *parts)))[:5]

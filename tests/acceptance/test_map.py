"""The table of criteria is complete, and says where they really are."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from pathlib import Path

import tests.acceptance

FOLDER = Path(__file__).parent
CRITERIA = {*(f"AC-{number}" for number in range(1, 16)), "EC-3", "EC-4", "EC-5", "EC-9"}
ROW = re.compile(r"^\| ([AE]C-\d+) +\| (.+?) +\| (.+?) +\| (.+?) +\|$", re.MULTILINE)
ROWS = ROW.findall(tests.acceptance.__doc__ or "")


def there() -> dict[str, set[str]]:
    """By criterion, the modules with a test that is named for it and says so."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for path in FOLDER.glob("test_*.py"):
        for one in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(one, ast.FunctionDef) and (named := re.match(r"test_([ae]c)_(\d\d)_\w", one.name)):
                criterion = f"{named[1].upper()}-{int(named[2])}"
                assert re.match(rf"{criterion}\b", ast.get_docstring(one) or ""), f"{one.name} says nothing of it"
                found[criterion].add(path.stem)
    return found


def test_every_criterion_has_a_row_and_a_meaning() -> None:
    assert [row[0] for row in ROWS] == sorted(CRITERIA, key=lambda name: (name[:3], int(name[3:])))
    assert all(meaning.strip() for _, meaning, _, _ in ROWS)


def test_a_criterion_is_where_the_table_says_and_nowhere_else() -> None:
    told = {name: set(re.findall(r"`(\w+)`", modules)) for name, _, modules, _ in ROWS}
    assert told == dict(there())


def test_what_is_held_in_detail_elsewhere_is_there() -> None:
    root = FOLDER.parents[1]
    for name, _, _, places in ROWS:
        for place in re.findall(r"`([^`]+)`", places):
            assert (root / place).exists(), f"{name}: {place}"

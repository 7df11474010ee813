"""A table of cases as one test: where a case takes microseconds, pytest works a hundred times as long on an item.

`each_row` takes the place of `pytest.mark.parametrize`. All rows are tried, and those that fail are named with why.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from typing import Any

import pytest

_SHOWN = 10
_LONGEST = 500


def each_row(names: str | Sequence[str], rows: Iterable[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Call a test once for each row, as `pytest.mark.parametrize` would; further arguments are fixtures, which all rows
    share.
    """
    arguments = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    listed = [row if len(arguments) > 1 else (row,) for row in rows]
    assert listed, "a table without a row tests nothing"

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        @wraps(test)
        def run_rows(**fixtures: object) -> None:
            failed: list[tuple[object, BaseException]] = []
            for row in listed:
                try:
                    test(**dict(zip(arguments, row, strict=True)), **fixtures)
                except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001  every failure is raised below
                    failed.append((row, error))
            if failed:
                raise AssertionError(_describe(failed, len(listed))) from failed[0][1]

        signature = inspect.signature(test)
        kept = [parameter for name, parameter in signature.parameters.items() if name not in arguments]
        run_rows.__signature__ = signature.replace(parameters=kept)  # type: ignore[attr-defined]
        return run_rows

    return decorate


def _describe(failed: Sequence[tuple[object, BaseException]], count: int) -> str:
    shown = [f"{repr(row)[:_LONGEST]}\n    {type(error).__name__}: {error}" for row, error in failed[:_SHOWN]]
    more = [f"and {len(failed) - _SHOWN} more"] if len(failed) > _SHOWN else []
    return "\n".join((f"{len(failed)} of {count} rows fail; the first:", *shown, *more))

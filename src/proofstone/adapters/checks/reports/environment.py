"""The variables that make a command report by itself, without a word of it changed.

Values hold the placeholders `{report}` and `{probes}`. Where the person's environment has a value of its own for
one of them, `merge` keeps it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from proofstone.contracts.tests import ReportFormat

PATH_LIKE: Final = frozenset({"PYTHONPATH"})
"""Ours goes before the person's own value, with a colon between."""
SPACE_SEPARATED: Final = frozenset({"NODE_OPTIONS"})
"""Ours goes before the person's own value, with a space between."""

_PYTHON: Final = {"PYTHONPATH": "{probes}", "PROOFSTONE_REPORT": "{report}"}
_NODE: Final = {"NODE_OPTIONS": "--require={probes}/proofstone_node.cjs", "PROOFSTONE_REPORT": "{report}"}


def environment(format: ReportFormat | None) -> dict[str, str]:
    """For a check in this format; None for a person's own command, of which nobody knows what it will run.

    pytest finds the plug-in by the entry point that lies in `{probes}`. `PYTEST_PLUGINS` would make pytest refuse
    to start wherever a command sets PYTHONPATH itself (`PYTHONPATH=src pytest`); this way it merely has no report.
    """
    match format:
        case None:
            return {**_PYTHON, **_NODE}
        case ReportFormat.PYTEST:
            return dict(_PYTHON)
        case ReportFormat.UNITTEST:
            return {"PROOFSTONE_REPORT": "{report}"}
        case ReportFormat.NODE:
            return dict(_NODE)
        case _:
            return {}


def merge(present: Mapping[str, str], ours: Mapping[str, str]) -> dict[str, str]:
    """`present` with `ours` in it: prepended where the variable is a list, in its place otherwise."""
    merged = dict(present)
    for name, value in ours.items():
        separator = ":" if name in PATH_LIKE else " " if name in SPACE_SEPARATED else None
        own = present.get(name)
        merged[name] = f"{value}{separator}{own}" if own and separator else value
    return merged

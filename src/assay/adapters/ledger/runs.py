"""Which runs a ledger knows of, whatever started them: by their events, their checks or what was said in them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from assay.adapters.ledger.query import query
from assay.errors import InputError

MOST: Final = 1_000_000
_MOST_NAMED: Final = 5

_RUNS: Final = """
SELECT parts.run_id, (SELECT json_extract(payload, '$.repository') FROM events
                      WHERE run_id = parts.run_id AND type = 'run.started' ORDER BY seq LIMIT 1)
FROM (SELECT run_id, MIN(seq) AS seq FROM events GROUP BY run_id
      UNION ALL SELECT run_id, MIN(seq) FROM messages GROUP BY run_id
      UNION ALL SELECT run_id, MIN(seq) FROM anvil_checks GROUP BY run_id) AS parts
GROUP BY parts.run_id ORDER BY MIN(parts.seq) DESC
"""


@dataclass(frozen=True)
class KnownRun:
    run_id: str
    repository: str | None
    """None: it does not say."""


def known_runs(path: Path) -> tuple[KnownRun, ...]:
    """Newest first."""
    rows = query(path, _RUNS, limit=MOST).rows
    return tuple(KnownRun(str(run), None if repository is None else str(repository)) for run, repository in rows)


def find_any_run(path: Path, text: str, here: Path | None) -> str:
    """The id of the run that is meant: whole, its beginning or its end if that is unique, or `last`: of the repository
    `here`, or of all if one stands in none."""
    runs = known_runs(path)
    if not runs:
        raise InputError(f"{path}: there is no run yet", hint="`assay check` and `assay gate PLAN.md` start one")
    return meant(text, runs, here, "run", "`assay ledger show` lists the runs")


def meant(text: str, runs: Sequence[KnownRun], here: Path | None, what: str, otherwise: str) -> str:
    """The one of these runs, newest first, that is meant. `what` they are, and what helps whoever names none."""
    if text == "last":
        own = [run.run_id for run in runs if here is None or run.repository == str(here)]
        if not own:
            raise InputError(f"{here}: there is no {what} here", hint=f"the last one elsewhere is {runs[0].run_id}")
        return own[0]
    found = named(text, [run.run_id for run in runs])
    if len(found) == 1:
        return found[0]
    hint = f"it could be: {', '.join(found[:_MOST_NAMED])}" if found else otherwise
    raise InputError(f"{text}: names {'several runs' if found else 'no run'}", hint=hint)


def named(text: str, ids: Iterable[str]) -> list[str]:
    """Those that are called so, whole or by their beginning or end."""
    ids = list(ids)
    return [id for id in ids if id == text] or [id for id in ids if id.startswith(text) or id.endswith(text)]

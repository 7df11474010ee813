"""Whatever somebody else wrote, a reader returns a value or refuses it: it never fails otherwise and never hangs.

Here a sample for every reader; `make fuzz` and the sweep read a million inputs with each.
"""

from __future__ import annotations

import os

import pytest

from proofstone.check.models import ReportFormat
from tests.conftest import SEED
from tests.fuzz.checking import CORPUS, folder
from tests.fuzz.readers import READERS
from tests.fuzz.readers.projects import _FILES, JOURNAL, _report_seeds

SLOW = {
    **{"source": 10, "scanned-source": 15, "ledger-file": 15, "script": 40, "plan": 50, "plan-outline": 30},
    **{"plan-records": 50, "request": 60, "syntax": 50, "human-answer": 80},
}
"""Readers that take some milliseconds for an input, with the size of their sample."""
SAMPLE = 150
SWEEP = int(os.environ.get("PROOFSTONE_FUZZ_INPUTS", "1000000"))


@pytest.mark.parametrize("name", READERS)
def test_any_input_is_read_or_refused(name: str) -> None:
    reader = READERS[name]
    seeds = (*reader.seeds(), *reader.corpus)
    drawn = (reader.input(SEED, number) for number in range(SLOW.get(name, SAMPLE)))
    for data in (*seeds, *drawn):
        failure = reader.check(data)
        assert failure is None, f"{failure}\n{failure.trace}\n{data[:500]!r}"


@pytest.mark.sweep
@pytest.mark.parametrize("name", READERS)
def test_a_million_inputs_are_read_or_refused(name: str) -> None:
    reader = READERS[name]
    for number in range(SWEEP):
        failure = reader.check(data := reader.input("sweep", number))
        assert failure is None, f"input {number}: {failure}\n{failure.trace}\n{data[:500]!r}"


def test_every_folder_of_the_corpus_has_a_reader() -> None:
    assert {place.name for place in CORPUS.iterdir() if place.is_dir()} <= set(READERS)


@pytest.mark.parametrize("format", [one for one in _FILES if one is not ReportFormat.TAP])
def test_a_report_that_is_cut_off_is_never_complete(format: ReportFormat) -> None:
    """With its end goes what says that the runner has finished, whatever stands before it."""
    from proofstone.check.reports import read_report

    place = folder(f"cut-{format.value}")
    for seed in _report_seeds(format)() if format.value not in ("pytest", "unittest", "node") else (JOURNAL,):
        whole = seed.rstrip()
        for end in range(0, len(whole), max(1, len(whole) // 60)):
            (place / _FILES[format]).write_bytes(whole[:end])
            report = read_report(format, place, b"", root="/project", cwd=".", exit_code=0)
            assert not report.complete, f"complete after {end} of {len(whole)} bytes"

"""What each layer of evidence costs, as a share of the whole check.

`python -m benchmarks.layers [--quick]`

Runs beside the check overlap with it and with each other where there are cores, so shares of time spent add up to
more than what a person waits; that is the first line.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from unittest.mock import patch

from benchmarks import Measurement, show, timed
from benchmarks.check import QUICK, SUITE, WHOLE, Place, Shape
from proofstone.app.context import build_check_run
from proofstone.check.all_checks import AllChecks
from proofstone.check.context import CheckRequest, NullProgress
from proofstone.check.integrity import find_environment_tampering
from proofstone.check.layers import LayerExaminer
from proofstone.check.models import LayerResult
from proofstone.check.static_scan import scan_changes
from proofstone.ledger.models import CheckRow

LAYERS = {
    "L2 the base's tests beside the edited ones": ("old-tests", "old-tests-rerun"),
    "L4 and L5 tests that must fail": ("must-fail", "must-fail-again", "must-fail-on-base"),
    "L5 source put back": ("source-put-back",),
    "L5 changed functions made to raise": ("sabotaged",),
}
TEST = "\n\ndef test_spins():\n    assert spin(3) == 5\n"
REPAIR = "def spin(count):\n    found = 0\n    for n in range(count):\n        found += n * n % 7{}\n    return found\n"


def run(quick: bool = False) -> list[Measurement]:
    with tempfile.TemporaryDirectory(prefix="proofstone-bench-") as place:
        return layers(Place(Path(place)), QUICK if quick else WHOLE)


def layers(place: Place, shape: Shape) -> list[Measurement]:
    """A repair with a new test, in a suite that waits and computes; the base is known."""
    tested = SUITE.format(tests=shape.tests, sleep=shape.sleep, spin=shape.spin)
    wrong = REPAIR.format(" if n else 1")
    root = place.repository({"work.py": wrong, "test_work.py": tested, "conftest.py": ""})
    home = place.folder / "state"
    (root / "work.py").write_text(wrong + "\n")
    _whole(root, home)
    without, whole = [], []
    for round_ in range(2):
        (root / "test_work.py").write_text(tested + TEST)
        (root / "work.py").write_text(REPAIR.format("") + f"\n\nROUND = {round_}\n")
        with (
            patch.object(LayerExaminer, "examine", lambda *_: LayerResult()),
            patch.object(AllChecks, "_plant_early", lambda *_: None),
        ):
            without.append(timed(lambda: _whole(root, home)))
        (root / "work.py").write_text(REPAIR.format("") + f"\n\nROUND = {round_ + 10}\n")
        whole.append(timed(lambda: _whole(root, home)))
    return [
        Measurement(
            "check with all layers, against the same without them",
            min(whole) / min(without),
            "×",
            "≤ 2.5",
            min(whole) / min(without) <= 2.5,
        ),
        *_shares(root, home),
    ]


def _whole(root: Path, home: Path) -> None:
    with build_check_run(root, CheckRequest(), NullProgress(), home=home) as run:
        report = run.run()
    if report.outcome != "passed":
        raise RuntimeError(f"the benchmark's own change does not pass: {report.reason}")


def _shares(root: Path, home: Path) -> list[Measurement]:
    """Each layer's own time against the sum of all time spent on the check."""
    (root / "work.py").write_text(REPAIR.format("") + "\n\nROUND = 99\n")
    with build_check_run(root, CheckRequest(), NullProgress(), home=home) as run:
        report = run.run()
        rows = [stored.row for stored in run.context.ledger.read(CheckRow) if stored.row.run_id == report.run_id]
        spent = {
            name: sum(row.duration_ms or 0 for row in rows if row.check_name.rpartition(":")[2] in of) / 1000
            for name, of in LAYERS.items()
        }
        subject = run.subject
        spent["L1 the work tree frozen a second time"] = timed(subject.freeze)
        spent["L6 static scan"] = timed(lambda: scan_changes(subject.files))
        folders = subject.environment.dependencies
        spent["L7 the environment's integrity"] = timed(lambda: find_environment_tampering(folders, root))
        own = sum(line.duration_ms for line in report.checks) / 1000
    total = own + sum(spent.values())
    return [
        Measurement(f"{name}: share of the whole check", 100 * seconds / total, "%", "≤ 60", seconds / total <= 0.6)
        for name, seconds in spent.items()
    ]


if __name__ == "__main__":
    show(run)

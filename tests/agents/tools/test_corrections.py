"""What counts as a correction of an executor, and what does not."""

from __future__ import annotations

from proofstone.agents.tools.corrections import MAX_CORRECTIONS, CorrectionCount

VERIFY = ("python3 -m pytest  tests/a.py",)


def failing(count: CorrectionCount) -> None:
    count.note_run("python3 -m pytest tests/a.py", passed=False)


def test_changes_before_a_failure_are_no_corrections() -> None:
    count = CorrectionCount.of(VERIFY)
    assert all(count.note_change() for _ in range(5))
    count.note_run("python3 -m pytest tests/other.py", passed=False)
    assert count.note_change() and count.made == 0, "it is no verify command of the task"


def test_several_changes_after_one_failure_are_one_correction_and_the_third_is_refused() -> None:
    count = CorrectionCount.of(VERIFY)
    for made in range(1, MAX_CORRECTIONS + 1):
        failing(count)
        assert count.note_change() and count.note_change() and count.made == made
    failing(count)
    assert not count.note_change() and not count.note_change()
    assert count.made == MAX_CORRECTIONS


def test_after_the_command_has_passed_work_goes_on() -> None:
    count = CorrectionCount.of(VERIFY)
    for _ in range(MAX_CORRECTIONS):
        failing(count)
        count.note_change()
    failing(count)
    count.note_run(VERIFY[0], passed=True)
    assert count.note_change() and count.made == MAX_CORRECTIONS

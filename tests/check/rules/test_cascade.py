from __future__ import annotations

from proofstone.check.models import CheckKind, CheckSpec, ReportFormat
from proofstone.check.rules import outcome as cascade
from tests.rows import each_row


def spec(name: str, kind: CheckKind = CheckKind.TESTS, **more: object) -> CheckSpec:
    return CheckSpec.model_validate({"name": name, "kind": kind, "tier": 2, "tool": "t", **more})


PYTEST = spec("tests:pytest", argv=("{python}", "-m", "pytest"), report=ReportFormat.PYTEST)


@each_row(
    ("command", "same"),
    [
        ("pytest", True),
        ("pytest -q", True),
        ("python -m pytest -q --tb=short", True),
        ("/usr/bin/python3 -m pytest", True),
        ("uv run pytest -q", True),
        ("pytest -x", False),
        ("pytest tests/test_a.py", False),
        ("pytest -k fast", False),
        ("pytest -q && ruff check", False),
        ("pytest -q; true", False),
        ("make test", False),
        ("pytest 'unclosed", False),
        ("", False),
    ],
)
def test_a_verify_command_stands_for_the_discovered_tests_only_if_it_runs_exactly_those(
    command: str, same: bool
) -> None:
    assert cascade.is_same_test_command(command, PYTEST) is same
    names = [one.name for one in cascade.choose_specs([PYTEST], [command], disable=(), optional=())]
    assert names == (["verify"] if same else ["tests:pytest", "verify"])


def test_disabled_checks_do_not_run_and_optional_ones_do_not_decide() -> None:
    specs = [spec("tests:a"), spec("lint:b", CheckKind.LINT), spec("build:c", CheckKind.BUILD)]
    chosen = cascade.choose_specs(specs, [], disable=["lint:*"], optional=["build:c"])
    told = [(one.name, one.required, one.decides) for one in chosen]
    assert told == [("tests:a", True, True), ("build:c", False, False)]


def test_a_check_does_not_wait_for_one_that_is_disabled() -> None:
    specs = [spec("build:c", CheckKind.BUILD), spec("tests:c", needs=("build:c",))]
    (only,) = cascade.choose_specs(specs, [], disable=["build:*"], optional=[])
    assert only.needs == ()


def test_a_change_that_takes_away_the_configuration_of_tests_does_not_take_away_the_tests() -> None:
    names = [one.name for one in cascade.combine_specs([], [PYTEST, spec("lint:x", CheckKind.LINT)])]
    assert names == ["tests:pytest"]


def test_builds_come_before_what_needs_them_and_the_rest_runs_at_once() -> None:
    specs = [spec("tests:c", needs=("build:c",)), spec("build:c", CheckKind.BUILD), spec("lint:d", CheckKind.LINT)]
    order = [[one.name for one in wave] for wave in cascade.order_in_waves(specs)]
    assert order == [["build:c", "lint:d"], ["tests:c"]]

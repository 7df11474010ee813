"""Which checks run, in which order. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

from proofstone.contracts.check import CheckKind, CheckSpec
from proofstone.contracts.tests import ReportFormat

_RUNTIME = (CheckKind.BUILD, CheckKind.TESTS, CheckKind.VERIFY)
# Options of pytest that leave the selection of tests and the way it ends as they are.
_HARMLESS = frozenset(("-q", "-qq", "-v", "-vv", "-s", "-l", "--quiet", "--verbose", "--no-header", "--showlocals"))
_HARMLESS_PREFIXES = ("--tb=", "-r", "--color=", "--durations=", "--verbosity=")


_OPTIONAL = {"required": False, "decides": False}


def combined(after: Iterable[CheckSpec], before: Iterable[CheckSpec]) -> tuple[CheckSpec, ...]:
    """The checks of the changed tree, and the tests of the base that it no longer mentions.

    A change that takes away the configuration of the tests does not take away the tests.
    """
    specs = {spec.name: spec for spec in after}
    for spec in before:
        if spec.kind in (CheckKind.TESTS, CheckKind.BUILD):
            specs.setdefault(spec.name, spec)
    return tuple(specs.values())


def chosen(
    specs: Sequence[CheckSpec], verify: Sequence[str], *, disable: Sequence[str], optional: Sequence[str]
) -> tuple[CheckSpec, ...]:
    """The cascade: discovered checks without what is disabled or said already, then the person's own commands."""
    own = tuple(
        CheckSpec(
            name=verify_name(command, number, len(verify)), kind=CheckKind.VERIFY, tier=2, tool="sh", shell=command
        )
        for number, command in enumerate(verify, start=1)
    )
    kept = [
        spec.model_copy(update=_OPTIONAL if _matches(spec.name, optional) else {})
        for spec in specs
        if not _matches(spec.name, disable) and not any(same_tests(command, spec) for command in verify)
    ]
    present = {spec.name for spec in kept}
    return tuple(
        spec.model_copy(update={"needs": tuple(name for name in spec.needs if name in present)})
        for spec in (*kept, *own)
    )


def verify_name(command: str, number: int, count: int) -> str:
    return "verify" if count == 1 else f"verify-{number}"


def same_tests(command: str, spec: CheckSpec) -> bool:
    """Whether a person's command runs exactly what the discovered check would: then once is enough."""
    if spec.kind is not CheckKind.TESTS or spec.report is not ReportFormat.PYTEST or spec.cwd != ".":
        return False
    try:
        words = shlex.split(command)
    except ValueError:
        return False
    rest = _after_pytest(words)
    return rest is not None and all(word in _HARMLESS or word.startswith(_HARMLESS_PREFIXES) for word in rest)


def _after_pytest(words: Sequence[str]) -> Sequence[str] | None:
    """The arguments of pytest, when the command is nothing but pytest."""
    if words[:1] in (["pytest"], ["py.test"]):
        return words[1:]
    if len(words) >= 3 and words[0].rpartition("/")[2].startswith("python") and list(words[1:3]) == ["-m", "pytest"]:
        return words[3:]
    return words[3:] if list(words[:3]) == ["uv", "run", "pytest"] else None


def _matches(name: str, globs: Sequence[str]) -> bool:
    return any(fnmatchcase(name, glob) for glob in globs)


def waves(specs: Sequence[CheckSpec]) -> list[list[CheckSpec]]:
    """Checks that may run at the same time, in the order in which they can. `needs` in a circle never happens:
    discovery writes them, and a build needs nothing."""
    left, done, order = list(specs), set[str](), []
    while left:
        ready = [spec for spec in left if done.issuperset(spec.needs)] or left
        order.append(ready)
        done |= {spec.name for spec in ready}
        left = [spec for spec in left if spec not in ready]
    return order


def runtime_signal(specs: Sequence[CheckSpec]) -> bool:
    """Whether tiers 1 and 2 execute anything of the project's; if not, tier 3 must."""
    return any(spec.kind in _RUNTIME for spec in specs)

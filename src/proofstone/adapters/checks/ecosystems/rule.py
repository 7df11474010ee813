"""How an ecosystem is said as data: which files are signs of which check.

A rule holds when one of its signs is in the package; the sign found is the check's evidence. What a table cannot
say (the shape of a script, the start directory of a test run) is the ecosystem's `find`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from proofstone.adapters.checks.ecosystems.tree import Package, lookup
from proofstone.contracts.check import CheckKind, CheckSpec
from proofstone.contracts.tests import ReportFormat

TIER = 2  # everything discovered belongs to the cascade's second tier

TEST_FOLDERS = frozenset({"tests", "test", "__tests__"})
IGNORED = (
    TEST_FOLDERS
    | {
        "testdata",
        "test-data",
        "fixtures",
        "__fixtures__",
        "fixture",
        "examples",
        "example",
        "samples",
        "docs",
        "doc",
    }
    | {"vendor", "node_modules", "bower_components", "third_party", "third-party", "site-packages"}
)
"""A manifest below one of these, or below a folder that starts with a dot, describes something else."""


@dataclass(frozen=True, slots=True)
class Sign:
    """A file directly in the package (a pattern), and the table, section or key in it that says so."""

    file: str
    table: str = ""

    def evidence(self, package: Package) -> str | None:
        for name in package.top(self.file):
            if not self.table:
                return package.path(name)
            if lookup(package.table(name), self.table) is not None or self.table in package.table(name):
                return f"{package.path(name)} [{self.table}]"
        return None


@dataclass(frozen=True, slots=True)
class Rule:
    """`argv` with its last arguments from `arguments` where they depend on the package."""

    signs: tuple[Sign, ...]
    spec: CheckSpec
    arguments: Callable[[Package], tuple[str, ...]] | None = None

    def specs(self, package: Package) -> Iterable[CheckSpec]:
        evidence = next(filter(None, (sign.evidence(package) for sign in self.signs)), None)
        if evidence is None:
            return
        more = self.arguments(package) if self.arguments else ()
        yield self.spec.model_copy(update={"evidence": evidence, "argv": (*self.spec.argv, *more)})


def _nothing(package: Package) -> Iterable[CheckSpec]:
    return ()


def _separate(above: Package, below: Package, spec: CheckSpec) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class Ecosystem:
    name: str
    manifests: tuple[str, ...]
    """Patterns of file names that make their directory a package."""
    rules: tuple[Rule, ...] = ()
    find: Callable[[Package], Iterable[CheckSpec]] = _nothing
    covers: Callable[[Package, Package, CheckSpec], bool] = _separate
    """Whether a check of the package above already looks at the package below; asked only when the one above has a
    check of the same kind."""
    ignored: frozenset[str] = IGNORED
    weak_manifests: tuple[str, ...] = ()
    """Names that make a package only where no directory above is one."""
    root_signs: tuple[str, ...] = ()
    """Names that, found below no package at all, make the root one."""

    def specs(self, package: Package) -> tuple[CheckSpec, ...]:
        return (*(spec for rule in self.rules for spec in rule.specs(package)), *self.find(package))


def build(name: str, tool: str, *argv: str, install: str, needs: tuple[str, ...] = ()) -> CheckSpec:
    return CheckSpec(
        name=f"build:{name}", kind=CheckKind.BUILD, tier=TIER, tool=tool, argv=argv, install=install, needs=needs
    )


def tests(name: str, tool: str, *argv: str, report: ReportFormat, install: str, needs: str = "") -> CheckSpec:
    return CheckSpec(
        name=f"tests:{name}",
        kind=CheckKind.TESTS,
        tier=TIER,
        tool=tool,
        argv=argv,
        report=report,
        install=install,
        needs=(needs,) if needs else (),
    )


def optional(
    kind: CheckKind, name: str, tool: str, *argv: str, install: str, suffixes: tuple[str, ...] = ()
) -> CheckSpec:
    """Types and lint: a missing tool is said but does not decide, a failure does."""
    return CheckSpec(
        name=f"{kind}:{name}",
        kind=kind,
        tier=TIER,
        tool=tool,
        argv=argv,
        install=install,
        suffixes=suffixes,
        required=False,
    )

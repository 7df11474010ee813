"""Go and Rust: one tool each that builds, checks and tests. Checks run without network, so Cargo is told so."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase

from proofstone.adapters.checks.ecosystems.rule import Ecosystem, Rule, Sign, build, optional, tests
from proofstone.adapters.checks.ecosystems.tree import Package, strings, subtable
from proofstone.contracts.check import CheckKind, CheckSpec
from proofstone.contracts.tests import ReportFormat

_GO = "install Go from your distribution (golang) or go.dev"
_CARGO = "install Rust from your distribution (cargo) or rustup.rs"
_MODULE = (Sign("go.mod"),)


def _has_go_tests(package: Package) -> Iterable[CheckSpec]:
    if package.named("*_test.go"):
        spec = tests("go", "go", "go", "test", "-json", "./...", report=ReportFormat.GO, install=_GO)
        yield spec.model_copy(update={"needs": ("build:go",), "evidence": package.path("go.mod")})


GO = Ecosystem(
    name="go",
    manifests=("go.mod",),
    rules=(
        Rule(_MODULE, build("go", "go", "go", "build", "./...", install=_GO)),
        Rule(_MODULE, optional(CheckKind.LINT, "go-vet", "go", "go", "vet", "./...", install=_GO)),
    ),
    find=_has_go_tests,
)


def _workspace(package: Package) -> tuple[str, ...]:
    """Every member, also where the root is a package itself: cargo alone would look at that one only."""
    return ("--workspace",) if "workspace" in package.table("Cargo.toml") else ()


def _is_member(above: Package, below: Package, spec: CheckSpec) -> bool:
    """Cargo counts every package below a workspace as a member unless it is excluded or a workspace itself."""
    workspace = subtable(above.table("Cargo.toml"), "workspace")
    excluded = [above.path(glob.rstrip("/")) for glob in strings(workspace.get("exclude"))]
    out = any(fnmatchcase(below.directory, glob) or below.directory.startswith(f"{glob}/") for glob in excluded)
    return bool(_workspace(above)) and not out and "workspace" not in below.table("Cargo.toml")


_CRATE = (Sign("Cargo.toml", "package"), Sign("Cargo.toml", "workspace"))

RUST = Ecosystem(
    name="rust",
    manifests=("Cargo.toml",),
    rules=(
        Rule(_CRATE, build("cargo", "cargo", "cargo", "build", "--offline", "--tests", install=_CARGO), _workspace),
        Rule(
            _CRATE,
            tests(
                *("cargo", "cargo", "cargo", "test", "--offline", "--no-fail-fast"),
                report=ReportFormat.CARGO,
                install=_CARGO,
                needs="build:cargo",
            ),
            _workspace,
        ),
        Rule(
            (
                Sign("clippy.toml"),
                Sign(".clippy.toml"),
                Sign("Cargo.toml", "lints.clippy"),
                Sign("Cargo.toml", "workspace.lints.clippy"),
            ),
            optional(
                CheckKind.LINT,
                "clippy",
                "cargo-clippy",
                *("cargo", "clippy", "--offline", "--quiet", "--message-format=short", "--all-targets"),
                install="rustup component add clippy",
            ),
            _workspace,
        ),
    ),
    covers=_is_member,
)

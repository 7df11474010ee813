"""Go and Rust: one tool each that builds, checks and tests. Checks run without network, so Cargo is told so.

C and C++ by CMake, and make for projects that name their tests in a Makefile only.

The tests configure and build by themselves in a folder of their own: nothing to do when the build check's folder
is still there, and right when it is not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase

from proofstone.check.ecosystems.ecosystem import (
    Ecosystem,
    Package,
    Rule,
    Sign,
    build,
    optional,
    strings,
    subtable,
    tests,
)
from proofstone.check.models import CheckKind, CheckSpec, ReportFormat

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


_FOLDER = "proofstone-build"
_CONFIGURE = f"cmake -S . -B {_FOLDER} && cmake --build {_FOLDER} --parallel 2"
_CTEST = f"ctest --test-dir {_FOLDER} --output-on-failure --output-junit '{{report}}/ctest.xml'"
_PROJECT = re.compile(r"^\s*project\s*\(", re.MULTILINE | re.IGNORECASE)
_TESTING = re.compile(r"^\s*(?:enable_testing\s*\(|include\s*\(\s*CTest\b)", re.MULTILINE | re.IGNORECASE)
_TARGET = re.compile(r"^(?:[\w.-]+ +)*(test|check)(?: +[\w.-]+)* *::?(?!=)", re.MULTILINE)
_INSTALL = "install CMake 3.21 or later and a C or C++ compiler"


def _cmake(package: Package) -> Iterable[CheckSpec]:
    if not _PROJECT.search(package.text("CMakeLists.txt")):
        return
    sign = package.path("CMakeLists.txt")
    yield build("cmake", "cmake", "sh", "-c", _CONFIGURE, install=_INSTALL).model_copy(update={"evidence": sign})
    below = "" if package.directory == "." else f"{package.directory}/"
    lists = [path for path in package.tree.paths if path.startswith(below) and path.endswith("CMakeLists.txt")]
    testing = next((path for path in lists if _TESTING.search(package.tree.text(path) or "")), None)
    if testing is not None:
        yield tests(
            *("ctest", "ctest", "sh", "-c", f"{_CONFIGURE} && {_CTEST}"),
            report=ReportFormat.JUNIT,
            install=_INSTALL,
            needs="build:cmake",
        ).model_copy(update={"evidence": f"{testing} turns testing on"})


def _covers(above: Package, below: Package, spec: CheckSpec) -> bool:
    return True


def _make(package: Package) -> Iterable[CheckSpec]:
    for name in package.top("GNUmakefile", "makefile", "Makefile")[:1]:
        target = next((word for word in ("test", "check") if word in _TARGET.findall(package.text(name))), None)
        if target is not None:
            yield tests(
                *("make", "make", "make", target), report=ReportFormat.EXIT_CODE, install="install make"
            ).model_copy(update={"evidence": f"{package.path(name)} target {target}"})


CMAKE = Ecosystem(name="cmake", manifests=("CMakeLists.txt",), find=_cmake, covers=_covers)
MAKE = Ecosystem(name="make", manifests=("Makefile",), find=_make)
"""Asked for the root only, and only where no other ecosystem has tests."""

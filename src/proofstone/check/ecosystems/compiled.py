"""Ecosystems of compiled languages: Go, Rust, CMake and make.

Go and Rust have one tool each that builds, checks and tests. Checks run without network, so Cargo gets `--offline`.

make is used for projects that name their tests only in a Makefile. The CMake tests configure and build by themselves in
a folder of their own: that costs nothing if the build check's folder still exists, and is correct if it does not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase

from proofstone.check.ecosystems.ecosystem import (
    DiscoveryRule,
    Ecosystem,
    EvidenceMarker,
    Package,
    find_subtable,
    list_strings,
    make_build_check,
    make_optional_check,
    make_test_check,
)
from proofstone.check.models import CheckKind, CheckSpec, ReportFormat

_INSTALL_GO = "install Go from your distribution (golang) or go.dev"
_INSTALL_CARGO = "install Rust from your distribution (cargo) or rustup.rs"
_GO_MODULE = (EvidenceMarker("go.mod"),)


def _find_go_tests(package: Package) -> Iterable[CheckSpec]:
    if package.find_named("*_test.go"):
        spec = make_test_check("go", "go", "go", "test", "-json", "./...", report=ReportFormat.GO, install=_INSTALL_GO)
        yield spec.model_copy(update={"needs": ("build:go",), "evidence": package.path("go.mod")})


GO = Ecosystem(
    name="go",
    manifests=("go.mod",),
    rules=(
        DiscoveryRule(_GO_MODULE, make_build_check("go", "go", "go", "build", "./...", install=_INSTALL_GO)),
        DiscoveryRule(
            _GO_MODULE, make_optional_check(CheckKind.LINT, "go-vet", "go", "go", "vet", "./...", install=_INSTALL_GO)
        ),
    ),
    find=_find_go_tests,
)


def _workspace_arguments(package: Package) -> tuple[str, ...]:
    """Select every member, also if the root is a package itself: without this, cargo would use only the root."""
    return ("--workspace",) if "workspace" in package.table("Cargo.toml") else ()


def _is_member(above: Package, below: Package, spec: CheckSpec) -> bool:
    """Return whether a package is a member. Cargo counts every package below a workspace unless it is excluded or a
    workspace itself."""
    workspace = find_subtable(above.table("Cargo.toml"), "workspace")
    excluded = [above.path(glob.rstrip("/")) for glob in list_strings(workspace.get("exclude"))]
    is_excluded = any(fnmatchcase(below.directory, glob) or below.directory.startswith(f"{glob}/") for glob in excluded)
    return bool(_workspace_arguments(above)) and not is_excluded and "workspace" not in below.table("Cargo.toml")


_CRATE = (EvidenceMarker("Cargo.toml", "package"), EvidenceMarker("Cargo.toml", "workspace"))

RUST = Ecosystem(
    name="rust",
    manifests=("Cargo.toml",),
    rules=(
        DiscoveryRule(
            _CRATE,
            make_build_check("cargo", "cargo", "cargo", "build", "--offline", "--tests", install=_INSTALL_CARGO),
            _workspace_arguments,
        ),
        DiscoveryRule(
            _CRATE,
            make_test_check(
                *("cargo", "cargo", "cargo", "test", "--offline", "--no-fail-fast"),
                report=ReportFormat.CARGO,
                install=_INSTALL_CARGO,
                needs="build:cargo",
            ),
            _workspace_arguments,
        ),
        DiscoveryRule(
            (
                EvidenceMarker("clippy.toml"),
                EvidenceMarker(".clippy.toml"),
                EvidenceMarker("Cargo.toml", "lints.clippy"),
                EvidenceMarker("Cargo.toml", "workspace.lints.clippy"),
            ),
            make_optional_check(
                CheckKind.LINT,
                "clippy",
                "cargo-clippy",
                *("cargo", "clippy", "--offline", "--quiet", "--message-format=short", "--all-targets"),
                install="rustup component add clippy",
            ),
            _workspace_arguments,
        ),
    ),
    covers=_is_member,
)


_BUILD_FOLDER = "proofstone-build"
_CONFIGURE = f"cmake -S . -B {_BUILD_FOLDER} && cmake --build {_BUILD_FOLDER} --parallel 2"
_CTEST = f"ctest --test-dir {_BUILD_FOLDER} --output-on-failure --output-junit '{{report}}/ctest.xml'"
_PROJECT = re.compile(r"^\s*project\s*\(", re.MULTILINE | re.IGNORECASE)
_TESTING = re.compile(r"^\s*(?:enable_testing\s*\(|include\s*\(\s*CTest\b)", re.MULTILINE | re.IGNORECASE)
_TARGET = re.compile(r"^(?:[\w.-]+ +)*(test|check)(?: +[\w.-]+)* *::?(?!=)", re.MULTILINE)
_INSTALL = "install CMake 3.21 or later and a C or C++ compiler"


def _find_cmake(package: Package) -> Iterable[CheckSpec]:
    if not _PROJECT.search(package.text("CMakeLists.txt")):
        return
    sign = package.path("CMakeLists.txt")
    yield make_build_check("cmake", "cmake", "sh", "-c", _CONFIGURE, install=_INSTALL).model_copy(
        update={"evidence": sign}
    )
    below = "" if package.directory == "." else f"{package.directory}/"
    lists = [path for path in package.tree.paths if path.startswith(below) and path.endswith("CMakeLists.txt")]
    test_list = next((path for path in lists if _TESTING.search(package.tree.read_text(path) or "")), None)
    if test_list is not None:
        yield make_test_check(
            *("ctest", "ctest", "sh", "-c", f"{_CONFIGURE} && {_CTEST}"),
            report=ReportFormat.JUNIT,
            install=_INSTALL,
            needs="build:cmake",
        ).model_copy(update={"evidence": f"{test_list} turns testing on"})


def _covers_all(above: Package, below: Package, spec: CheckSpec) -> bool:
    return True


def _find_make(package: Package) -> Iterable[CheckSpec]:
    for name in package.find_top_level("GNUmakefile", "makefile", "Makefile")[:1]:
        target = next((word for word in ("test", "check") if word in _TARGET.findall(package.text(name))), None)
        if target is not None:
            yield make_test_check(
                *("make", "make", "make", target), report=ReportFormat.EXIT_CODE, install="install make"
            ).model_copy(update={"evidence": f"{package.path(name)} target {target}"})


CMAKE = Ecosystem(name="cmake", manifests=("CMakeLists.txt",), find=_find_cmake, covers=_covers_all)
MAKE = Ecosystem(name="make", manifests=("Makefile",), find=_find_make)
"""Used for the root only, and only if no other ecosystem has tests."""

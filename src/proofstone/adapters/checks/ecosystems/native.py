"""C and C++ by CMake, and make for projects that name their tests in a Makefile only.

The tests configure and build by themselves in a folder of their own: nothing to do when the build check's folder
is still there, and right when it is not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from proofstone.adapters.checks.ecosystems.rule import Ecosystem, build, tests
from proofstone.adapters.checks.ecosystems.tree import Package
from proofstone.contracts.check import CheckSpec
from proofstone.contracts.tests import ReportFormat

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

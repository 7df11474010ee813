""".NET: a solution speaks for all its projects; without one each test project speaks for itself."""

from __future__ import annotations

import re
from collections.abc import Iterable

from proofstone.adapters.checks.ecosystems.rule import IGNORED, TEST_FOLDERS, Ecosystem, build, tests
from proofstone.adapters.checks.ecosystems.tree import Package
from proofstone.contracts.check import CheckSpec
from proofstone.contracts.tests import ReportFormat

_SOLUTIONS = ("*.sln", "*.slnx")
_PROJECTS = ("*.csproj", "*.fsproj", "*.vbproj")
_TEST_PROJECT = re.compile(r"Microsoft\.NET\.Test\.Sdk|<IsTestProject>\s*true|\"xunit|\"NUnit|\"MSTest", re.IGNORECASE)
_INSTALL = "install the .NET SDK (dotnet)"


def _find(package: Package) -> Iterable[CheckSpec]:
    sign = package.top(*_SOLUTIONS, *_PROJECTS)[0]
    evidence = {"evidence": package.path(sign)}
    yield build("dotnet", "dotnet", "dotnet", "build", "--no-restore", sign, install=_INSTALL).model_copy(
        update=evidence
    )
    texts = [package.tree.text(path) or "" for path in _projects(package)]
    if any(_TEST_PROJECT.search(text) for text in texts):
        # A logger that writes JUnit is a package of its own; only a project that has it can be asked for ids.
        junit = any("JunitXml.TestLogger" in text for text in texts)
        logger = ("--logger", "junit;LogFilePath={report}/{assembly}.xml") if junit else ()
        yield tests(
            *("dotnet", "dotnet", "dotnet", "test", "--no-restore", sign, *logger),
            report=ReportFormat.JUNIT if junit else ReportFormat.EXIT_CODE,
            install=_INSTALL,
            needs="build:dotnet",
        ).model_copy(update=evidence)


def _projects(package: Package) -> list[str]:
    """The solution's projects are in folders of their own: all below it, or the ones in this directory."""
    below = "" if package.directory == "." else f"{package.directory}/"
    endings = tuple(pattern[1:] for pattern in _PROJECTS)
    solution = bool(package.top(*_SOLUTIONS))
    found = [path for path in package.tree.paths if path.startswith(below) and path.endswith(endings)]
    return found if solution else [path for path in found if "/" not in path[len(below) :]]


def _covers(above: Package, below: Package, spec: CheckSpec) -> bool:
    return bool(above.top(*_SOLUTIONS))


DOTNET = Ecosystem(
    name="dotnet",
    manifests=(*_SOLUTIONS, *_PROJECTS),
    find=_find,
    covers=_covers,
    ignored=IGNORED - TEST_FOLDERS,  # test projects live there, with manifests of their own
)

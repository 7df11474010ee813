"""Ecosystems with a managed runtime: Maven, Gradle and .NET.

Maven and Gradle run offline, through the project's own wrapper if it has one. Neither has an option that moves its test
reports (Surefire's reportsDirectory has no command-line property), so the test command copies them to the report
directory and keeps the tool's exit code.

In .NET, a solution covers all its projects; without one, each test project has its own checks.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from posixpath import normpath

from proofstone.check.ecosystems.ecosystem import (
    IGNORED_FOLDERS,
    TEST_FOLDERS,
    Ecosystem,
    Package,
    make_build_check,
    make_test_check,
)
from proofstone.check.models import CheckSpec, ReportFormat

_TEST_SOURCES = re.compile(r"(?:^|/)src/(?:test|[a-z]+Test)/")
_GRADLE_BUILDS = ("build.gradle", "build.gradle.kts")
_GRADLE_SETTINGS = ("settings.gradle", "settings.gradle.kts")


def _copy_reports(command: str, reports: str) -> tuple[str, ...]:
    """Return a command that runs `command` and copies its reports, with different names if two modules have the same
    class."""
    copy = 'cp "$found" "{report}/$(printf %s "$found" | tr / _)"'
    script = f"{command}; code=$?; find . -path '{reports}' | while read -r found; do {copy}; done; exit $code"
    return ("sh", "-c", script)


def _build_specs(
    package: Package, name: str, command: tuple[str, str], goals: tuple[str, str], reports: str, sign: str
) -> Iterable[CheckSpec]:
    tool, program = command
    compile_goal, test_goal = goals
    install = f"install {name} and a JDK" if tool == name else "install a JDK"
    specs = [make_build_check(name, tool, *f"{program} {compile_goal}".split(), install=install)]
    # Modules have their tests below them, so search the whole tree of the package.
    if any(_TEST_SOURCES.search(path) for path in package.tree.paths if path.startswith(_prefix(package))):
        argv = _copy_reports(f"{program} {test_goal}", reports)
        specs.append(
            make_test_check(name, tool, *argv, report=ReportFormat.JUNIT, install=install, needs=f"build:{name}")
        )
    return [spec.model_copy(update={"evidence": package.path(sign)}) for spec in specs]


def _prefix(package: Package) -> str:
    return "" if package.directory == "." else f"{package.directory}/"


def _find_maven(package: Package) -> Iterable[CheckSpec]:
    command = ("java", "sh ./mvnw -o -B") if package.has("mvnw") else ("mvn", "mvn -o -B")
    return _build_specs(
        package, "maven", command, ("test-compile", "test"), "*/target/surefire-reports/TEST-*.xml", "pom.xml"
    )


def _find_gradle(package: Package) -> Iterable[CheckSpec]:
    command = ("java", "sh ./gradlew --offline") if package.has("gradlew") else ("gradle", "gradle --offline")
    sign = package.find_top_level(*_GRADLE_BUILDS, *_GRADLE_SETTINGS)[0]
    goals = ("testClasses", "test --continue")
    return _build_specs(package, "gradle", command, goals, "*/build/test-results/*/TEST-*.xml", sign)


def _is_module(above: Package, below: Package, spec: CheckSpec) -> bool:
    modules = re.findall(r"<module>\s*([^<]+?)\s*</module>", above.text("pom.xml"))
    return any(normpath(above.path(module)).removesuffix("/pom.xml") == below.directory for module in modules)


def _is_project(above: Package, below: Package, spec: CheckSpec) -> bool:
    return any(map(above.has, _GRADLE_SETTINGS)) and not any(map(below.has, _GRADLE_SETTINGS))


MAVEN = Ecosystem(name="maven", manifests=("pom.xml",), find=_find_maven, covers=_is_module)
GRADLE = Ecosystem(
    name="gradle",
    manifests=(*_GRADLE_BUILDS, *_GRADLE_SETTINGS),
    find=_find_gradle,
    covers=_is_project,
)


_SOLUTIONS = ("*.sln", "*.slnx")
_PROJECTS = ("*.csproj", "*.fsproj", "*.vbproj")
_TEST_PROJECT = re.compile(r"Microsoft\.NET\.Test\.Sdk|<IsTestProject>\s*true|\"xunit|\"NUnit|\"MSTest", re.IGNORECASE)
_INSTALL = "install the .NET SDK (dotnet)"


def _find_dotnet(package: Package) -> Iterable[CheckSpec]:
    sign = package.find_top_level(*_SOLUTIONS, *_PROJECTS)[0]
    evidence = {"evidence": package.path(sign)}
    yield make_build_check("dotnet", "dotnet", "dotnet", "build", "--no-restore", sign, install=_INSTALL).model_copy(
        update=evidence
    )
    texts = [package.tree.read_text(path) or "" for path in _list_projects(package)]
    if any(_TEST_PROJECT.search(text) for text in texts):
        # The JUnit logger is a separate package; only a project that has it can report ids.
        has_junit = any("JunitXml.TestLogger" in text for text in texts)
        logger = ("--logger", "junit;LogFilePath={report}/{assembly}.xml") if has_junit else ()
        yield make_test_check(
            *("dotnet", "dotnet", "dotnet", "test", "--no-restore", sign, *logger),
            report=ReportFormat.JUNIT if has_junit else ReportFormat.EXIT_CODE,
            install=_INSTALL,
            needs="build:dotnet",
        ).model_copy(update=evidence)


def _list_projects(package: Package) -> list[str]:
    """Return all projects below a solution, because each has a folder of its own; otherwise the projects in this
    directory."""
    below = "" if package.directory == "." else f"{package.directory}/"
    endings = tuple(pattern[1:] for pattern in _PROJECTS)
    has_solution = bool(package.find_top_level(*_SOLUTIONS))
    projects = [path for path in package.tree.paths if path.startswith(below) and path.endswith(endings)]
    return projects if has_solution else [path for path in projects if "/" not in path[len(below) :]]


def _is_solution(above: Package, below: Package, spec: CheckSpec) -> bool:
    return bool(above.find_top_level(*_SOLUTIONS))


DOTNET = Ecosystem(
    name="dotnet",
    manifests=(*_SOLUTIONS, *_PROJECTS),
    find=_find_dotnet,
    covers=_is_solution,
    ignored=IGNORED_FOLDERS - TEST_FOLDERS,  # test projects are there, with manifests of their own
)

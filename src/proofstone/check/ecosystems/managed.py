"""Java and its kin by Maven or Gradle, offline, through the project's own wrapper where it has one.

Neither tool has an option that moves its test reports (Surefire's reportsDirectory has no property of the command
line), so the test command copies them to the report directory and keeps the tool's exit code.

.NET: a solution speaks for all its projects; without one each test project speaks for itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from posixpath import normpath

from proofstone.check.ecosystems.ecosystem import IGNORED, TEST_FOLDERS, Ecosystem, Package, build, tests
from proofstone.check.models import CheckSpec, ReportFormat

_TEST_SOURCES = re.compile(r"(?:^|/)src/(?:test|[a-z]+Test)/")
_GRADLE_BUILDS = ("build.gradle", "build.gradle.kts")
_GRADLE_SETTINGS = ("settings.gradle", "settings.gradle.kts")


def _collecting(command: str, reports: str) -> tuple[str, ...]:
    """`command`, then its reports under names that stay apart when two modules have the same class."""
    copy = 'cp "$found" "{report}/$(printf %s "$found" | tr / _)"'
    script = f"{command}; code=$?; find . -path '{reports}' | while read -r found; do {copy}; done; exit $code"
    return ("sh", "-c", script)


def _specs(
    package: Package, name: str, command: tuple[str, str], goals: tuple[str, str], reports: str, sign: str
) -> Iterable[CheckSpec]:
    tool, program = command
    compile_goal, test_goal = goals
    install = f"install {name} and a JDK" if tool == name else "install a JDK"
    made = [build(name, tool, *f"{program} {compile_goal}".split(), install=install)]
    # Modules keep their tests below themselves, so a look at the whole tree of the package is right.
    if any(_TEST_SOURCES.search(path) for path in package.tree.paths if path.startswith(_prefix(package))):
        argv = _collecting(f"{program} {test_goal}", reports)
        made.append(tests(name, tool, *argv, report=ReportFormat.JUNIT, install=install, needs=f"build:{name}"))
    return [spec.model_copy(update={"evidence": package.path(sign)}) for spec in made]


def _prefix(package: Package) -> str:
    return "" if package.directory == "." else f"{package.directory}/"


def _maven(package: Package) -> Iterable[CheckSpec]:
    command = ("java", "sh ./mvnw -o -B") if package.has("mvnw") else ("mvn", "mvn -o -B")
    return _specs(
        package, "maven", command, ("test-compile", "test"), "*/target/surefire-reports/TEST-*.xml", "pom.xml"
    )


def _gradle(package: Package) -> Iterable[CheckSpec]:
    command = ("java", "sh ./gradlew --offline") if package.has("gradlew") else ("gradle", "gradle --offline")
    sign = package.top(*_GRADLE_BUILDS, *_GRADLE_SETTINGS)[0]
    goals = ("testClasses", "test --continue")
    return _specs(package, "gradle", command, goals, "*/build/test-results/*/TEST-*.xml", sign)


def _is_module(above: Package, below: Package, spec: CheckSpec) -> bool:
    modules = re.findall(r"<module>\s*([^<]+?)\s*</module>", above.text("pom.xml"))
    return any(normpath(above.path(module)).removesuffix("/pom.xml") == below.directory for module in modules)


def _is_project(above: Package, below: Package, spec: CheckSpec) -> bool:
    return any(map(above.has, _GRADLE_SETTINGS)) and not any(map(below.has, _GRADLE_SETTINGS))


MAVEN = Ecosystem(name="maven", manifests=("pom.xml",), find=_maven, covers=_is_module)
GRADLE = Ecosystem(
    name="gradle",
    manifests=(*_GRADLE_BUILDS, *_GRADLE_SETTINGS),
    find=_gradle,
    covers=_is_project,
)


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

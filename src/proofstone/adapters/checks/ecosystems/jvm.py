"""Java and its kin by Maven or Gradle, offline, through the project's own wrapper where it has one.

Neither tool has an option that moves its test reports (Surefire's reportsDirectory has no property of the command
line), so the test command copies them to the report directory and keeps the tool's exit code.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from posixpath import normpath

from proofstone.adapters.checks.ecosystems.rule import Ecosystem, build, tests
from proofstone.adapters.checks.ecosystems.tree import Package
from proofstone.contracts.check import CheckSpec
from proofstone.contracts.tests import ReportFormat

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

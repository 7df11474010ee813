"""Go, Rust, Java, .NET, Ruby, CMake and make."""

from __future__ import annotations

from proofstone.check.models import ReportFormat
from tests.check.ecosystems.trees import Files, names_of, spec_of
from tests.rows import each_row

CASES: dict[str, tuple[Files, set[str]]] = {
    "go": ({"go.mod": "module a\n", "a_test.go": ""}, {"build:go", "lint:go-vet", "tests:go"}),
    "go without tests": ({"go.mod": "module a\n", "a.go": ""}, {"build:go", "lint:go-vet"}),
    "go modules below": (
        {"go.mod": "", "a_test.go": "", "tools/go.mod": "", "tools/main.go": ""},
        {"build:go", "lint:go-vet", "tests:go", "build:go@tools", "lint:go-vet@tools"},
    ),
    "rust": ({"Cargo.toml": "[package]\nname='a'\n"}, {"build:cargo", "tests:cargo"}),
    "rust with clippy": (
        {"Cargo.toml": "[package]\nname='a'\n[lints.clippy]\nall='warn'\n"},
        {"build:cargo", "tests:cargo", "lint:clippy"},
    ),
    "cargo workspace": (
        {
            "Cargo.toml": "[workspace]\nmembers=['a']\nexclude=['c']\n",
            "a/Cargo.toml": "[package]\nname='a'\n",
            "b/Cargo.toml": "[package]\nname='b'\n",
            "c/Cargo.toml": "[package]\nname='c'\n",
        },
        {"build:cargo", "tests:cargo", "build:cargo@c", "tests:cargo@c"},
    ),
    "maven": ({"pom.xml": "<project/>", "src/test/java/ATest.java": ""}, {"build:maven", "tests:maven"}),
    "maven modules": (
        {
            "pom.xml": "<project><modules><module>a</module></modules></project>",
            "a/pom.xml": "<project/>",
            "a/src/test/java/ATest.java": "",
            "b/pom.xml": "<project/>",
        },
        {"build:maven", "tests:maven", "build:maven@b"},
    ),
    "gradle": (
        {"settings.gradle.kts": "", "app/build.gradle.kts": "", "app/src/test/kotlin/ATest.kt": "", "gradlew": ""},
        {"build:gradle", "tests:gradle"},
    ),
    "dotnet solution": (
        {
            "A.sln": "",
            "A/A.csproj": "",
            "tests/T/T.csproj": '<PackageReference Include="Microsoft.NET.Test.Sdk"/>',
        },
        {"build:dotnet", "tests:dotnet"},
    ),
    "dotnet projects": (
        {"A/A.csproj": "", "tests/T/T.csproj": '<PackageReference Include="xunit"/>'},
        {"build:dotnet@A", "build:dotnet@tests/T", "tests:dotnet@tests/T"},
    ),
    "rspec": ({".rspec": "", "spec/a_spec.rb": "", "Gemfile": ""}, {"tests:rspec"}),
    "rake": ({"Rakefile": "Rake::TestTask.new\n", "Gemfile": ""}, {"tests:rake"}),
    "rubocop": ({".rubocop.yml": "", "Gemfile": ""}, {"lint:rubocop"}),
    "cmake": (
        {"CMakeLists.txt": "project(a)\nadd_subdirectory(t)\n", "t/CMakeLists.txt": "enable_testing()\n"},
        {"build:cmake", "tests:ctest"},
    ),
    "cmake without tests": ({"CMakeLists.txt": "project(a C)\n"}, {"build:cmake"}),
    "make": ({"Makefile": "all:\n\ttrue\ntest: all\n\ttrue\n"}, {"tests:make"}),
    "make check": ({"Makefile": ".PHONY: check\ncheck:\n\ttrue\n"}, {"tests:make"}),
    "make with a variable": ({"Makefile": "test := 1\ntests:\n\ttrue\n"}, set()),
    "make below pytest": ({"Makefile": "test:\n\tpytest\n", "pytest.ini": "[pytest]\n"}, {"tests:pytest"}),
    "make beside a runner that no configuration names": (
        {"Makefile": "test:\n\tpytest\n", "test_a.py": "def test_a():\n    assert True\n"},
        {"tests:pytest", "tests:make"},
    ),
    "an empty tree": ({}, set()),
}


@each_row(("files", "expected"), CASES.values())
def test_a_tree_gives_exactly_these_checks(files: Files, expected: set[str]) -> None:
    assert names_of(files) == expected


def test_a_cargo_workspace_is_built_and_tested_as_a_whole() -> None:
    spec = spec_of({"Cargo.toml": "[workspace]\n[package]\nname='a'\n"}, "tests:cargo")
    assert spec.argv == ("cargo", "test", "--offline", "--no-fail-fast", "--workspace")
    assert spec.needs == ("build:cargo",)


def test_wrappers_are_preferred_and_need_java_only() -> None:
    files = {"pom.xml": "", "mvnw": "", "src/test/java/ATest.java": ""}
    spec = spec_of(files, "tests:maven")
    assert spec.tool == "java"
    assert spec.argv[2].startswith("sh ./mvnw -o -B test;")
    assert "{report}" in spec.argv[2]
    assert spec.report is ReportFormat.JUNIT


def test_dotnet_and_rspec_report_ids_only_with_a_logger_in_the_project() -> None:
    plain = {"A.csproj": "Microsoft.NET.Test.Sdk"}
    assert spec_of(plain, "tests:dotnet").report is ReportFormat.EXIT_CODE
    assert spec_of({"A.csproj": "Microsoft.NET.Test.Sdk JunitXml.TestLogger"}, "tests:dotnet").report is (
        ReportFormat.JUNIT
    )
    gems = {"Gemfile": "gem 'rspec'\ngem 'rspec_junit_formatter'", "spec/a_spec.rb": ""}
    assert spec_of(gems, "tests:rspec").report is ReportFormat.JUNIT


def test_every_check_names_its_evidence_and_how_to_install_its_tool() -> None:
    for files, _ in CASES.values():
        for name in names_of(files):
            spec = spec_of(files, name)
            assert spec.evidence.split(" ")[0].rstrip(":") in files
            assert spec.install
            assert spec.argv

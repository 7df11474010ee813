"""What was planted in an environment is found, and what installers and honest tools write is not."""

from __future__ import annotations

import base64
import hashlib
import importlib.metadata
import os
import py_compile
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from proofstone.check.integrity import find_environment_tampering
from proofstone.common.models import Finding, Severity

MAJOR, MINOR = Severity.MAJOR, Severity.MINOR
STARTUP, TAMPERED = "environment-startup-file", "environment-tampered"
RUNNER = {"_pytest/__init__.py": "", "_pytest/runner.py": "def run(): ...\n", "pytest/__init__.py": ""}
LAUNCHER = (
    "#!{bin}/python\nimport re\nimport sys\nfrom pytest import main\nif __name__ == '__main__':\n"
    "    sys.argv[0] = re.sub(r'(-script\\.pyw|\\.exe)?$', '', sys.argv[0])\n    sys.exit(main())\n"
)
VIRTUALENV = "import sys\n_DISTUTILS_PATCH = 'distutils.dist', 'setuptools.dist'\nsys.meta_path.insert(0, object())\n"


@dataclass(frozen=True)
class Env:
    """A virtual environment in a repository, filled as an installer would."""

    root: Path

    @property
    def folder(self) -> Path:
        return self.root / ".venv"

    @property
    def site(self) -> Path:
        return self.folder / "lib" / f"python3.{sys.version_info.minor}" / "site-packages"

    def install(self, name: str, files: Mapping[str, str]) -> None:
        info = f"{name}-1.0.dist-info"
        rows = [f"{info}/RECORD,,"]
        for path, text in {f"{info}/METADATA": f"Name: {name}\n", **files}.items():
            self.write(path, text)
            digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
            rows.append(f"{path},sha256={digest},{len(text.encode())}")
        self.write(f"{info}/RECORD", "\n".join(rows) + "\n")

    def write(self, path: str, text: str) -> Path:
        file = self.site / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    def findings(self) -> list[Finding]:
        return find_environment_tampering([self.folder], self.root)

    def seen(self) -> list[tuple[str, Severity, str]]:
        """Rule, severity, and the path from site-packages on."""
        return [(f.rule, f.severity, (f.path or "").rpartition("site-packages/")[2]) for f in self.findings()]


@pytest.fixture
def env(tmp_path: Path) -> Env:
    made = Env(tmp_path / "repository")
    made.site.mkdir(parents=True)
    (made.folder / "pyvenv.cfg").write_text("home = /usr/bin\n")
    (made.folder / "bin").mkdir()
    made.install("pytest", RUNNER | {"../../../bin/pytest": LAUNCHER.format(bin=made.folder / "bin")})
    made.install("pluggy", {"pluggy/__init__.py": ""})
    return made


def test_an_environment_as_its_installer_left_it_has_no_finding(env: Env) -> None:
    assert env.findings() == []


def test_the_environment_of_these_tests_has_no_finding() -> None:
    assert find_environment_tampering([Path(sys.prefix)], Path.cwd()) == []


PLANTED: list[tuple[dict[str, str], tuple[str, Severity, str]]] = [
    ({"evil.pth": "import os; os.environ['X'] = '1'\n"}, (STARTUP, MAJOR, "evil.pth")),
    ({"evil.pth": "# a comment\nimport\tevil\n"}, (STARTUP, MAJOR, "evil.pth")),
    ({"evil.pth": "\ufeffimport evil\n"}, (STARTUP, MAJOR, "evil.pth")),
    ({".evil.pth": "import evil\n"}, (STARTUP, MAJOR, ".evil.pth")),
    ({"sitecustomize.py": "import evil\n"}, (STARTUP, MAJOR, "sitecustomize.py")),
    ({"usercustomize/__init__.py": ""}, (STARTUP, MAJOR, "usercustomize")),
    ({"sitecustomize.pyc": "x"}, (STARTUP, MAJOR, "sitecustomize.pyc")),
    ({"_virtualenv.pth": "import _virtualenv; import evil"}, (STARTUP, MAJOR, "_virtualenv.pth")),
    ({"_virtualenv.pth": "import _virtualenv"}, (STARTUP, MAJOR, "_virtualenv.pth")),
    (
        {"_virtualenv.pth": "import _virtualenv", "_virtualenv.py": VIRTUALENV + "import _pytest.runner\n"},
        (STARTUP, MAJOR, "_virtualenv.pth"),
    ),
    ({"coverage.pth": "import coverage; coverage.process_startup(); import evil"}, (STARTUP, MAJOR, "coverage.pth")),
    ({"coverage.pth": "import coverage", "coverage.py": "import evil"}, (STARTUP, MAJOR, "coverage.pth")),
    ({"evil-nspkg.pth": "import sys, types, os;import evil"}, (STARTUP, MAJOR, "evil-nspkg.pth")),
    ({"_pytest/runner/__init__.py": ""}, (TAMPERED, MAJOR, "_pytest/runner")),
    ({"_pytest/runner.abi3.so": ""}, (TAMPERED, MAJOR, "_pytest/runner.abi3.so")),
    ({"_pytest/runner.py": "def run(): pass\n"}, (TAMPERED, MAJOR, "_pytest/runner.py")),
    ({"_pytest/runner.py": "def run(): 123\n"}, (TAMPERED, MAJOR, "_pytest/runner.py")),
    (
        {"evil-1.0.dist-info/entry_points.txt": "[pytest11]\nevil = evil\n"},
        (TAMPERED, MAJOR, "evil-1.0.dist-info/entry_points.txt"),
    ),
    (
        {"evil-1.0.dist-info/entry_points.txt": "[a]\r\nb = c [d]\r\n  [pytest11]  \r\nevil = evil\r\n"},
        (TAMPERED, MAJOR, "evil-1.0.dist-info/entry_points.txt"),
    ),
    (
        {"evil.egg-info/entry_points.txt": "[console_scripts]\na = b\n[pytest11]\nevil = evil\n"},
        (TAMPERED, MAJOR, "evil.egg-info/entry_points.txt"),
    ),
]  # fmt: skip


@pytest.mark.parametrize(("files", "expected"), PLANTED)
def test_what_was_planted_is_found(env: Env, files: dict[str, str], expected: tuple[str, Severity, str]) -> None:
    for path, text in files.items():
        env.write(path, text)
    assert env.seen() == [expected]


NSPKG = (
    "import sys, types, os;has_mfs = sys.version_info > (3, 5);p = os.path.join('/srv/demo/src', *('ns',));"
    "importlib = has_mfs and __import__('importlib.util');has_mfs and __import__('importlib.machinery');"
    "m = has_mfs and sys.modules.setdefault('ns', importlib.util.module_from_spec("
    "importlib.machinery.PathFinder.find_spec('ns', [os.path.dirname(p)])));"
    "m = m or sys.modules.setdefault('ns', types.ModuleType('ns'));"
    "mp = (m or []) and m.__dict__.setdefault('__path__',[]);(p not in mp) and mp.append(p)\n"
)
EGGS = (
    "import sys; sys.__plen = len(sys.path)\n./demo.egg\nimport sys; new=sys.path[sys.__plen:]; "
    "del sys.path[sys.__plen:]; p=getattr(sys,'__egginsert',0); sys.path[p:p]=new; sys.__egginsert = p+len(new)\n"
)
SUBCOVER = (
    "import sys; exec('try:\\n    import coverage\\nexcept:\\n    pass\\nelse:\\n    coverage.process_startup()\\n')\n"
)
HONEST: list[dict[str, str]] = [
    {"_virtualenv.pth": "import _virtualenv", "_virtualenv.py": VIRTUALENV},
    {"coverage.pth": "import coverage; coverage.process_startup()\n"},
    {"sitecustomize.py": "# see the manual\nimport coverage\n\ncoverage.process_startup()\n"},
    {"subcover_12.pth": SUBCOVER},
    {"demo-nspkg.pth": NSPKG},
    {"easy-install.pth": EGGS},
    {"elsewhere.pth": "/opt/demo/src\n"},
    {"inside.pth": "vendored\n./more\n"},
    {"tests/pytest.py": ""},
    {"_pytest/notes.txt": "", "_pytest/extra.py": ""},
    {"_pytest/runner/data.json": ""},
    {"demo-1.0.dist-info/entry_points.txt": "[console_scripts]\ndemo = demo:main\n"},
    {
        "demo.egg-info/entry_points.txt": "[pytest11]\nd = d\n",
        "demo.egg-info/installed-files.txt": "entry_points.txt\n",
    },
]


@pytest.mark.parametrize("files", HONEST)
def test_what_honest_tools_write_is_no_finding(env: Env, files: dict[str, str]) -> None:
    for path, text in files.items():
        env.write(path, text)
    assert env.findings() == []


@pytest.mark.parametrize("runner", ["_pytest", "pytest", "pluggy"])
def test_a_namespace_file_may_not_claim_the_runner(env: Env, runner: str) -> None:
    env.write("demo-nspkg.pth", NSPKG.replace("'ns'", f"'{runner}'"))
    assert env.seen() == [(STARTUP, MAJOR, "demo-nspkg.pth")]


def test_a_recorded_startup_file_is_allowed_until_it_or_its_module_is_edited(env: Env) -> None:
    line = "import os; __import__('_hack').add_shim();\n"
    env.install("demo", {"demo.pth": line, "_hack/__init__.py": "def add_shim(): ...\n", "sitecustomize.py": ""})
    assert env.findings() == []
    env.write("_hack/__init__.py", "def add_shim(): 123\n")
    assert env.seen() == [(TAMPERED, MAJOR, "_hack/__init__.py")]
    env.write("demo.pth", line + "import evil\n")
    assert env.seen() == [(TAMPERED, MAJOR, "demo.pth"), (TAMPERED, MAJOR, "_hack/__init__.py")]


def test_an_absolute_path_in_a_record_means_this_environment_also_after_it_moved(env: Env) -> None:
    env.write("demo.pth", f"{env.root}/src\n")
    env.write("demo-1.0.dist-info/RECORD", "/before/.venv/lib/python3.11/site-packages/demo.pth,,\n")
    assert env.findings() == []


def test_an_unrecorded_path_into_the_work_tree_is_minor_unless_setuptools_wrote_it(env: Env) -> None:
    env.write("easy-install.pth", f"{env.root}/src\n")
    assert env.seen() == [(STARTUP, MINOR, "easy-install.pth")]
    env.write("demo.egg-link", f"{env.root}/src\n../\n")
    assert env.findings() == []
    env.install("demo", {"__editable__.demo.pth": f"{env.root}/lib\n"})
    assert env.findings() == []


def test_a_path_to_a_startup_module_elsewhere_is_found(env: Env, tmp_path: Path) -> None:
    (tmp_path / "away").mkdir()
    (tmp_path / "away" / "sitecustomize.py").touch()
    env.write("away.pth", f"{tmp_path}/away\n")
    assert env.seen() == [(STARTUP, MAJOR, "away.pth")]


def test_a_plugin_is_looked_at_where_pytest_loads_it_and_the_rest_of_its_package_is_not(env: Env) -> None:
    points = "[console_scripts]\ndemo = demo:main\n\n[pytest11]\ndemo = demo.plugin:Plugin\n"
    files = {"demo/__init__.py": "", "demo/plugin.py": "", "demo/other.py": ""}
    env.install("demo", {"demo-1.0.dist-info/entry_points.txt": points} | files)
    env.write("demo/other.py", "edited = 1\n")
    assert env.findings() == []
    env.write("demo/plugin.py", "edited = 1\n")
    assert env.seen() == [(TAMPERED, MAJOR, "demo/plugin.py")]


def test_the_line_that_starts_coverage_is_allowed_with_the_installed_coverage(env: Env) -> None:
    env.install("coverage", {"coverage/__init__.py": ""})
    env.write("anything.pth", "import coverage; coverage.process_startup()\n")
    assert env.findings() == []


def test_a_hash_in_hexadecimal_digits_is_understood(env: Env) -> None:
    text = "[pytest11]\ndemo = demo\n"
    env.write("demo-1.0.dist-info/entry_points.txt", text)
    digest = hashlib.sha256(text.encode()).hexdigest()
    env.write("demo-1.0.dist-info/RECORD", f"demo-1.0.dist-info/entry_points.txt,sha256={digest},{len(text)}\n")
    assert env.findings() == []


def test_another_package_of_the_same_name_as_a_runners_module_may_be_installed(env: Env) -> None:
    env.install("pytest", RUNNER | {"py.py": ""})
    env.install("py", {"py/__init__.py": ""})
    assert env.findings() == []
    shutil.rmtree(env.site / "py-1.0.dist-info")
    assert env.seen() == [(TAMPERED, MAJOR, "py")]


def test_bytecode_instead_of_a_removed_module_is_found_and_a_removed_module_alone_is_not(env: Env) -> None:
    (env.site / "_pytest" / "runner.py").unlink()
    assert env.findings() == []
    env.write("_pytest/runner.pyc", "x")
    assert env.seen() == [(TAMPERED, MAJOR, "_pytest/runner.pyc")]


@pytest.mark.parametrize(
    ("mode", "found"),
    [
        (py_compile.PycInvalidationMode.TIMESTAMP, False),
        (py_compile.PycInvalidationMode.CHECKED_HASH, False),
        (py_compile.PycInvalidationMode.UNCHECKED_HASH, True),
    ],
)
def test_bytecode_that_is_never_compared_with_its_source_is_found(
    env: Env, mode: py_compile.PycInvalidationMode, found: bool
) -> None:
    compiled = py_compile.compile(str(env.site / "_pytest" / "runner.py"), invalidation_mode=mode, doraise=True)
    assert compiled is not None
    assert env.seen() == ([(TAMPERED, MAJOR, str(Path(compiled).relative_to(env.site)))] if found else [])


def test_an_edited_launcher_is_found_and_one_that_only_moved_is_not(env: Env) -> None:
    program = env.folder / "bin" / "pytest"
    program.write_text(LAUNCHER.format(bin=env.folder / "bin").replace("/python\n", "/python3\n"))
    assert env.findings() == []
    for text in ("#!/bin/sh\nexit 0\n", LAUNCHER.format(bin="/opt/evil"), program.read_text() + "import evil\n",
                 program.read_text().replace("from pytest", "from evil")):  # fmt: skip
        program.write_text(text)
        assert [(f.rule, f.path) for f in env.findings()] == [(TAMPERED, ".venv/bin/pytest")]


def test_one_finding_names_a_package_with_many_edited_files_and_says_how_many(env: Env) -> None:
    for path in RUNNER:
        env.write(path, "edited = 1\n")
    (finding,) = env.findings()
    assert "and 2 more files" in finding.detail


@pytest.mark.parametrize("record", [None, "", "a," + "x" * 200_000])
def test_a_runner_without_a_record_is_said_to_be_unknown(env: Env, record: str | None) -> None:
    file = env.site / "pytest-1.0.dist-info" / "RECORD"
    file.write_text(record) if record is not None else file.unlink()
    assert env.seen() == [(TAMPERED, MINOR, "pytest"), (TAMPERED, MINOR, "_pytest")]


def test_what_blocks_or_cannot_be_read_is_a_finding_and_no_hang(env: Env) -> None:
    file = env.site / "_pytest" / "runner.py"
    file.unlink()
    os.mkfifo(file)
    os.mkfifo(env.site / "waiting.pth")
    (env.site / "_pytest" / "__pycache__" / "runner.cpython-311.pyc").mkdir(parents=True)
    assert env.seen() == [(TAMPERED, MAJOR, "_pytest/runner.py")]
    file.unlink()
    file.symlink_to("runner.py")
    assert env.seen() == [(TAMPERED, MAJOR, "_pytest/runner.py")]


def test_only_virtual_environments_are_looked_at(env: Env) -> None:
    env.write("evil.pth", "import evil\n")
    (env.folder / "pyvenv.cfg").unlink()
    assert env.findings() == []
    assert find_environment_tampering([env.root / "node_modules"], env.root) == []


def test_a_finding_says_where_and_what_to_do(env: Env) -> None:
    env.write("evil.pth", "import evil\n")
    (finding,) = env.findings()
    assert finding.layer == "L7"
    assert finding.path == f".venv/lib/{env.site.parent.name}/site-packages/evil.pth"
    assert "remove .venv" in finding.fix
    (outside,) = find_environment_tampering([env.folder], env.root / "sub")
    assert outside.path == str(env.site / "evil.pth")


def test_one_folder_under_two_names_is_looked_at_once(env: Env) -> None:
    (env.folder / "lib64").symlink_to("lib")
    env.write("evil.pth", "import evil\n")
    assert [finding.path for finding in env.findings()] == [f".venv/lib/{env.site.parent.name}/site-packages/evil.pth"]


def test_an_edit_of_the_installed_pytest_is_found(env: Env) -> None:
    shutil.rmtree(env.site)
    distribution = importlib.metadata.distribution("pytest")
    for file in distribution.files or ():
        if ".." not in file.parts and "__pycache__" not in file.parts:
            env.write(str(file), "")
            shutil.copyfile(distribution.locate_file(file), env.site / file)  # type: ignore[arg-type]
    env.install("pluggy", {"pluggy/__init__.py": ""})
    assert env.findings() == []
    with (env.site / "_pytest" / "runner.py").open("a") as runner:
        runner.write("# edited\n")
    assert env.seen() == [(TAMPERED, MAJOR, "_pytest/runner.py")]


EVIL = "print('evil')\n"
TRICKS: list[tuple[str, str]] = [
    ("evil.pth", f"import sys; {EVIL}"),
    ("sitecustomize.py", EVIL),
    ("_pytest/runner/__init__.py", EVIL),
]


@pytest.mark.parametrize(("path", "text"), TRICKS)
def test_python_really_runs_what_is_called_planted(env: Env, path: str, text: str) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", env.folder], check=True)
    command = [str(env.folder / "bin" / "python"), "-c", "import _pytest.runner"]
    assert subprocess.run(command, capture_output=True, text=True).stdout == ""
    env.write(path, text)
    assert subprocess.run(command, capture_output=True, text=True).stdout.startswith("evil\n")
    assert [finding.severity for finding in env.findings()] == [MAJOR]

"""Find the checks that a project's own files name. Nothing is guessed and nothing is run.

`discover` is a pure function of the frozen tree: the same tree always gives the same checks. It never raises because of
the content of a manifest; what it could not read is in the notes.

`build_load_checks` is tier 3: if nothing else executes the project, the changed files are at least loaded.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from posixpath import basename, dirname

from proofstone.check.ecosystems import ECOSYSTEMS
from proofstone.check.ecosystems.compiled import MAKE
from proofstone.check.ecosystems.ecosystem import TEST_FOLDERS, Ecosystem, Package, ProjectTree, compile_matcher
from proofstone.check.models import CheckKind, CheckSpec
from proofstone.common.models import FrozenModel


class Discovery(FrozenModel):
    """The checks of a tree, and notes about how they were found."""

    specs: tuple[CheckSpec, ...]
    notes: tuple[str, ...] = ()


def discover(paths: Sequence[str], read: Callable[[str], bytes | None]) -> Discovery:
    """Find the checks of a tree. `paths` are all its files, relative and with `/`; `read` returns a file's bytes or
    None."""
    tree = ProjectTree(sorted(paths), read)
    specs = [spec for ecosystem in ECOSYSTEMS for spec in _find_specs(ecosystem, tree)]
    if not any(spec.kind is CheckKind.TESTS and not spec.is_concluded for spec in specs):
        # A Makefile's test target usually calls the runners above, so it is used only if no configuration names one.
        # Beside a runner that was concluded, it is run as well: it is what the project itself calls its tests.
        specs += MAKE.find_specs(Package(tree, ".", tuple(tree.paths)))
    if not any(spec.kind is CheckKind.TESTS for spec in specs):
        tree.notes.append("no tests were found: no file of the project names a test runner that Proofstone knows")
    return Discovery(specs=tuple(specs), notes=tuple(dict.fromkeys(tree.notes)))


@dataclass(frozen=True, slots=True)
class _PackageChecks:
    package: Package
    specs: tuple[CheckSpec, ...]


def _find_specs(ecosystem: Ecosystem, tree: ProjectTree) -> Iterable[CheckSpec]:
    packages = [_PackageChecks(package, ecosystem.find_specs(package)) for package in _find_packages(ecosystem, tree)]
    for lower in packages:
        above = [upper for upper in packages if _is_above(upper.package.directory, lower.package.directory)]
        for spec in lower.specs:
            if not any(_is_covered(ecosystem, upper, lower, spec) for upper in above):
                yield _move_to(lower.package.directory, spec)


def _is_covered(ecosystem: Ecosystem, upper: _PackageChecks, lower: _PackageChecks, spec: CheckSpec) -> bool:
    """Return whether a check of a package above runs what this check would run."""
    same_kind = any(candidate.kind is spec.kind for candidate in upper.specs)
    return same_kind and ecosystem.covers(upper.package, lower.package, spec)


def _find_packages(ecosystem: Ecosystem, tree: ProjectTree) -> list[Package]:
    """Return the directories with a manifest, shallow ones first, each with the files that no deeper one owns."""
    directories = _find_directories(tree, ecosystem.manifests, ecosystem.ignored)
    for directory in sorted(_find_directories(tree, ecosystem.weak_manifests, ecosystem.ignored), key=_depth):
        if _owner(f"{directory}/", directories) is None:
            directories.add(directory)
    signs = _find_directories(tree, ecosystem.root_signs, ecosystem.ignored - TEST_FOLDERS)
    if any(_owner(f"{directory}/", directories) is None for directory in signs):
        directories.add(".")
    if not directories:
        return []
    files: dict[str, list[str]] = defaultdict(list)
    for path in tree.paths:
        owner = _owner(path, directories)
        if owner is not None:
            files[owner].append(path if owner == "." else path[len(owner) + 1 :])
    return [Package(tree, directory, tuple(files[directory])) for directory in sorted(files, key=_depth)]


def _find_directories(tree: ProjectTree, patterns: tuple[str, ...], ignored: frozenset[str]) -> set[str]:
    if not patterns:
        return set()
    matches = compile_matcher(patterns)
    directories = {directory for name, directory in tree.names_and_folders if matches(name)}
    return {
        directory
        for directory in directories
        if directory == "." or not any(part in ignored or part.startswith(".") for part in directory.split("/"))
    }


def _owner(path: str, directories: set[str]) -> str | None:
    directory = dirname(path)
    while directory:
        if directory in directories:
            return directory
        directory = directory.rpartition("/")[0]
    return "." if "." in directories else None


def _depth(directory: str) -> tuple[int, str]:
    return (0 if directory == "." else directory.count("/") + 1, directory)


def _is_above(upper: str, lower: str) -> bool:
    return upper != lower and (upper == "." or lower.startswith(f"{upper}/"))


def _move_to(directory: str, spec: CheckSpec) -> CheckSpec:
    """Return the check for a package below the root: it runs there and has the directory in its name."""
    if directory == ".":
        return spec
    suffix = f"@{directory}"
    needs = tuple(need + suffix for need in spec.needs)
    return spec.model_copy(update={"name": spec.name + suffix, "cwd": directory, "needs": needs})


_IMPORT_SCRIPT = "import importlib, sys\nfor name in sys.argv[1:]:\n    importlib.import_module(name)\n"
_NODE_SCRIPT = 'for file; do node --check "$file" || exit 1; done'  # node takes one file at a time
_NOT_MODULES = ("setup.py", "conftest.py", "noxfile.py", "tasks.py")


def build_load_checks(paths: Sequence[str]) -> tuple[CheckSpec, ...]:
    """Return checks that load the changed files; none if no changed file can be loaded by itself."""
    modules = sorted({name for path in paths if (name := find_module_name(path))})
    scripts = [path for path in paths if path.endswith((".js", ".mjs", ".cjs"))]
    specs: list[CheckSpec] = []
    if modules:
        specs.append(
            CheckSpec(
                name="import:python",
                kind=CheckKind.IMPORT,
                tier=3,
                tool="python:python",
                argv=("{python}", "-c", _IMPORT_SCRIPT, *modules),
                env={"PYTHONPATH": "src:."},
                required=False,
                evidence="the changed files themselves",
            )
        )
    if scripts:
        specs.append(
            CheckSpec(
                name="load:node",
                kind=CheckKind.SMOKE,
                tier=3,
                tool="node",
                argv=("sh", "-c", _NODE_SCRIPT, "sh", *scripts),
                required=False,
                evidence="the changed files themselves",
                install="install Node.js",
            )
        )
    return tuple(specs)


def find_module_name(path: str) -> str | None:
    """Return the module name of a Python file if it can be imported by name from the root or from `src`."""
    parts = path.removeprefix("src/").removesuffix(".py").split("/")
    if not path.endswith(".py") or basename(path) in _NOT_MODULES or not all(part.isidentifier() for part in parts):
        return None
    if parts[-1] in ("__main__",) or any(part in ("tests", "test") or part.startswith("test_") for part in parts):
        return None
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts) or None

"""Build commands that run single tests again, and variables that make a command report its results.

The tables of runner options say which arguments of a command select tests, so that a rerun can replace the selection
and keep everything else. The selection may be wider than requested if the runner cannot do better (a name that occurs
twice in a file), but never narrower. The result is None if the runner cannot select tests, or if the command cannot be
split with certainty.

The variables contain the placeholders `{report}` and `{probes}`. If the user's environment has a value for one of them,
`merge` keeps it.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from proofstone.check.models import ReportFormat
from proofstone.check.reports.javascript import SEPARATOR
from proofstone.check.reports.source import ID_LIMIT


@dataclass(frozen=True)
class RunnerOptions:
    """The known options of a test runner."""

    valued_options: frozenset[str]
    """Options that take the next argument."""
    flags: frozenset[str]
    """Options without a value."""
    dropped_options: frozenset[str]
    """Options that select tests or stop early. A rerun omits them."""

    def filter_options(self, words: Sequence[str], keep: tuple[str, ...] = ()) -> list[str] | None:
        """Return the options to keep. None if it is unclear whether a word is an option's value or a selection."""
        result: list[str] = []
        is_unclear = False
        rest = iter(words)
        for word in rest:
            name, has_value, _ = word.partition("=")
            if not word.startswith("-"):
                if is_unclear:
                    return None
                result += [word] if word in keep else []
                continue
            value = [next(rest, "")] if word in self.valued_options else []
            is_unclear = not has_value and word not in self.valued_options and word not in self.flags
            if name not in self.dropped_options:
                result += [word, *value]
        return result


def _build_options(*, valued: str, alone: str, dropped: str) -> RunnerOptions:
    return RunnerOptions(frozenset(valued.split()), frozenset(alone.split()), frozenset(dropped.split()))


PYTEST_OPTIONS: Final = _build_options(
    valued="""
        -k -m -n -p -c -o -W -r --rootdir --confcutdir --basetemp --import-mode --tb --maxfail
        --durations --deselect --ignore --ignore-glob --override-ini --capture --color --log-level
        --junitxml --junit-xml --dist --timeout --cov-report --cov-config --numprocesses --config-file
        --pythonwarnings
    """,
    alone="""
        -q -qq -v -vv -vvv -s -x -l -ra --quiet --verbose --exitfirst --showlocals --strict-markers
        --strict-config --strict --no-header --no-summary --lf --last-failed --ff --failed-first --nf
        --new-first --sw --stepwise --cache-clear --doctest-modules --no-cov --disable-warnings --pyargs
        --full-trace
    """,
    dropped="""
        -x --exitfirst --maxfail --lf --last-failed --ff --failed-first --nf --new-first --sw --stepwise
    """,
)
GO_OPTIONS: Final = _build_options(
    valued="""
        -run -count -timeout -tags -p -parallel -cpu -coverprofile -covermode -coverpkg -mod -vet -C
        -shuffle -skip -bench -ldflags -gcflags -exec
    """,
    alone="""
        -json -v -race -cover -short -failfast -trimpath -a -n -x -msan -asan
    """,
    dropped="""
        -run -failfast -skip
    """,
)
CARGO_OPTIONS: Final = _build_options(
    valued="""
        -p --package --features -F --target --target-dir --manifest-path --profile -j --jobs --exclude
        --test --bin --example --bench --color --config -Z --message-format
    """,
    alone="""
        --workspace --all --all-features --no-default-features --release -r --locked --offline --frozen
        --no-fail-fast --lib --bins --tests --all-targets --doc --examples -q --quiet -v --verbose
    """,
    dropped="""
        --doc
    """,
)
JEST_OPTIONS: Final = _build_options(
    valued="""
        -c --config -t --testNamePattern --outputFile --maxWorkers -w --rootDir --env --reporters
        --coverageDirectory
    """,
    alone="""
        --json --ci --coverage --runInBand -i --silent --verbose --passWithNoTests --no-cache --bail -b
        --no-coverage --forceExit --detectOpenHandles --runTestsByPath --colors --onlyChanged -o
    """,
    dropped="""
        -t --testNamePattern --bail -b --passWithNoTests --runTestsByPath --onlyChanged -o
    """,
)
VITEST_OPTIONS: Final = _build_options(
    valued="""
        -c --config -t --testNamePattern --reporter --outputFile --outputFile.json --root -r --dir --pool
        --environment --project --maxWorkers
    """,
    alone="""
        --run --coverage --passWithNoTests --silent --globals --no-color --bail --changed
    """,
    dropped="""
        -t --testNamePattern --bail --passWithNoTests --changed
    """,
)
NODE_OPTIONS: Final = _build_options(
    valued="""
        --import --require -r --loader --test-reporter --test-reporter-destination --test-name-pattern
        --test-concurrency --test-timeout
    """,
    alone="""
        --test --test-only --enable-source-maps --no-warnings --experimental-strip-types
        --experimental-test-coverage --test-force-exit
    """,
    dropped="""
        --test-name-pattern --test-only
    """,
)


_NO_BAIL: Final = {"pytest": ("--maxfail=0",), "go": ("-failfast=false",)}


def disable_bail(runner: str, argv: Sequence[str]) -> list[str]:
    """Return the command so that it does not stop at the first failure, for runners where the last option wins."""
    return [*argv, *_NO_BAIL.get(runner, ())]


def build_rerun_command(
    format: ReportFormat, argv: Sequence[str], ids: Sequence[str], *, cwd: str = "."
) -> tuple[str, ...] | None:
    """Return `argv` with its selection replaced by `ids`, to be run in `cwd`, relative to the repository."""
    if not ids or any(len(id) >= ID_LIMIT for id in ids):  # such an id was shortened
        return None
    match format:
        case ReportFormat.PYTEST:
            return _append_selection(argv, "pytest", PYTEST_OPTIONS, [_make_relative(id, "::", cwd) for id in ids])
        case ReportFormat.UNITTEST:
            return _rerun_unittest(argv, ids)
        case ReportFormat.NODE:
            return _rerun_node(argv, ids, cwd)
        case ReportFormat.JEST:
            return _append_selection(
                argv, "jest", JEST_OPTIONS, ["--runTestsByPath", *_list_files(ids, cwd), *_name_pattern(ids)]
            )
        case ReportFormat.VITEST:
            return _append_selection(
                argv, "vitest", VITEST_OPTIONS, [*_list_files(ids, cwd), *_name_pattern(ids)], keep=("run",)
            )
        case ReportFormat.GO:
            return _rerun_go(argv, ids)
        case ReportFormat.CARGO:
            return _rerun_cargo(argv, ids)
        case _:
            return None


def _append_selection(
    argv: Sequence[str], runner: str, options: RunnerOptions, selection: Sequence[str], *, keep: tuple[str, ...] = ()
) -> tuple[str, ...] | None:
    start = _find_arguments(argv, runner)
    rest = None if start is None else options.filter_options(argv[start:], keep)
    return None if start is None or rest is None else (*argv[:start], *rest, *selection)


def _find_arguments(argv: Sequence[str], name: str) -> int | None:
    """Return where the arguments of the runner begin: after `pytest`, `/path/of/pytest` or `-m pytest`."""
    for index, word in enumerate(argv):
        if posixpath.basename(word) in (name, f"{name}.js", f"{name}.mjs"):
            return index + 1
    return None


def _make_relative(id: str, separator: str, cwd: str) -> str:
    """Return the id with its file relative to the directory of the check."""
    file, separator_found, name = id.partition(separator)
    path = posixpath.relpath(file, posixpath.normpath(cwd))
    return ("./" if path.startswith("-") else "") + path + separator_found + name  # a file name is never an option


def _list_files(ids: Iterable[str], cwd: str) -> list[str]:
    return sorted({_make_relative(id.split(SEPARATOR, 1)[0], SEPARATOR, cwd) for id in ids})


def _escape(text: str) -> str:
    """Escape a text for JavaScript and Go, which know fewer escapes than Python writes."""
    return re.sub(r"([\\^$.*+?()\[\]{}|/])", r"\\\1", text)


def _name_pattern(ids: Sequence[str]) -> list[str]:
    """Return the pattern for whole names in jest and vitest. A separator may be part of a title, so both readings
    match."""
    names = [id.split(SEPARATOR, 1)[1] for id in ids if SEPARATOR in id]
    if len(names) < len(ids):
        return []  # one of the ids is a whole file
    either = "|".join(_escape(name).replace(SEPARATOR, " (?:> )?") for name in names)
    return ["-t", f"^(?:{either})$"]


def _rerun_node(argv: Sequence[str], ids: Sequence[str], cwd: str) -> tuple[str, ...] | None:
    """Select tests for Node. It matches the test's own name (since 22 also the full name), so only the end is
    anchored."""
    start = _find_arguments(argv, "node")
    rest = None if start is None or "--test" not in argv else NODE_OPTIONS.filter_options(argv[start:])
    if start is None or rest is None:
        return None
    has_whole_file = any(SEPARATOR not in id for id in ids)
    names = sorted({id.rsplit(SEPARATOR, 1)[1] for id in ids if SEPARATOR in id})
    patterns = [] if has_whole_file else [f"--test-name-pattern={_escape(name)}$" for name in names]
    return (*argv[:start], *rest, *patterns, *_list_files(ids, cwd))


def _rerun_unittest(argv: Sequence[str], ids: Sequence[str]) -> tuple[str, ...] | None:
    start = next((index + 1 for index, word in enumerate(argv) if word.endswith("proofstone_unittest.py")), None)
    has_unrunnable_id = any(" " in id for id in ids)  # `setUpClass (module.Class)` cannot be run by name
    return None if start is None or has_unrunnable_id else (*argv[:start], "--run", *ids)


_GO_TEST = re.compile(r"(.+?)/((?:Test|Example|Fuzz)(?![a-z])[^/]*)(?:/.*)?")


def _rerun_go(argv: Sequence[str], ids: Sequence[str]) -> tuple[str, ...] | None:
    """Build one command for all packages. A subtest runs with its whole test."""
    start = argv.index("test") + 1 if "test" in argv else None
    rest = None if start is None else GO_OPTIONS.filter_options(argv[start:])
    parts = [_GO_TEST.fullmatch(id) for id in ids]
    if start is None or rest is None:
        return None
    packages = sorted({part[1] if part else id for part, id in zip(parts, ids, strict=True)})
    names = sorted({_escape(part[2]) for part in parts if part})
    selection = ["-run", f"^(?:{'|'.join(names)})$"] if all(parts) else []
    return (*argv[:start], *rest, *selection, *packages)


def _rerun_cargo(argv: Sequence[str], ids: Sequence[str]) -> tuple[str, ...] | None:
    """Pass the names to every target. Doc-tests are identified only by their line, so they cannot be selected."""
    if "test" not in argv or any("[doc]::" in id or "::" not in id for id in ids):
        return None
    start = argv.index("test") + 1
    words = list(argv[start:])
    own = words[words.index("--") + 1 :] if "--" in words else []
    rest = CARGO_OPTIONS.filter_options(words[: words.index("--")] if "--" in words else words)
    if rest is None or any(not word.startswith("-") for word in own):
        return None
    names = sorted({id.split("::", 1)[1] for id in ids})
    exact = [] if "--exact" in own else ["--exact"]
    return (*argv[:start], *rest, "--", *own, *exact, *names)


PATH_LIKE: Final = frozenset({"PYTHONPATH"})
"""Our value goes before the user's own, separated by a colon."""
SPACE_SEPARATED: Final = frozenset({"NODE_OPTIONS"})
"""Our value goes before the user's own, separated by a space."""

_PYTHON_VARIABLES: Final = {"PYTHONPATH": "{probes}", "PROOFSTONE_REPORT": "{report}"}
_NODE_VARIABLES: Final = {"NODE_OPTIONS": "--require={probes}/proofstone_node.cjs", "PROOFSTONE_REPORT": "{report}"}


def report_variables(format: ReportFormat | None) -> dict[str, str]:
    """Return the variables for a check in this format, or for a user's own command if None: what that runs is unknown.

    pytest finds the plug-in through the entry point in `{probes}`. With `PYTEST_PLUGINS`, pytest would refuse to start
    if a command sets PYTHONPATH itself (`PYTHONPATH=src pytest`); this way it only has no report.
    """
    match format:
        case None:
            return {**_PYTHON_VARIABLES, **_NODE_VARIABLES}
        case ReportFormat.PYTEST:
            return dict(_PYTHON_VARIABLES)
        case ReportFormat.UNITTEST:
            return {"PROOFSTONE_REPORT": "{report}"}
        case ReportFormat.NODE:
            return dict(_NODE_VARIABLES)
        case _:
            return {}


def merge_variables(present: Mapping[str, str], ours: Mapping[str, str]) -> dict[str, str]:
    """Return `present` with `ours` merged in: prepended if the variable is a list, replaced otherwise."""
    merged = dict(present)
    for name, value in ours.items():
        separator = ":" if name in PATH_LIKE else " " if name in SPACE_SEPARATED else None
        existing = present.get(name)
        merged[name] = f"{value}{separator}{existing}" if existing and separator else value
    return merged

"""What is known of the runners' options: enough to take a command apart, and keep all of it but the selection.

The command that runs only the given tests again, with the same runner and its options.

The selection may be wider than asked where a runner knows no better (a name that occurs twice in a file), never
narrower. None where the runner cannot select, or where the command cannot be taken apart with certainty.

The variables that make a command report by itself, without a word of it changed.

Values hold the placeholders `{report}` and `{probes}`. Where the person's environment has a value of its own for
one of them, `merge` keeps it.
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
class Options:
    valued: frozenset[str]
    """Take the next argument."""
    alone: frozenset[str]
    """Stand alone."""
    dropped: frozenset[str]
    """Select tests, or stop early: they have no place in a repetition."""

    def kept(self, words: Sequence[str], keep: tuple[str, ...] = ()) -> list[str] | None:
        """The options that stay. None when it is unclear whether a word is an option's value or a selection."""
        kept: list[str] = []
        unclear = False
        rest = iter(words)
        for word in rest:
            name, has_value, _ = word.partition("=")
            if not word.startswith("-"):
                if unclear:
                    return None
                kept += [word] if word in keep else []
                continue
            value = [next(rest, "")] if word in self.valued else []
            unclear = not has_value and word not in self.valued and word not in self.alone
            if name not in self.dropped:
                kept += [word, *value]
        return kept


def _options(*, valued: str, alone: str, dropped: str) -> Options:
    return Options(frozenset(valued.split()), frozenset(alone.split()), frozenset(dropped.split()))


PYTEST: Final = _options(
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
GO: Final = _options(
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
CARGO: Final = _options(
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
JEST: Final = _options(
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
VITEST: Final = _options(
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
NODE: Final = _options(
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


def without_bail(runner: str, argv: Sequence[str]) -> list[str]:
    """The command with whatever stops it at the first failure undone, where the last word on the line decides."""
    return [*argv, *_NO_BAIL.get(runner, ())]


def rerun(format: ReportFormat, argv: Sequence[str], ids: Sequence[str], *, cwd: str = ".") -> tuple[str, ...] | None:
    """`argv` with its selection replaced by `ids`; it is to be run in `cwd`, relative to the repository."""
    if not ids or any(len(id) >= ID_LIMIT for id in ids):  # such an id has lost its end
        return None
    match format:
        case ReportFormat.PYTEST:
            return _appended(argv, "pytest", PYTEST, [_from_directory(id, "::", cwd) for id in ids])
        case ReportFormat.UNITTEST:
            return _unittest(argv, ids)
        case ReportFormat.NODE:
            return _node(argv, ids, cwd)
        case ReportFormat.JEST:
            return _appended(argv, "jest", JEST, ["--runTestsByPath", *_files(ids, cwd), *_named(ids)])
        case ReportFormat.VITEST:
            return _appended(argv, "vitest", VITEST, [*_files(ids, cwd), *_named(ids)], keep=("run",))
        case ReportFormat.GO:
            return _go(argv, ids)
        case ReportFormat.CARGO:
            return _cargo(argv, ids)
        case _:
            return None


def _appended(
    argv: Sequence[str], runner: str, options: Options, selection: Sequence[str], *, keep: tuple[str, ...] = ()
) -> tuple[str, ...] | None:
    start = _runner(argv, runner)
    rest = None if start is None else options.kept(argv[start:], keep)
    return None if start is None or rest is None else (*argv[:start], *rest, *selection)


def _runner(argv: Sequence[str], name: str) -> int | None:
    """Where the arguments of the runner begin: after `pytest`, `/path/of/pytest` or `-m pytest`."""
    for index, word in enumerate(argv):
        if posixpath.basename(word) in (name, f"{name}.js", f"{name}.mjs"):
            return index + 1
    return None


def _from_directory(id: str, separator: str, cwd: str) -> str:
    """The id with its file relative to the directory of the check."""
    file, found, name = id.partition(separator)
    path = posixpath.relpath(file, posixpath.normpath(cwd))
    return ("./" if path.startswith("-") else "") + path + found + name  # a file name is never an option


def _files(ids: Iterable[str], cwd: str) -> list[str]:
    return sorted({_from_directory(id.split(SEPARATOR, 1)[0], SEPARATOR, cwd) for id in ids})


def _escaped(text: str) -> str:
    """For JavaScript and Go, which know fewer escapes than Python writes."""
    return re.sub(r"([\\^$.*+?()\[\]{}|/])", r"\\\1", text)


def _named(ids: Sequence[str]) -> list[str]:
    """jest's and vitest's pattern over whole names. A separator may be part of a title: both readings match."""
    names = [id.split(SEPARATOR, 1)[1] for id in ids if SEPARATOR in id]
    if len(names) < len(ids):
        return []  # a whole file is among them
    either = "|".join(_escaped(name).replace(SEPARATOR, " (?:> )?") for name in names)
    return ["-t", f"^(?:{either})$"]


def _node(argv: Sequence[str], ids: Sequence[str], cwd: str) -> tuple[str, ...] | None:
    """Node matches the test's own name (since 22 also the whole), so only its end is anchored."""
    start = _runner(argv, "node")
    rest = None if start is None or "--test" not in argv else NODE.kept(argv[start:])
    if start is None or rest is None:
        return None
    whole = any(SEPARATOR not in id for id in ids)
    names = sorted({id.rsplit(SEPARATOR, 1)[1] for id in ids if SEPARATOR in id})
    patterns = [] if whole else [f"--test-name-pattern={_escaped(name)}$" for name in names]
    return (*argv[:start], *rest, *patterns, *_files(ids, cwd))


def _unittest(argv: Sequence[str], ids: Sequence[str]) -> tuple[str, ...] | None:
    start = next((index + 1 for index, word in enumerate(argv) if word.endswith("proofstone_unittest.py")), None)
    broken = any(" " in id for id in ids)  # `setUpClass (module.Class)` is no name that can be run
    return None if start is None or broken else (*argv[:start], "--run", *ids)


_GO_TEST = re.compile(r"(.+?)/((?:Test|Example|Fuzz)(?![a-z])[^/]*)(?:/.*)?")


def _go(argv: Sequence[str], ids: Sequence[str]) -> tuple[str, ...] | None:
    """One command for all packages; a subtest runs with the whole of its test."""
    start = argv.index("test") + 1 if "test" in argv else None
    rest = None if start is None else GO.kept(argv[start:])
    parts = [_GO_TEST.fullmatch(id) for id in ids]
    if start is None or rest is None:
        return None
    packages = sorted({part[1] if part else id for part, id in zip(parts, ids, strict=True)})
    names = sorted({_escaped(part[2]) for part in parts if part})
    selection = ["-run", f"^(?:{'|'.join(names)})$"] if all(parts) else []
    return (*argv[:start], *rest, *selection, *packages)


def _cargo(argv: Sequence[str], ids: Sequence[str]) -> tuple[str, ...] | None:
    """Names are given to every target. Doc-tests are known by their line alone, so they cannot be selected."""
    if "test" not in argv or any("[doc]::" in id or "::" not in id for id in ids):
        return None
    start = argv.index("test") + 1
    words = list(argv[start:])
    own = words[words.index("--") + 1 :] if "--" in words else []
    rest = CARGO.kept(words[: words.index("--")] if "--" in words else words)
    if rest is None or any(not word.startswith("-") for word in own):
        return None
    names = sorted({id.split("::", 1)[1] for id in ids})
    exact = [] if "--exact" in own else ["--exact"]
    return (*argv[:start], *rest, "--", *own, *exact, *names)


PATH_LIKE: Final = frozenset({"PYTHONPATH"})
"""Ours goes before the person's own value, with a colon between."""
SPACE_SEPARATED: Final = frozenset({"NODE_OPTIONS"})
"""Ours goes before the person's own value, with a space between."""

_PYTHON: Final = {"PYTHONPATH": "{probes}", "PROOFSTONE_REPORT": "{report}"}
_NODE: Final = {"NODE_OPTIONS": "--require={probes}/proofstone_node.cjs", "PROOFSTONE_REPORT": "{report}"}


def environment(format: ReportFormat | None) -> dict[str, str]:
    """For a check in this format; None for a person's own command, of which nobody knows what it will run.

    pytest finds the plug-in by the entry point that lies in `{probes}`. `PYTEST_PLUGINS` would make pytest refuse
    to start wherever a command sets PYTHONPATH itself (`PYTHONPATH=src pytest`); this way it merely has no report.
    """
    match format:
        case None:
            return {**_PYTHON, **_NODE}
        case ReportFormat.PYTEST:
            return dict(_PYTHON)
        case ReportFormat.UNITTEST:
            return {"PROOFSTONE_REPORT": "{report}"}
        case ReportFormat.NODE:
            return dict(_NODE)
        case _:
            return {}


def merge(present: Mapping[str, str], ours: Mapping[str, str]) -> dict[str, str]:
    """`present` with `ours` in it: prepended where the variable is a list, in its place otherwise."""
    merged = dict(present)
    for name, value in ours.items():
        separator = ":" if name in PATH_LIKE else " " if name in SPACE_SEPARATED else None
        own = present.get(name)
        merged[name] = f"{value}{separator}{own}" if own and separator else value
    return merged

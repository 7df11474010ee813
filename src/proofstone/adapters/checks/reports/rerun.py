"""The command that runs only the given tests again, with the same runner and its options.

The selection may be wider than asked where a runner knows no better (a name that occurs twice in a file), never
narrower. None where the runner cannot select, or where the command cannot be taken apart with certainty.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Sequence

from proofstone.adapters.checks.reports.javascript import SEPARATOR
from proofstone.adapters.checks.reports.options import CARGO, GO, JEST, NODE, PYTEST, VITEST, Options
from proofstone.adapters.checks.reports.tally import ID_LIMIT
from proofstone.contracts.tests import ReportFormat


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

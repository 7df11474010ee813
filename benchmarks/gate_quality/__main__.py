"""The command line of the measurement: `build`, `run` and `page`."""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from benchmarks.gate_quality.build import build
from benchmarks.gate_quality.cases import Case, CaseError, read_cases, read_swe_bench
from benchmarks.gate_quality.measure import CaseResult, measure, read_results
from benchmarks.gate_quality.page import render_page

_PAGE = Path(__file__).parents[2] / "docs" / "gate-quality.md"


def main(args: list[str]) -> int:
    """Run one command and return the exit code."""
    options = _parse(args)
    try:
        return int(options.command(options))
    except CaseError as error:
        print(error, file=sys.stderr)
        return 2


def _parse(args: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gate_quality")
    commands = parser.add_subparsers(required=True)
    made = commands.add_parser("build", help="make the set from published packages, in a new folder")
    made.add_argument("folder", type=Path)
    made.add_argument("--sources", type=Path, help="keep what is fetched there; beside the folder by default")
    made.set_defaults(command=_build)
    run = commands.add_parser("run", help="check each case of a folder, or of a file in the form of SWE-bench")
    run.add_argument("cases", type=Path)
    run.add_argument("--clones", type=Path, help="for a file: the folder with a clone of each repository, owner__name")
    run.add_argument("--results", type=Path, required=True, help="results, one line each; those that it holds are kept")
    run.add_argument("--jobs", type=int, default=1)
    run.add_argument("--page", action="store_true", help="write docs/gate-quality.md at the end")
    run.set_defaults(command=_run)
    page = commands.add_parser("page", help="write docs/gate-quality.md from results, all or a part")
    page.add_argument("cases", type=Path)
    page.add_argument("--results", type=Path, required=True)
    page.set_defaults(command=_page)
    return parser.parse_args(args)


def _build(options: argparse.Namespace) -> int:
    folder: Path = options.folder
    if folder.exists():
        raise CaseError(f"{folder}: exists already; name a new folder")
    counts = build(folder, options.sources or folder.with_name(f"{folder.name}-sources"))
    print(f"{sum(counts.values())} cases: " + ", ".join(f"{number} {kind}" for kind, number in counts.items()))
    return 0


def _run(options: argparse.Namespace) -> int:
    cases = _read(options.cases, options.clones)
    found = measure(cases, options.results, jobs=options.jobs, version=_describe_version(), on_result=_print_result)
    text = render_page(found, len(cases))
    if options.page:
        _PAGE.write_text(text)
    print(text)
    return 0


def _page(options: argparse.Namespace) -> int:
    total = len(_read(options.cases, None))
    _PAGE.write_text(render_page(read_results(options.results), total))
    return 0


def _read(path: Path, clones: Path | None) -> tuple[Case, ...]:
    if path.is_file():
        if clones is None:
            raise CaseError(f"{path}: needs --clones, the folder with a clone of each repository")
        return tuple(read_swe_bench(path, clones))
    return read_cases(path)


def _print_result(result: CaseResult) -> None:
    truth = "right" if result.right else "wrong"
    said = f"{result.outcome} {result.confidence}".strip()
    rules = ", ".join((*result.rules, *result.concerns))
    print(f"{truth}  {said:<16} {result.seconds:6.1f} s  {result.name}  {rules}", flush=True)


def _describe_version() -> str:
    words = ("git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty")
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

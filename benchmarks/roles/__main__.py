"""The command line: `python -m benchmarks.roles --backend api:ollama:qwen3` or, without a model, `--recorded`.

It prints a table; `--json` prints every case too. The settings of models and providers are those of the person. Exit
code: 0; 1 if a recorded answer was not read as it should be; 2 bad input.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path

from benchmarks.roles.cases import CASES, Case, list_cases
from benchmarks.roles.measure import CaseResult, measure, render_table, summarize
from benchmarks.roles.recorded import QUALITIES, Quality, play
from benchmarks.roles.situations import SITUATIONS
from proofstone.agents.backends import Backend
from proofstone.agents.backends.api import api_backend
from proofstone.agents.backends.factory import build_backend
from proofstone.config.providers import Provider, ProviderProtocol
from proofstone.config.user import load_user_config
from proofstone.errors import ProofstoneError
from proofstone.testing.model_server.answers import WireProtocol
from proofstone.testing.model_server.server import ModelServer


def main(args: list[str]) -> int:
    options = _parse(args)
    cases = list_cases(tuple(options.role), options.cases)
    try:
        if options.recorded:
            return _measure_recorded(cases, as_json=options.json)
        return _measure_backend(cases, options.backend, options.seconds, as_json=options.json)
    except ProofstoneError as error:
        print(f"{error.message}{f'; {error.hint}' if error.hint else ''}", file=sys.stderr)
        return 2


def _parse(args: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.roles", description=__doc__)
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--backend", metavar="SPEC", help="who answers: api:<provider>:<model>, script:<file> …")
    source.add_argument("--recorded", action="store_true", help="play recorded answers of different quality")
    names = sorted({cases.role.name for cases in CASES})
    parser.add_argument("--role", action="append", default=[], choices=names, help="only this role; repeatable")
    parser.add_argument("--cases", type=int, default=len(SITUATIONS), metavar="N", help="only N cases of each role")
    parser.add_argument("--seconds", type=float, default=600.0, help="the time limit of a case")
    parser.add_argument("--json", action="store_true", help="print every case as JSON")
    return parser.parse_args(args)


def _measure_backend(cases: Sequence[Case], spec: str, seconds: float, *, as_json: bool) -> int:
    person = load_user_config()

    def build(_: Case) -> Backend:
        return build_backend((spec,), folder=Path.cwd(), person=person)

    results = []
    for result in measure(cases, build, seconds):
        results.append(result)
        state = "right" if result.is_right else "wrong" if result.is_valid else result.fault
        print(f"{result.case}: {state} ({result.tokens} tokens, {result.seconds:.1f} s)", file=sys.stderr, flush=True)
    _print([(result.role, result) for result in results], "role", as_json=as_json)
    return 0


def _measure_recorded(cases: Sequence[Case], *, as_json: bool) -> int:
    results = [(quality.name, result) for quality in QUALITIES for result in measure_quality(cases, quality)]
    _print(results, "quality", as_json=as_json)
    repaired = {quality.name for quality in QUALITIES if quality.needs_repair}
    wrong = [
        f"{name}: {result.case}: {result.fault or 'not as it should be'}"
        for name, result in results
        if not result.is_right or (result.is_valid_first and name in repaired)
    ]
    print(*wrong, sep="\n", file=sys.stderr, end="\n" if wrong else "")
    return 1 if wrong else 0


def measure_quality(cases: Sequence[Case], quality: Quality) -> Iterator[CaseResult]:
    """Yield the result of each case with answers in one quality."""
    with ExitStack() as servers:

        def build(case: Case) -> Backend:
            server = servers.enter_context(ModelServer(play(case, quality)))
            provider = Provider(wire=ProviderProtocol.OPENAI_CHAT, url=server.base_url(WireProtocol.OPENAI_CHAT))
            return api_backend("api:recorded:model", {"recorded": provider}, probes={})

        yield from measure(cases, build, 60.0)


def _print(results: Sequence[tuple[str, CaseResult]], head: str, *, as_json: bool) -> None:
    if as_json:
        print(json.dumps([{head: name, **asdict(result)} for name, result in results], indent=1))
    else:
        print(render_table(head, summarize(results)), end="")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

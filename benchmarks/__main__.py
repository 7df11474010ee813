"""All benchmarks, one table: `python -m benchmarks [--quick] [--json]`. Exits with 1 if an aim was missed."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import asdict

from benchmarks import Measurement, bus, check, gate, layers, ledger, run

ALL: dict[str, Callable[[bool], list[Measurement]]] = {
    "ledger": ledger.run,
    "check": check.run,
    "layers": layers.run,
    "gate": gate.run,
    "bus": bus.run,
    "run": run.run,
}


def main(args: list[str]) -> int:
    unknown = set(args) - {"--quick", "--json"}
    if unknown:
        print(f"no option {' '.join(sorted(unknown))}; there are --quick and --json", file=sys.stderr)
        return 2
    results: dict[str, list[Measurement]] = {}
    for name, measure in ALL.items():
        results[name] = measure("--quick" in args)
        if "--json" not in args:
            print(f"{name}:", *results[name], sep="\n  ", flush=True)
    if "--json" in args:
        print(json.dumps({name: [asdict(one) for one in found] for name, found in results.items()}, indent=2))
    return 0 if all(one.met for found in results.values() for one in found) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

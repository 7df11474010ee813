"""Read many inputs with a reader, or with all of them, and write down those that it fails on.

    python -m tests.fuzz --inputs 1000000 --seed 1 --reader plan --reader junit
    python -m tests.fuzz --again .fuzz/plan/0123456789abcdef

Each kind of failure is told once, with a file that holds the input. `--state` is a file that knows how far each reader
has come, so that the same command goes on where it was broken off.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import time
import warnings
from pathlib import Path

from tests.fuzz.checking import Failure, Reader
from tests.fuzz.readers import READERS

_STEP = 1000
_MEMORY = 4 << 30
"""Bytes of address space: what wants more is a failure, not the end of the machine."""


def main() -> int:
    options = _options()
    warnings.simplefilter("error")
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    if options.again:
        return _again(options.again)
    done: dict[str, int] = json.loads(options.state.read_text()) if options.state and options.state.exists() else {}
    kinds: dict[tuple[str, str], int] = {}
    for name in options.reader or list(READERS):
        reader = READERS[name]
        began, first = time.monotonic(), done.get(name, 0)
        for start in range(first, options.inputs, _STEP):
            end = min(start + _STEP, options.inputs)
            for failure in _failures(reader, options.seed, range(start, end)):
                kinds[name, failure.kind] = kinds.get((name, failure.kind), 0) + 1
                if kinds[name, failure.kind] == 1:
                    _say(f"{name}: {failure.kind}\n{failure.trace}saved as {failure.save(options.found)}")
            done[name] = end
            if options.state:
                options.state.write_text(json.dumps(done, indent=0))
            if end % (50 * _STEP) == 0:
                _say(f"{name}: {end} inputs")
        read = max(0, options.inputs - first)
        bad = sum(count for (reader_name, _), count in kinds.items() if reader_name == name)
        _say(f"{name}: {read} inputs, {bad} failures, {time.monotonic() - began:.1f} s")
    return 1 if kinds else 0


def _failures(reader: Reader, seed: str, numbers: range) -> list[Failure]:
    found = (reader.check(reader.input(seed, number)) for number in numbers)
    return [failure for failure in found if failure is not None]


def _again(file: Path) -> int:
    """Read one input again, which lies in a folder with the reader's name."""
    failure = READERS[file.parent.name].check(file.read_bytes())
    _say(failure.trace if failure else f"{file.parent.name} reads it")
    return 1 if failure else 0


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--reader", action="append", choices=list(READERS), help="all of them by default")
    parser.add_argument("--inputs", type=int, default=1_000_000, help="for each reader")
    parser.add_argument("--seed", default="1")
    parser.add_argument("--found", type=Path, default=Path(".fuzz"), help="where inputs that fail are written")
    parser.add_argument("--state", type=Path, help="a file that knows how far each reader has come")
    parser.add_argument("--again", type=Path, help="read this input again, and nothing else")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())

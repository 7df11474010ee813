"""What is known of the runners' options: enough to take a command apart, and keep all of it but the selection."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final


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

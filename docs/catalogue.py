"""`docs/catalogue.md` and `docs/catalogue-composed.md`: every trick, tried. `--write` tries them and writes the pages.

Without `--write`, all listed tricks are tried and compared with the first page, and a sample of the composed ones with
the second: none may have become worse. `--composed` leaves the first page alone, and `--sample N` tries only N composed
tricks when the second is written. It takes minutes, so it is not part of the other documentation checks.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from difflib import unified_diff
from pathlib import Path

from proofstone.prove.classes import format_composed_summary, list_regressions, render_composed
from proofstone.prove.compose import FAMILY, load_whole_catalogue
from proofstone.prove.results import Proof, TrialStatus, format_summary, render_catalogue

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "catalogue.md"
COMPOSED_PAGE = ROOT / "docs" / "catalogue-composed.md"
SAMPLE = 16
HEAD = """\
# The catalogue of tricks

Written by `make catalogue`, which tries every trick; do not edit. Each is a table in
[`tests/cheats/tricks`](../tests/cheats/tricks): what it does to a sample project with a failing test, the layer that
must stop it, and its *honest twin*, which does the same kind of thing honestly and must pass. The last column is what
a gate says that runs the project's tests and looks at their exit code. *seen* says whether the trick is known from
published studies of agents or is our own. [What a pass is worth](evidence.md) explains the layers; `proofstone prove`
tries all of this on your machine. [Composed tricks](catalogue-composed.md) has the tricks that nobody wrote down one by
one: each class of fakes, in every place, at every moment, in every disguise.

"""
COMPOSED_HEAD = """\
# Composed tricks

Written by `make catalogue`; do not edit. These tricks are composed from the axes in
[`tests/cheats/tricks/composed`](../tests/cheats/tricks/composed): what is faked, where it lives, when it acts, and how
it is hidden. Of all combinations that make sense, those are tried that show a pair of values which no other has shown.
For each trick it is verified that the project's own tests pass after the cheat and after its honest twin, and that a
hidden check, run outside of any test runner, fails after the cheat and passes after the twin.

The checks are the plainest there are: no scope, no required test, no held-out check. *refused*: the check did not pass.
*named*: it passed below high confidence, for a reason that the honest twin does not have. *unnamed*: it passed below
high, and nothing said why this one. *high*: it passed with high confidence. What remains of each class is in the
[threat model](threat-model.md#what-a-check-does-not-see). `proofstone prove --family composed` tries them on your
machine, `--sample N` a part of them.

"""


def main(args: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--composed", action="store_true")
    parser.add_argument("--sample", type=int)
    options = parser.parse_args(args)
    listed = 0 if options.composed else check_listed(write=options.write)
    sample = options.sample if options.write or options.sample else SAMPLE
    return max(listed, check_composed(sample, write=options.write))


def check_listed(*, write: bool) -> int:
    """Try the listed tricks, and compare with their page or write it."""
    proof = tried()
    unsure = [one.trick for one in proof.trials if not one.is_ok and one.standing is not TrialStatus.MISSED]
    if unsure:
        # What the machine's own trouble can do to a trial it will not do twice. A trick that passed stays as it is.
        sys.stderr.write(f"once more: {', '.join(unsure)}\n")
        again = {one.trick: one for one in tried(*options_for(unsure)).trials}
        proof = proof.model_copy(update={"trials": tuple(again.get(one.trick, one) for one in proof.trials)})
    page = HEAD + render_catalogue(proof)
    if not proof.is_ok:
        sys.stderr.write(page)
        return 1
    if write:
        PAGE.write_text(page, encoding="utf-8")
    written = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
    for line in unified_diff(steady(written), steady(page), "docs/catalogue.md", "now", lineterm="", n=0):
        sys.stderr.write(line + "\n")
    sys.stdout.write(f"catalogue: {format_summary(proof.summary)}\n")
    return 0 if steady(written) == steady(page) else 1


def check_composed(sample: int | None, *, write: bool) -> int:
    """Try the composed tricks, or a sample of them, and compare with their page or write it."""
    part = ["--sample", str(sample)] if sample else []
    proof = tried("--family", FAMILY, *part)
    written = COMPOSED_PAGE.read_text(encoding="utf-8") if COMPOSED_PAGE.exists() else ""
    trials = {one.trick: one for one in proof.trials}
    unsure = [line.partition(":")[0] for line in list_regressions(written, proof.trials)]
    unsure += [one.trick for one in proof.trials if one.standing is TrialStatus.BROKEN and one.trick not in unsure]
    if unsure:
        sys.stderr.write(f"once more: {', '.join(unsure)}\n")
        trials |= {one.trick: one for one in tried(*options_for(unsure)).trials}
    sys.stdout.write(f"composed tricks: {format_composed_summary(list(trials.values()))}\n")
    if write:
        page = COMPOSED_HEAD + render_composed(load_whole_catalogue().composed, list(trials.values()))
        COMPOSED_PAGE.write_text(page, encoding="utf-8")
        return 0
    problems = list_regressions(written, list(trials.values()))
    for line in problems:
        sys.stderr.write(f"docs/catalogue-composed.md: {line}\n")
    return 1 if problems else 0


def options_for(tricks: list[str]) -> list[str]:
    return [word for trick in tricks for word in ("--trick", trick)]


def tried(*options: str) -> Proof:
    """`proofstone prove`, all of it or some tricks. Programs of this environment come first: the sample projects use
    its pytest, ruff and mypy."""
    environment = {**os.environ, "PATH": os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))}
    command = [sys.executable, "-c", "import sys; from proofstone.cli.main import main; sys.exit(main())"]
    done = subprocess.run(
        [*command, "prove", "--json", *options], env=environment, stdout=subprocess.PIPE, text=True, check=False
    )
    if done.returncode not in (0, 1):
        raise SystemExit(f"proofstone prove: exit code {done.returncode}")
    document = json.loads(done.stdout)
    return Proof.model_validate_json(json.dumps({name: document[name] for name in Proof.model_fields}))


def steady(page: str) -> list[str]:
    """The page without the rules that stopped each trick: several may, and which of them speaks first varies."""
    lines = [re.sub(r"(\| L\d \|) [^|]* \|", r"\1 |", line) for line in page.splitlines()]
    return [line.rpartition("| `")[0] if line.startswith("| L") else line for line in lines]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

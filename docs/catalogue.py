"""`docs/catalogue.md`: every trick, tried. `--write` tries them and writes the page; without it the page is compared.

It takes minutes, so it is not part of the other documentation checks: `make catalogue`, and CI, run it.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from difflib import unified_diff
from pathlib import Path

from proofstone.prove.results import Proof, TrialStatus, format_summary, render_catalogue

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "catalogue.md"
HEAD = """\
# The catalogue of tricks

Written by `make catalogue`, which tries every trick; do not edit. Each is a table in
[`tests/cheats/tricks`](../tests/cheats/tricks): what it does to a sample project with a failing test, the layer that
must stop it, and its *honest twin*, which does the same kind of thing honestly and must pass. The last column is what
a gate says that runs the project's tests and looks at their exit code. *seen* says whether the trick is known from
published studies of agents or is our own. [What a pass is worth](evidence.md) explains the layers; `proofstone prove`
tries
all of this on your machine.

"""


def main(args: list[str]) -> int:
    proof = tried()
    unsure = [one.trick for one in proof.trials if not one.is_ok and one.standing is not TrialStatus.MISSED]
    if unsure:
        # What the machine's own trouble can do to a trial it will not do twice. A trick that passed stays as it is.
        sys.stderr.write(f"once more: {', '.join(unsure)}\n")
        again = {one.trick: one for one in tried(*unsure).trials}
        proof = proof.model_copy(update={"trials": tuple(again.get(one.trick, one) for one in proof.trials)})
    page = HEAD + render_catalogue(proof)
    if not proof.is_ok:
        sys.stderr.write(page)
        return 1
    if "--write" in args:
        PAGE.write_text(page, encoding="utf-8")
    written = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
    for line in unified_diff(steady(written), steady(page), "docs/catalogue.md", "now", lineterm="", n=0):
        sys.stderr.write(line + "\n")
    sys.stdout.write(f"catalogue: {format_summary(proof.summary)}\n")
    return 0 if steady(written) == steady(page) else 1


def tried(*tricks: str) -> Proof:
    """`proofstone prove`, all of it or some tricks. Programs of this environment come first: the sample projects use
    its
    pytest, ruff and mypy."""
    environment = {**os.environ, "PATH": os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))}
    command = [sys.executable, "-c", "import sys; from proofstone.cli.main import main; sys.exit(main())"]
    options = [word for trick in tricks for word in ("--trick", trick)]
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

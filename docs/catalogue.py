"""`docs/catalogue.md`: every trick, tried. `--write` tries them and writes the page; without it the page is compared.

It takes minutes, so it is not part of the other documentation checks: `make catalogue`, and CI, run it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from difflib import unified_diff
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "catalogue.md"
HEAD = """\
# The catalogue of tricks

Written by `make catalogue`, which tries every trick; do not edit. Each is a table in
[`tests/cheats/tricks`](../tests/cheats/tricks): what it does to a sample project with a failing test, the layer that
must stop it, and its *honest twin*, which does the same kind of thing honestly and must pass. The last column is what
a gate says that runs the project's tests and looks at their exit code. *seen* says whether the trick is known from
published studies of agents or is our own. [What a pass is worth](evidence.md) explains the layers; `assay prove` tries
all of this on your machine.

"""


def main(args: list[str]) -> int:
    # Programs of this environment first: the sample projects use its pytest, ruff and mypy.
    environment = {**os.environ, "PATH": os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))}
    command = [sys.executable, "-c", "import sys; from assay.surfaces.cli.main import main; sys.exit(main())"]
    done = subprocess.run(
        [*command, "prove", "--markdown"], env=environment, stdout=subprocess.PIPE, text=True, check=False
    )
    if done.returncode != 0:
        sys.stderr.write(f"{done.stdout}\nassay prove: exit code {done.returncode}\n")
        return 1
    page = HEAD + done.stdout
    if "--write" in args:
        PAGE.write_text(page, encoding="utf-8")
    written = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
    for line in unified_diff(written.splitlines(), page.splitlines(), "docs/catalogue.md", "now", lineterm="", n=0):
        sys.stderr.write(line + "\n")
    sys.stdout.write(f"catalogue: {page.splitlines()[len(HEAD.splitlines())]}\n")
    return 0 if written == page else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

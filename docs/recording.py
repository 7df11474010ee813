"""Record `proofstone check` as a picture: `python docs/recording.py`, or `make recording`.

The program runs in a terminal, on a repository that this script makes: somebody has changed the code and made the test
agree with it. What the terminal shows is written to docs/recording.svg.
"""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).resolve().parents[1]
PICTURE = ROOT / "docs" / "recording.svg"
WIDTH = 118
CODE = "def discount(cents):\n    return cents // 2\n"
TEST = """import unittest

from cart import discount


class DiscountTest(unittest.TestCase):
    def test_a_discount_is_rounded_half_up(self):
        self.assertEqual(discount(333), 166)
"""


def main() -> int:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        root = folder / "shop"
        root.mkdir()
        environment = {
            **os.environ,
            "HOME": name,
            "PROOFSTONE_HOME": str(folder / "state"),
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "TERM": "xterm-256color",
            "COLUMNS": str(WIDTH),
            **{f"GIT_{who}_{what}": "you" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
        }
        environment.pop("NO_COLOR", None)
        (root / "cart.py").write_text(CODE)
        (root / "test_cart.py").write_text(TEST)
        for line in ("git init -q -b main", "git add .", "git commit -q -m Cart"):
            subprocess.run(line.split(), cwd=root, env=environment, check=True)
        (root / "cart.py").write_text(CODE.replace("cents // 2", "(cents + 1) // 2"))
        (root / "test_cart.py").write_text(TEST.replace("166", "167"))
        shown = run_in_terminal(["proofstone", "check", "--quiet"], root, environment)
    console = Console(record=True, width=WIDTH, file=Path(os.devnull).open("w"), force_terminal=True)  # noqa: SIM115
    console.print(Text("$ proofstone check", style="bold"))
    console.print(Text.from_ansi(shown))
    PICTURE.write_text(console.export_svg(title="All tests pass, says the agent", unique_id="proofstone"), "utf-8")
    sys.stdout.write(shown)
    return 0 if "edited-expectation" in shown else 1


def run_in_terminal(command: list[str], root: Path, environment: dict[str, str]) -> str:
    """Return what the program shows at a terminal, with its colours."""
    person, program = pty.openpty()
    process = subprocess.Popen(command, cwd=root, env=environment, stdin=program, stdout=program, stderr=program)
    os.close(program)
    shown = b""
    while True:
        try:
            data = os.read(person, 65536)
        except OSError:  # the program has closed the terminal
            break
        if not data:
            break
        shown += data
    process.wait()
    os.close(person)
    return shown.decode("utf-8", "replace").replace("\r\n", "\n")


if __name__ == "__main__":
    sys.exit(main())

"""Somebody who does what a page says, in one shell, in a folder of their own."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from proofstone.testing import acp_agent
from proofstone.testing.model_server.answers import Answer, ReceivedRequest, Reply, WireProtocol
from proofstone.testing.model_server.server import ModelServer
from tests import forked
from tests.documentation.page import DOCS, Command, Deed, File, deeds
from tests.workshop import Workshop

DISCOUNTED = """def total(prices):
    \"\"\"In cents.\"\"\"
    whole = sum(prices)
    return whole * 90 // 100 if whole >= 10000 else whole
"""
OWN_FILE = "~/.config/proofstone/proofstone.toml"
_SECONDS = 120
"""More than any page takes. What has not ended by then is ended, and counts as failed."""
_MARK = "--- {}: exit code "
_AGENT = {
    "runs": [
        {
            "steps": [
                {"edit": {"path": "README.md", "content": "Mine now.\n"}},
                {"edit": {"path": "shop.py", "content": DISCOUNTED}},
                {"say": "I have added the discount."},
            ]
        }
    ]
}
"""It first tries what it may not."""


@dataclass(frozen=True)
class Done:
    """A command, and what came of it."""

    command: Command
    exit: int
    printed: str


@dataclass(frozen=True)
class Reader:
    folder: Path
    own: str
    """What is in their own file from the beginning."""
    variables: Mapping[str, str]
    program: Path | None = None
    """The `proofstone` to use, instead of the one of this checkout."""

    @cached_property
    def workshop(self) -> Workshop:
        return Workshop.apart(self.folder)

    def does(self, page: Iterable[Deed]) -> list[Done]:
        """In order, to the last command or to one that ends the shell; what it says goes where its output goes."""
        workshop = self.workshop
        own = workshop.home / OWN_FILE.removeprefix("~/")
        own.parent.mkdir(parents=True)
        own.write_text(self.own)
        desk = self.folder / "desk"
        desk.mkdir()
        page = list(page)
        path = f"{self._programs(page)}{os.pathsep}{workshop.environment['PATH']}"
        shell = subprocess.Popen(
            ["bash", "-c", "\n".join(["exec 2>&1", *map(_line, range(len(page)), page)])],
            cwd=desk,
            env={**workshop.environment, **self.variables, "PATH": path},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        try:
            printed, _ = shell.communicate(timeout=_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(shell.pid, signal.SIGKILL)  # with whatever it has started
            printed, _ = shell.communicate()
        return list(_apart(page, printed))

    def _programs(self, page: Iterable[Deed]) -> Path:
        """A folder with `proofstone` as it is here, and an agent that speaks the Agent Client Protocol.

        A page that kills `proofstone` gets the program itself: what is forked is another process than was started."""
        folder = self.folder / "programs"
        folder.mkdir()
        # A sandbox hides temporary folders, and the clone may lie below one. So the agent needs only its own folder
        # and the interpreter behind the virtual environment.
        python = shlex.quote(str(Path(sys.executable).resolve()))
        shutil.copy(acp_agent.__file__, folder / "acp_agent.py")
        (folder / "my-agent.json").write_text(json.dumps(_AGENT))
        agent = folder / "my-agent"
        agent.write_text(f'#!/bin/sh\nexec {python} {folder}/acp_agent.py {folder}/my-agent.json "$@"\n')
        agent.chmod(0o755)
        kills = any(isinstance(deed, Command) and deed.line.startswith("kill ") for deed in page)
        own = Path(sys.executable).with_name("proofstone") if kills else forked.program()
        (folder / "proofstone").symlink_to(self.program or own)
        return folder


def _line(number: int, deed: Deed) -> str:
    mark = _MARK.format(number)
    if isinstance(deed, File):
        # Their own file has the providers in it already.
        onto = ">>" if deed.path == OWN_FILE else ">"
        path = f'"$HOME"{shlex.quote(deed.path[1:])}' if deed.path.startswith("~/") else shlex.quote(deed.path)
        write = f'mkdir -p "$(dirname {path})"; printf %s {shlex.quote(deed.text)} {onto}{path}'
        return f"{write}; echo; echo '{mark}'$?"
    return f"{deed.line}\nset -- $?; echo; echo '{mark}'$1"


def _apart(page: list[Deed], printed: str) -> Iterable[Done]:
    for number, deed in enumerate(page):
        said, found, rest = printed.partition("\n" + _MARK.format(number))
        code, _, printed = rest.partition("\n")
        if isinstance(deed, Command):
            yield Done(deed, int(code) if found else -1, said.removesuffix("\n"))
        if not found:
            return


def main(argv: list[str]) -> None:
    """`python -m tests.documentation.reader PAGE [HEADING]`: prints what comes of it, to be taken into the page."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder, providers() as (own, keys):
        for done in Reader(Path(folder), own, keys).does(deeds(Path(argv[0]).resolve(), *argv[1:2])):
            differs = done.command.differs(done.printed)
            sys.stdout.write(f"$ {done.command.line}\n{done.printed}\n[{done.exit}] {differs and f'NOT: {differs}'}\n")


_WIRES = {"openai": WireProtocol.OPENAI_RESPONSES, "anthropic": WireProtocol.ANTHROPIC}
_SCRIPT = DOCS / "tutorials" / "first-run.md"
_ROLE = re.compile(r"You are (?:the|a) (\w+)")


@contextmanager
def providers() -> Iterator[tuple[str, Mapping[str, str]]]:
    """The own file and the keys of somebody whose providers are all this one, here."""
    with ModelServer(_played(_team())) as server:
        own = "".join(
            f'[providers.{name}]\nwire = "{wire}"\nurl = "{server.base_url(wire)}"\n'
            f'key_variable = "{name.upper()}_API_KEY"\n\n'
            for name, wire in _WIRES.items()
        )
        yield own, {f"{name.upper()}_API_KEY": "a-key" for name in _WIRES}


def _team() -> Mapping[str, Mapping[str, Any]]:
    """The last entry of each role: those of the second attempt are honest."""
    [script] = (one.text for one in deeds(_SCRIPT) if isinstance(one, File) and one.path.endswith("team.yaml"))
    return {entry["role"]: entry for entry in YAML(typ="safe").load(script)}


def _played(team: Mapping[str, Mapping[str, Any]]) -> Callable[[ReceivedRequest], Answer]:
    def answer(asked: ReceivedRequest) -> Answer:
        role = _ROLE.match(asked.system)
        assert role is not None, asked.system[:100]
        entry = team[role[1]]
        calls = [next(iter(step["tool"].items())) for step in entry.get("steps", ()) if "tool" in step]
        said = sum(who == "assistant" for who, _ in asked.messages)
        return Reply(calls=([*calls, ("answer", entry["output"])][said],), input_tokens=2400, output_tokens=180)

    return answer


if __name__ == "__main__":
    main(sys.argv[1:])

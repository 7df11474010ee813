"""A program that has imported `proofstone` and is forked for every run of it; `forked.py` starts it and talks to it.

    python -W error nursery.py SOCKET_FD DOOR_FD

Its owner asks over the first; whoever else wants it forked knocks at the second, and asks once.
It imports nothing of the tests, has no thread, and ends when the other side of the socket is closed.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import select
import signal
import socket
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from typing import NoReturn

from pydantic import BaseModel

from proofstone.cli.main import COMMANDS, load_app, main

MOST = 1 << 17
"""Bytes of a request."""
LATER = (
    "anyio._backends._asyncio",
    "proofstone.agents.backends.api.backend",
    "genai_prices.data",
    "openai.resources.chat.completions.completions",
    "pydantic_ai.models.openai",
    "pydantic_ai.providers.openai_compatible",
    "rich.console",
    "rich.live",
    "rich.table",
    "tree_sitter_language_pack",
)
"""What commands import only where they come to it: the library of models alone takes longer than a whole check."""


def serve(requests: socket.socket, door: socket.socket) -> None:
    """Each request has its arguments, folder and variables, and four files: its input, two for the output, and one for
    the answer, which is the exit code; after the process id, if the request asks for a process group of its own."""
    for command in COMMANDS:
        load_app(command)  # what is imported here need not be imported by each of them
    for module in LATER:
        import_module(module)
    _build_schemas(BaseModel)
    # Python itself sets this variable where there is no locale, and every fork would have found it so.
    locale = {name: os.environ[name] for name in ("LC_CTYPE",) if name in os.environ}
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGCHLD, _take_leave)
    gc.freeze()
    while True:
        knocked = requests not in select.select([requests, door], [], [])[0]
        asking = door.accept()[0] if knocked else requests
        text, files, _, _ = socket.recv_fds(asking, MOST, 4)
        if knocked:
            asking.close()
        elif not text:
            requests.close()
            door.close()
            return
        if text and os.fork() == 0:
            break
        for file in files:
            os.close(file)
    requests.close()
    door.close()
    request = json.loads(text)
    _be_watched(files, leads=request.get("leads", False))
    _settle(request["cwd"], request["env"] | locale)
    sys.argv[:] = [request["program"], *request["args"]]
    _end(main())


def _build_schemas(base: type[BaseModel]) -> None:
    """Build what models build when they are first used: each fork would have to build it again."""
    for model in base.__subclasses__():
        if model.__module__.startswith("proofstone."):
            model.model_rebuild()
        _build_schemas(model)


def _take_leave(_number: int, _frame: object) -> None:
    """Whoever has ended is waited for: the time that they used counts as ours, and so as the suite's."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _be_watched(files: Sequence[int], *, leads: bool) -> None:
    """Fork once more: the child goes on with input and output, the parent tells how it ended."""
    *standard, answer = files
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    child = os.fork()
    if leads:
        os.setpgid(child, child or os.getpid())  # on both sides: whoever comes first
    if child:
        if leads:
            os.write(answer, f"{child}\n".encode())
        _, status = os.waitpid(child, 0)
        os.write(answer, str(os.waitstatus_to_exitcode(status)).encode())
        os._exit(0)
    for number, file in enumerate(standard):
        os.dup2(file, number)
    for file in files:
        os.close(file)
    # Made anew, as at a start: those that there are take the new files for what the old ones were, say a terminal.
    sys.stdin, sys.stdout = os.fdopen(0, closefd=False), os.fdopen(1, "w", closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, errors="backslashreplace", closefd=False)


def _settle(folder: str, variables: dict[str, str]) -> None:
    """As if it had been started there."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(variables)
    sys.path[0] = ""


def _end(code: int) -> NoReturn:
    """As Python ends, but that nothing is taken apart: this would first copy, page by page, all that was imported, and
    takes several times as long as a short command."""
    threading._shutdown()  # type: ignore[attr-defined]  # waits for threads, as Python does
    atexit._run_exitfuncs()
    gc.collect()  # what was not closed is said
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])), socket.socket(fileno=int(sys.argv[2])))

"""An MCP server as a provider: a real program, spoken to over its standard input and output."""

from __future__ import annotations

import json
import os
import shlex
import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from proofstone.agents.rules.tool_rules import ToolFailedError
from proofstone.agents.web.mcp import FETCH_ARGUMENTS, SEARCH_ARGUMENTS, McpServer
from tests.waiting import wait_until

PROGRAM = Path(__file__).with_name("mcp_program.py")
SECRET = "the-key-that-nobody-may-see"


@dataclass
class Bench:
    folder: Path
    servers: list[McpServer] = field(default_factory=list)

    @property
    def log(self) -> Path:
        return self.folder / "log"

    def server(self, *habits: str) -> McpServer:
        command = shlex.join((sys.executable, str(PROGRAM), str(self.log), *habits))
        environ = {"HOME": str(self.folder), "PATH": os.environ["PATH"], "OWN_TOKEN": SECRET, "OTHER": "withheld"}
        server = McpServer(command, environ, ("OWN_TOKEN",))
        self.servers.append(server)
        return server

    def heard(self) -> list[tuple[int, str]]:
        """What the programs were told, each with the number of the program."""
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        return [(int(line.partition(" ")[0]), line.partition(" ")[2]) for line in lines]


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(tmp_path)
    yield bench
    for server in bench.servers:
        server.close()


def call(
    server: McpServer, tool: str, wanted: str = "x", names: Sequence[str] = SEARCH_ARGUMENTS, seconds: float = 20
) -> str:
    return server.call(tool, names, wanted, seconds, threading.Event())


def failed(server: McpServer, tool: str, seconds: float = 20) -> str:
    with pytest.raises(ToolFailedError) as failure:
        call(server, tool, seconds=seconds)
    return failure.value.text


def is_there(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def is_gone(pid: int) -> bool:
    """A process that was killed takes a moment to be gone."""
    wait_until(lambda: not is_there(pid))
    return True


def test_it_searches_and_fetches_with_one_program(bench: Bench) -> None:
    server = bench.server()
    assert json.loads(call(server, "search", "some words"))[0]["content"] == "some words"
    assert json.loads(call(server, "read", "https://e.org/a", FETCH_ARGUMENTS)) == {"urls": ["https://e.org/a"]}
    assert len({pid for pid, _ in bench.heard()}) == 1
    methods = [said for _, said in bench.heard() if not said.startswith("answer")]
    introduced = ["initialize", "notifications/initialized", "tools/list", "tools/list"]
    assert methods == [*introduced, "tools/call", "tools/call"]


def test_nothing_is_started_before_the_first_call(bench: Bench) -> None:
    bench.server().close()
    assert bench.heard() == []


def test_an_argument_of_another_name_is_found_if_it_is_the_only_one(bench: Bench) -> None:
    assert json.loads(call(bench.server(), "odd", "words")) == {"needle": "words"}


def test_what_it_asks_of_us_is_answered(bench: Bench) -> None:
    call(bench.server(), "search")
    assert "answer {}" in [said for _, said in bench.heard()]


@pytest.mark.parametrize(
    ("tool", "said"),
    [
        ("missing", "has no tool missing: dies, fails, odd"),
        ("unclear", "not clear which argument of unclear"),
        ("fails", "fails failed: no such page"),
    ],
)
def test_what_cannot_be_had_fails_in_words(bench: Bench, tool: str, said: str) -> None:
    assert said in failed(bench.server(), tool)


def test_it_gets_the_variables_that_were_named_and_a_folder_that_is_not_the_repositorys(bench: Bench) -> None:
    told = json.loads(call(bench.server(), "tells"))
    assert told["cwd"] == str(bench.folder)
    assert "OWN_TOKEN" in told["env"] and "OTHER" not in told["env"]
    assert told["key"] == "…"


def test_one_that_ends_is_a_failure_and_is_not_started_again(bench: Bench) -> None:
    server = bench.server()
    for _ in range(2):
        text = failed(server, "dies")
        assert "has ended" in text and "out of order" in text and SECRET not in text
    assert len({pid for pid, _ in bench.heard()}) == 1


def test_a_program_that_there_is_not_is_a_failure() -> None:
    server = McpServer("/nowhere/at-all --serve", {"PATH": "/usr/bin"})
    assert failed(server, "search") == "The MCP server /nowhere/at-all cannot be started: No such file or directory."
    server.close()


def test_one_that_does_not_answer_is_left_at_the_deadline(bench: Bench) -> None:
    assert "did not answer in time" in failed(bench.server("mute"), "search", seconds=0.3)


def test_an_answer_that_comes_too_late_is_nobodys(bench: Bench) -> None:
    server = bench.server()
    call(server, "search")
    assert "did not answer in time" in failed(server, "slow", seconds=0.2)
    assert json.loads(call(server, "search", "the next"))[0]["content"] == "the next"


def test_work_that_is_stopped_does_not_wait(bench: Bench) -> None:
    server, cancel = bench.server("mute"), threading.Event()
    threading.Timer(0.2, cancel.set).start()
    with pytest.raises(ToolFailedError, match="stopped"):
        server.call("search", SEARCH_ARGUMENTS, "x", 60, cancel)


def test_several_threads_take_turns(bench: Bench) -> None:
    server = bench.server()
    found: dict[str, str] = {}

    def ask(words: str) -> None:
        found[words] = json.loads(call(server, "search", words))[0]["content"]

    threads = [threading.Thread(target=ask, args=(f"words {number}",)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {words: words for words in found} and len(found) == 6
    assert len({pid for pid, _ in bench.heard()}) == 1


def test_closing_ends_it_with_what_it_has_started(bench: Bench) -> None:
    server = bench.server("child", "stays")
    call(server, "search")
    pid = bench.heard()[0][0]
    child = next(int(said.split()[1]) for _, said in bench.heard() if said.startswith("child"))
    assert is_there(pid) and is_there(child)
    server.close()
    assert is_gone(pid) and is_gone(child)
    server.close()

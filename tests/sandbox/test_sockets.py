"""Sockets of the machine that a check could reach by path are known, however they were bound."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from proofstone.sandbox.mounts import find_open_sockets

_LISTEN = """
import os, socket, sys
server = socket.socket(socket.AF_UNIX)
server.bind(sys.argv[1])
server.listen()
os.chdir(sys.argv[2])
print("there", flush=True)
sys.stdin.read()
"""


def test_a_socket_with_a_whole_path_is_found(tmp_path: Path) -> None:
    place = tmp_path / "a.sock"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(place))
        server.listen()
        assert place in find_open_sockets(tmp_path / "repo", (), ())
        assert place not in find_open_sockets(tmp_path / "repo", (tmp_path,), ())
        assert place not in find_open_sockets(tmp_path / "repo", (), (place,))


@pytest.mark.parametrize(
    ("at", "name", "goes_to"),
    [("repo", "../b.sock", "repo"), ("repo", "../b.sock", "/"), ("elsewhere", "b.sock", "elsewhere")],
    ids=["beside the repository", "by one who has left since", "where its owner stands"],
)
def test_a_socket_with_a_relative_name_is_found(tmp_path: Path, at: str, name: str, goes_to: str) -> None:
    (tmp_path / "repo").mkdir()
    (tmp_path / "elsewhere").mkdir()
    where = tmp_path / at
    with subprocess.Popen(
        [sys.executable, "-c", _LISTEN, name, goes_to if goes_to == "/" else "."],
        cwd=where,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as owner:
        assert owner.stdout and owner.stdout.readline() == b"there\n"
        found = {path.resolve() for path in find_open_sockets(tmp_path / "repo", (), ())}
        owner.communicate(b"")
    assert (where / name).resolve() in found

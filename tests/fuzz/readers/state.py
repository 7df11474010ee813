"""Readers of settings, of the ledger and other files of our own that somebody may have edited, and of git's output."""

from __future__ import annotations

import hashlib
import io
import json
import random
import socket
import sqlite3
import zlib
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import cast

from proofstone.agents.executors.output import read_output_file
from proofstone.agents.memory.models import MemoryEntry
from proofstone.agents.memory.store import FileMemory
from proofstone.agents.roles.requests import _minimal_value as least_value
from proofstone.agents.script_file import read_script
from proofstone.app.runs import name_unreadable_run
from proofstone.check.cache import ResultCache
from proofstone.check.recording import find_recorded_checks
from proofstone.cli.run_kinds import RUN_KINDS
from proofstone.common.models import Phase, Verdict
from proofstone.config.loader import load_model, load_settings_files
from proofstone.config.rules import RequestedPermission
from proofstone.config.services import to_traces_url
from proofstone.config.setting_docs import find_line
from proofstone.config.trust import compute_grant_digest, load_grants
from proofstone.config.user import UserSettings
from proofstone.errors import LedgerCorruptError
from proofstone.git.commit import find_work_trees
from proofstone.git.merge import _parse_conflict_kinds as conflict_kinds
from proofstone.git.objects import BlobReader, _is_intact, list_index, list_tree
from proofstone.git.pending_commit import find_work_tree_roots
from proofstone.git.program import Git, _split_records
from proofstone.git.repository import Repository
from proofstone.git.snapshot import find_renames, parse_raw_diff
from proofstone.git.store import Store
from proofstone.git.work_tree import open_work_tree
from proofstone.hooks.agent_hooks import StopRounds
from proofstone.hooks.agent_sessions import CodingSession, SessionStarts, find_session_projects
from proofstone.ledger import Ledger
from proofstone.ledger import daemon as wire
from proofstone.ledger.anchors import AnchorFiles, check_anchors, parse_anchors
from proofstone.ledger.connection import location_path, read_daemon_location
from proofstone.ledger.daemon import LedgerDaemon
from proofstone.ledger.keys import key_path
from proofstone.ledger.models import CheckRow, EventRow
from proofstone.ledger.rules.anchors import Anchor, StoredAnchor
from proofstone.ledger.rules.chain import ChainLink
from proofstone.ledger.schema import TABLES, StoredRow
from proofstone.ledger.sqlite import SqliteLedger
from proofstone.ledger.verification import Checkpoint, read_checkpoint
from proofstone.machine.files import read_alternates, read_plan_file
from proofstone.runtime.run_index import read_run_config
from proofstone.sandbox.gateway import parse_hosts
from tests.fuzz.checking import Reader, folder, text_of

# Settings.

_SETTINGS = (
    b'[check]\nverify = ["pytest -q"]\noptional = ["lint:*"]\nmax_file_kb = 500\n\n[sandbox]\nlevel = "bubblewrap"\n'
    b'memory_mb = 2048\n\n[environment]\npass_through = ["HOME"]\nset = { A = "b" }\n\n[gate]\nexecutor = "cmd:x"\n',
    b'[web]\nsearch = "https://example.org/{query}"\n[telemetry]\nendpoint = "http://127.0.0.1:4318"\n'
    b"[budget]\nusd = 1.5\ntokens = 10\n",
    b'[backends]\nexecutor = "api:m"\n[providers.mine]\nurl = "https://example.org/v1"\nkey = "A_KEY"\n',
)


def _settings(data: bytes) -> None:
    load_settings_files({"proofstone.toml": data})


def _pyproject(data: bytes) -> None:
    load_settings_files({"pyproject.toml": data})


def _person(data: bytes) -> None:
    load_model(data, "config.toml", UserSettings)


def _line_of_key(data: bytes) -> None:
    text = text_of(data)
    line = find_line(text, ("check", "verify", "0"))
    assert line is None or 1 <= line <= text.count("\n") + text.count("\r") + 1


def _hosts(data: bytes) -> None:
    for host in parse_hosts(text_of(data).split("\n")):
        assert 0 < host.port < 65536


def _endpoint(data: bytes) -> None:
    to_traces_url(text_of(data))


_NEED = RequestedPermission("gate.network", "true")
_GRANTS = json.dumps(
    {
        "grants": [
            {
                "repository": "/project",
                "digest": compute_grant_digest([_NEED]),
                "granted_at": "2026-01-01T00:00:00Z",
                "needs": [{"setting": _NEED.setting, "value": _NEED.value}],
            }
        ]
    }
).encode()


# Files of our own.


def _file_reader(name: str, read: Callable[[Path], object]) -> Callable[[bytes], None]:
    def run(data: bytes) -> None:
        path = folder("state") / name
        path.write_bytes(data)
        read(path)

    return run


_SCRIPT = b"""- role: executor
  match: {task: "task-01", attempt: 1}
  steps:
    - tool: {write: {path: a.py, content: "x = 1\\n"}}
    - run: {command: "true"}
    - error: {kind: crashed, why: "it fell over"}
  output: {status: success, files_modified: [a.py], done_criteria_met: true}
- role: architect
  output: &v {verdict: APPROVED}
- role: "review*"
  raw: "no"
  delay: 0.1
"""


def _memory_entry() -> bytes:
    schema = MemoryEntry.model_json_schema()
    values = {name: least_value(schema, field, (name,)) for name, field in schema["properties"].items()}
    return json.dumps(values).encode() + b"\n"


def _kept_result(data: bytes) -> None:
    place = folder("cache")
    (place / "ab").mkdir(exist_ok=True)
    (place / "ab" / "cd.json").write_bytes(data)
    nobody = SimpleNamespace(read=lambda *_args, **_more: [])
    ResultCache(place, cast(Ledger, nobody)).lookup("abcd")


def _rounds(data: bytes) -> None:
    rounds = StopRounds(folder("rounds"), "conversation")
    rounds._file.write_bytes(data)
    rounds.read_count()


def _session(data: bytes) -> None:
    starts, session = SessionStarts(folder("home"), Path("/project")), CodingSession("claude", "one")
    starts._file(session).parent.mkdir(exist_ok=True)
    starts._file(session).write_bytes(data)
    starts.read(session)
    starts.read(CodingSession("claude", ""))
    starts.find_foreign_roots(session)
    find_session_projects(folder("home"), session)


def _anchors(data: bytes) -> None:
    anchors = parse_anchors(data, source="anchors")
    check_anchors(anchors, Anchor(ledger_id="a", seq=3, hash="0" * 64), lambda _seq: "0" * 64)


# The ledger.


def _row(data: bytes) -> None:
    """A row whose columns hold what somebody wrote there."""
    try:
        values = json.loads(data)
    except (ValueError, RecursionError):
        values = {"payload": text_of(data)}
    values = values if isinstance(values, dict) else {"payload": text_of(data)}
    link = ChainLink(1, "events", "0" * 64, "0" * 64, "0" * 64)
    for kind in TABLES:
        scalars: dict[str, str | int | None] = {
            name: value if isinstance(value := values.get(name), str | int | None) else json.dumps(value)
            for name in (*kind.model_fields, "ts")
        }
        with suppress(LedgerCorruptError):
            StoredRow(kind, link, scalars).row  # noqa: B018  reading it is what is tried


def _run_start(data: bytes) -> None:
    """The row that a run began with, of any command, in the form that another version of us may have given it."""
    try:
        payload = json.loads(data)
    except (ValueError, RecursionError):
        return  # the ledger holds JSON only; `ledger-row` reads what is not
    for kind in RUN_KINDS:
        row = SimpleNamespace(payload={**(payload if isinstance(payload, dict) else {}), "command": kind.command})
        ledger = cast(Ledger, SimpleNamespace(read=lambda *_, row=row, **__: [SimpleNamespace(row=row)]))
        with suppress(LedgerCorruptError), name_unreadable_run("run"):
            setup = read_run_config(ledger, kind.runs.setup_model, "run")
            assert setup is not None and isinstance(setup.subject, str)


@cache
def _ledger_bytes() -> bytes:
    """Return a small ledger, whole in one file."""
    path = folder("ledger-made") / "ledger.db"
    with SqliteLedger(path) as ledger:
        for number in range(3):
            run = f"20260101T00000{number}Z-abcdef"
            told = {"command": "check", "repository": "/project", "tree": "a" * 40, "base_commit": "b" * 40}
            ledger.append(EventRow(run_id=run, type="run.started", payload={**told, "sandbox": "bubblewrap"}))
            row = CheckRow(
                run_id=run, task_id="t", phase=Phase.AFTER, check_name="tests", tool="pytest", state=Verdict.PASS
            )
            ledger.append(row, EventRow(run_id=run, type="finding.accepted", payload={"rule": "r", "reason": "x"}))
            ledger.append(EventRow(run_id=run, type="run.finished", payload={"outcome": "passed", "reason": ""}))
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return path.read_bytes()


def _ledger_seeds() -> Sequence[bytes]:
    """Each seed says where in the ledger's file which bytes are replaced."""
    dice = random.Random(1)
    return [dice.randbytes(4) + dice.choice((b"", b"\0", b"x", b"{", b'"', b"]", b"9")) for _ in range(40)]


def _ledger_file(data: bytes) -> None:
    """A ledger of which some bytes are others: by the input's first four bytes where, by the rest which."""
    whole = bytearray(_ledger_bytes())
    at = int.from_bytes(data[:4].ljust(4, b"\0"), "big") % len(whole)
    whole[at : at + len(data[4:])] = data[4:]
    path = folder("ledger") / "ledger.db"
    for left in path.parent.iterdir():
        left.unlink()
    path.write_bytes(whole)
    key_path(path).write_bytes(key_path(folder("ledger-made") / "ledger.db").read_bytes())
    with SqliteLedger(path, "read", busy_ms=0) as ledger:
        intact = ledger.verify().ok
        assert not intact or bytes(whole) == _ledger_bytes() or _same_rows(ledger), "damage was not seen"
        for kind in TABLES:
            for stored in ledger.read(kind):
                stored.row  # noqa: B018  reading it is what is tried
    find_recorded_checks(path, ("/project",))


def _same_rows(ledger: SqliteLedger) -> bool:
    """Whether what the ledger says is what was written, although other bytes of its file are damaged."""
    path = folder("ledger-made") / "ledger.db"
    with SqliteLedger(path, "read") as made:
        return [one.values for one in ledger.read(EventRow)] == [one.values for one in made.read(EventRow)] and [
            one.values for one in ledger.read(CheckRow)
        ] == [one.values for one in made.read(CheckRow)]


def _location(data: bytes) -> None:
    path = location_path(folder("located"))
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(data)
    read_daemon_location(folder("located"))


def _kept_anchor(data: bytes) -> None:
    kept = AnchorFiles(folder("anchored"))
    kept.folder.mkdir(exist_ok=True)
    (kept.folder / "one.jsonl").write_bytes(data)
    list(kept.list_last())


@cache
def _daemon() -> LedgerDaemon:
    return LedgerDaemon(SqliteLedger(folder("kept-by-daemon") / "ledger.db"), cast("socket.socket", None), 0)


def _request(data: bytes) -> None:
    """What a client sends to the ledger's daemon: it is answered, whatever it is."""
    here, there = socket.socketpair()
    with here, there:
        here.sendall(len(data).to_bytes(4, "big") + data)
        here.shutdown(socket.SHUT_WR)
        message = wire.receive_message(there)
        if message is not None:
            assert set(_daemon()._answer(message)) & {"ok", "error"}


_KEPT = StoredAnchor(anchor=Anchor(ledger_id="a", seq=3, hash="0" * 64), repository="/repo/.git", identity="1:2")
_REQUESTS = (
    b'{"op": "append", "rows": [{"table": "events", "row": {"run_id": "r", "type": "t"}}], "provided": '
    b'[{"table": "events", "where": {"run_id": "r"}, "seq": 9}], "durable": false}',
    b'{"op": "is_authentic", "stored": {"table": "events", "link": [1, "events", "a", "b", "c"], "values": {}}}',
    b'{"op": "verify", "anchors": [{"ledger_id": "a", "seq": 3, "hash": "' + b"0" * 64 + b'"}], "since": null}',
    b'{"op": "checkpoint"}',
)


# Git's output.

_TREE = (
    b"100644 blob e69de29bb2d1d6434b8b29ae775ad8c2e48c5391\tsrc/a.py\0"
    b"120000 blob e69de29bb2d1d6434b8b29ae775ad8c2e48c5391\tlink \xff\0"
    b"160000 commit e69de29bb2d1d6434b8b29ae775ad8c2e48c5391\tsub\0"
)
_INDEX = b"H 100644 e69de29bb2d1d6434b8b29ae775ad8c2e48c5391 0\ta.py\0S 100755 " + b"0" * 40 + b" 0\tb\tc\0"
_RAW = b":100644 100644 " + b"1" * 40 + b" " + b"2" * 40 + b" M\0a.py\0:000000 100644 " + b"0" * 40 + b" " + b"3" * 40
_RAW += b" A\0b\nc\0"
_WORKTREES = b"worktree /project\0HEAD " + b"1" * 40 + b"\0branch refs/heads/main\0\0worktree /other\0bare\0\0"


class _Said:
    """Stands for git: whatever it is asked, it says what the input says."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def run_records(self, *_args: str) -> list[bytes]:
        return _split_records(self._data)

    run_cached_records = run_records

    def run_output(self, *_args: str) -> bytes:
        return self._data


def _git(data: bytes) -> Git:
    return cast(Git, _Said(data))


def _repository(data: bytes) -> Repository:
    return cast(Repository, SimpleNamespace(git=_git(data), root=Path("/project"), git_in=lambda _folder: _git(data)))


def _raw(data: bytes) -> None:
    parse_raw_diff(_split_records(data))


_ABC = "f2ba8f84ab5c1bce84a7b441cb1959cfc7093b7f"
"""The name of the object that holds `abc`."""


def _object(data: bytes) -> None:
    path = folder("objects-loose") / _ABC
    path.write_bytes(data)
    is_sound = _is_intact(path, _ABC, "sha1")
    assert is_sound == (sha1_of(data) == _ABC)


def sha1_of(data: bytes) -> str:
    """Return the name of the object that the bytes are, if they are one."""
    try:
        return hashlib.sha1(zlib.decompress(data)).hexdigest()
    except zlib.error:
        return ""


def _blob(data: bytes) -> None:
    talked = SimpleNamespace(stdin=io.BytesIO(), stdout=io.BytesIO(data))
    reader = BlobReader(talked)  # type: ignore[arg-type]
    size, content = reader.read_with_size("e69de29bb2d1d6434b8b29ae775ad8c2e48c5391")
    assert content is None or len(content) == size


def _alternates(data: bytes) -> None:
    objects = folder("objects")
    (objects / "info").mkdir(exist_ok=True)
    (objects / "info" / "alternates").write_bytes(data)
    read_alternates(objects)


def _work_tree(data: bytes) -> None:
    place = folder("work-tree")
    (place / "work-tree.json").write_bytes(data)
    open_work_tree(cast(Store, SimpleNamespace(repository=SimpleNamespace(object_dirs=()))), place)


_HOME = "proofstone.agents.memory.store"
READERS: tuple[Reader, ...] = (
    Reader("settings", _settings, lambda: _SETTINGS, ("proofstone.config.loader", "proofstone.config.services")),
    Reader(
        "pyproject",
        _pyproject,
        lambda: [one.replace(b"[", b"[tool.proofstone.", 1) for one in _SETTINGS],
        ("proofstone.config.loader",),
    ),
    Reader(
        "person-settings",
        _person,
        lambda: [*_SETTINGS, b'[trust]\nprograms = ["claude"]\n[programs.claude]\npass = ["A_KEY"]\n'],
        ("proofstone.config.loader",),
    ),
    Reader(
        "grants",
        _file_reader("trust.json", load_grants),
        lambda: [_GRANTS],
        ("proofstone.config.trust",),
    ),
    Reader("git-object", _object, lambda: [zlib.compress(b"blob 3\0abc")], ("proofstone.git.objects",)),
    Reader("settings-line", _line_of_key, lambda: _SETTINGS, ("proofstone.config.setting_docs",)),
    Reader("hosts", _hosts, lambda: [b"api.example.org", b"*.example.org:8080\n[::1]:5000", b"127.0.0.1:11434"], ()),
    Reader(
        "endpoint",
        _endpoint,
        lambda: [b"https://user@example.org:4318/v1/traces?x=y#z", b"http://[::1]:1"],
        (),
        refuses=(ValueError,),
    ),
    Reader("script", _file_reader("script.yaml", read_script), lambda: [_SCRIPT], ("proofstone.agents.script_file",)),
    Reader(
        "memory",
        _file_reader("memory.jsonl", lambda path: FileMemory(path).entries()),
        lambda: [_memory_entry(), _memory_entry() * 2],
        (_HOME,),
    ),
    Reader("plan-file", _file_reader("PLAN.md", read_plan_file), lambda: [b"# Plan\n"], ("proofstone.machine.files",)),
    Reader("result-file", _file_reader("result.json", read_output_file), lambda: [b'{"status": "success"}'], ()),
    Reader(
        "kept-result",
        _kept_result,
        lambda: [b'{"seq": 1, "row_hash": "x", "result": {}}'],
        ("proofstone.check.cache",),
    ),
    Reader(
        "checkpoint",
        _file_reader("checkpoint.json", lambda path: read_checkpoint(path, "a", b"key")),
        lambda: [Checkpoint(anchor=_KEPT.anchor, mac="0" * 64).model_dump_json().encode()],
        ("proofstone.ledger.verification",),
    ),
    Reader(
        "kept-anchor",
        _kept_anchor,
        lambda: [_KEPT.model_dump_json().encode() + b"\n"],
        ("proofstone.ledger.anchors",),
    ),
    Reader(
        "ledger-location",
        _location,
        lambda: [b'{"database": "/d", "socket": "/run/s", "account_uid": 3}'],
        ("proofstone.ledger.connection",),
    ),
    Reader("ledger-request", _request, lambda: _REQUESTS, ("proofstone.ledger.daemon",)),
    Reader("stop-rounds", _rounds, lambda: [b"3", b"12"], ()),
    Reader(
        "agent-session",
        _session,
        lambda: [
            b'{"agent": "claude", "root": "/project", "commit": "' + b"a" * 40 + b'", "start": true}',
            b'{"agent": "claude", "root": "/project", "commit": 1}',
            b'{"agent": "claude", "id": "one", "root": "/project", "commit": "' + b"a" * 40 + b'", "state": {"refs": '
            b'{"refs/heads/main": "b"}, "stashes": ["c"], "work_trees": [["/project", "refs/heads/main", "b", ""]]}}',
        ],
        ("proofstone.hooks.agent_sessions",),
    ),
    Reader(
        "anchors",
        _anchors,
        lambda: [Anchor(ledger_id="a", seq=3, hash="0" * 64).to_bytes() * 2],
        ("proofstone.ledger.anchors",),
    ),
    Reader(
        "ledger-row",
        _row,
        lambda: [
            b'{"run_id": "r", "task_id": "t", "type": "x", "payload": "{\\"a\\": [1]}", "ts": "2026-01-01T00:00:00Z"}',
            b'{"run_id": "r", "phase": "after", "check_name": "c", "tool": "t", "state": "pass", "task_id": "t"}',
        ],
        ("proofstone.ledger.schema",),
    ),
    Reader(
        "run-start",
        _run_start,
        lambda: [
            b'{"version": "1", "repository": "/r", "base_commit": "1", "tree": "2", "frozen": "2", "base": "3", '
            b'"sandbox": "plain", "parent": "", "settings_commit": ""}',
            b'{"version": "1", "repository": "/r", "base_commit": "1", "plan_path": "PLAN.md", "plan_artifact": "a", '
            b'"branch": "b", "executor": "cmd:true", "architect": "rules", "slots": 1, "minutes": 60, "hooks": "skip", '
            b'"sign": false, "author_name": "n", "author_email": "e", "sandbox": "plain", "goal": "g", "request": "q"}',
        ],
        ("proofstone.app.runs", "proofstone.runtime.run_index"),
    ),
    Reader(
        "ledger-file",
        _ledger_file,
        _ledger_seeds,
        ("proofstone.ledger.schema", "proofstone.check.recording"),
    ),
    Reader("git-tree", lambda data: list_tree(_git(data), "HEAD"), lambda: [_TREE], ("proofstone.git.objects",)),
    Reader("git-index", lambda data: list_index(_git(data)), lambda: [_INDEX], ("proofstone.git.objects",)),
    Reader("git-diff", _raw, lambda: [_RAW], ("proofstone.git.snapshot",)),
    Reader("git-renames", lambda data: find_renames(_git(data), "a", "b"), lambda: [b"R100\0a\0b\0R090\0c\0d\0"], ()),
    Reader("git-blob", _blob, lambda: [b"e69de29bb2d1d6434b8b29ae775ad8c2e48c5391 blob 3\nabc\n"], ()),
    Reader(
        "git-conflicts",
        conflict_kinds,
        lambda: [b"1\0a.py\0Auto-merging\0Auto-merging a.py\n\02\0a\0b\0CONFLICT\0CONFLICT (add/add): x\0"],
        (),
    ),
    Reader(
        "git-worktrees",
        lambda data: (find_work_tree_roots(_repository(data)), find_work_trees(_repository(data), "main")),
        lambda: [_WORKTREES],
        ("proofstone.git.pending_commit", "proofstone.git.commit"),
    ),
    Reader(
        "git-alternates",
        _alternates,
        lambda: [b'/a/b\n"/c\\n\\303\\274"\n# x\n../d\n'],
        ("proofstone.machine.files",),
    ),
    Reader(
        "work-tree-note",
        _work_tree,
        lambda: [b'{"base_commit": "0000", "sandboxed": false}'],
        ("proofstone.git.work_tree",),
    ),
)

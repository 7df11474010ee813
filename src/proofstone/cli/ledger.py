"""`proofstone ledger`: verify, show, query and export the evidence, and choose who keeps it.

Most commands only read. Imports that only verifying, anchoring or moving the ledger needs are local to them.
"""

from __future__ import annotations

import json
import os
import secrets
import sys
from collections.abc import Iterable, Iterator
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from proofstone.cli.output import JsonOption, NoColorOption, Output
from proofstone.cli.process import find_output_error
from proofstone.common.models import FrozenModel
from proofstone.common.text import escape_control
from proofstone.config.home import find_proofstone_home
from proofstone.config.rules import detect_coding_agent
from proofstone.errors import InputError, LedgerCorruptError
from proofstone.git.repository import find_repository_root
from proofstone.ledger import Verification, read_all_rows
from proofstone.ledger.anchors import parse_anchors
from proofstone.ledger.artifacts import ArtifactStore
from proofstone.ledger.connection import artifacts_path, ledger_path
from proofstone.ledger.query import DEFAULT_LIMIT, DEFAULT_SECONDS, QueryResult, find_any_run, run_query
from proofstone.ledger.rules.anchors import Anchor
from proofstone.ledger.rules.chain import ChainBreak
from proofstone.ledger.schema import StoredRow
from proofstone.ledger.sqlite import SqliteLedger

if TYPE_CHECKING:
    from proofstone.app.ledger import LedgerVerification
    from proofstone.ledger.daemon import DaemonConfig


app = typer.Typer(add_completion=False, help="Verify, show, query and export the evidence.")

HomeOption = Annotated[
    Path | None,
    typer.Option(
        "--home", metavar="DIR", help="The folder of the ledger; by default PROOFSTONE_HOME or the state directory."
    ),
]
_ACCOUNT = "proofstone-ledger"
_HELD_OUT = "SELECT 1 FROM checks WHERE artifact = ? AND check_name LIKE 'held-out%'"
LimitOption = Annotated[int, typer.Option("--limit", min=1, help="The most rows to show.")]

_RUNS = """
SELECT recent.run_id AS run,
       REPLACE(SUBSTR(COALESCE((SELECT ts FROM events WHERE seq = recent.first_seq),
                               (SELECT ts FROM checks WHERE seq = recent.first_seq),
                               (SELECT ts FROM messages WHERE seq = recent.first_seq)), 1, 19), 'T', ' ') AS started,
       (SELECT COUNT(*) FROM checks WHERE run_id = recent.run_id) AS checks,
       (SELECT COALESCE(SUM(passed), 0) FROM checks WHERE run_id = recent.run_id) AS passed,
       SUBSTR(last.type, 5) AS state,
       CASE WHEN json_valid(last.payload) THEN json_extract(last.payload, '$.outcome') END AS outcome
FROM (SELECT run_id, first_seq FROM run_index ORDER BY first_seq DESC LIMIT ?) AS recent
LEFT JOIN events AS last ON last.seq = (
    SELECT MAX(seq) FROM events WHERE run_id = recent.run_id AND type >= 'run.' AND type < 'run/')
ORDER BY recent.first_seq DESC
"""
_CHECKS = """
SELECT seq, SUBSTR(ts, 12, 8) AS time, task_id AS task, phase, check_name AS "check", state, exit_code AS exit,
       duration_ms AS ms
FROM checks WHERE run_id = ? ORDER BY seq
"""
_EVENTS = """
SELECT seq, SUBSTR(ts, 12, 8) AS time, task_id AS task, type, payload FROM events WHERE run_id = ? ORDER BY seq
"""
_MESSAGES = """
SELECT seq, SUBSTR(ts, 12, 8) AS time, sender AS "from", recipient AS "to", type, message_id AS id
FROM messages WHERE run_id = ? ORDER BY seq
"""


@app.command()
def verify(
    anchor: Annotated[
        list[Path] | None,
        typer.Option("--anchor", metavar="FILE", help="A file of anchors to compare with. Can be repeated."),
    ] = None,
    repo: Annotated[
        list[Path] | None,
        typer.Option("--repo", metavar="DIR", help="A repository whose anchors must match. Can be repeated."),
    ] = None,
    full: Annotated[
        bool, typer.Option("--full", help="Verify every row, not only those since the last successful verification.")
    ] = False,
    home: HomeOption = None,
    as_json: JsonOption = False,
    no_color: NoColorOption = False,
) -> int:
    """Recompute every hash, compare every row with the chain and its key, and look for every artifact.

    It starts after the last verified row, and says so; --full starts at the first row.

    It also compares the anchors that earlier runs left in the repositories (refs/proofstone/ledger) and in the state
    directory. They reveal a truncated ledger, a rewritten chain, or a ledger that was replaced. Without --home, the
    repository that you are in is compared too: a ledger that was emptied does not know it any more.

    Every bad row, repository and artifact is named; the rest is verified all the same. The line about authentication
    says who could have written the rows.

    Exit code: 0 it verifies; 1 it does not; 2 there is no ledger.
    """
    from proofstone.app.ledger import verify_ledger

    anchors = [read for file in anchor or () for read in _read_anchor_file(file)]
    current = find_repository_root(Path.cwd()) if home is None else None
    result = verify_ledger(home or find_proofstone_home(), anchors, repo or (), full=full, current=current)
    output = Output(json=as_json, no_color=no_color)
    if as_json:
        output.print_document(_document(result))
    else:
        for line in _describe_proof(result):
            output.result_console().print(escape_control(line), soft_wrap=True)
    return 0 if not isinstance(result, LedgerCorruptError) and result.verification.ok else 1


@app.command("reanchor")
def reanchor_(
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why the ledger is right as it is.")],
    repo: Annotated[
        Path | None, typer.Option("--repo", metavar="DIR", help="The repository; by default the current one.")
    ] = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
    no_color: NoColorOption = False,
) -> None:
    """Accept a ledger that does not match its anchors.

    Runs refuse to write to such a ledger: somebody may have rolled it back, replaced or emptied it. If you know why,
    for example because you removed the state directory or moved to a new machine, this command records the mismatch
    with your reason, and anchors the ledger as it is now.
    """
    from proofstone.app.ledger import reanchor_repository
    from proofstone.cli.task_commands import login_name, refuse_executors, require_text

    refuse_executors()
    findings, head = reanchor_repository(repo or Path.cwd(), require_text("--reason", reason), login_name(), home)
    output = Output(json=as_json, no_color=no_color)
    if as_json:
        faults = [{"fault": finding.fault.value, "detail": finding.detail} for finding in findings]
        output.print_document({"found": faults, "ledger_id": head.ledger_id, "seq": head.seq})
        return
    lines = [f"{finding.fault.value}: {finding.detail}" for finding in findings]
    lines.append(
        f"anchored at row {head.seq} of ledger {head.ledger_id}; your reason is recorded"
        if findings
        else "nothing to do: every anchor matches"
    )
    for line in lines:
        output.result_console().print(escape_control(line), soft_wrap=True)


@app.command()
def init(
    daemon: Annotated[
        bool, typer.Option("--daemon", help="Move the ledger to a separate account. Needs root.")
    ] = False,
    keyring: Annotated[
        Path | None,
        typer.Option(
            "--keyring",
            metavar="COPY",
            help="Keep the key in the kernel's keyring. The first time, a copy is written to this new file; keep it "
            "in a safe place. After a restart of the machine the key is loaded from it.",
        ),
    ] = None,
    user: Annotated[str, typer.Option("--user", metavar="NAME", help="The account; created if missing.")] = _ACCOUNT,
    socket: Annotated[
        Path | None, typer.Option("--socket", metavar="PATH", help="The daemon's socket, below /run.")
    ] = None,
    state: Annotated[
        Path | None, typer.Option("--state", metavar="DIR", help="The folder for database and key.")
    ] = None,
    systemd: Annotated[
        Path | None, typer.Option("--systemd", metavar="FILE", help="Write a systemd unit for the daemon here.")
    ] = None,
    home: HomeOption = None,
) -> None:
    """Choose who keeps the ledger's key, and so who can write rows that verify.

    By default the key is a file that your own account can read: sandboxed code cannot forge a row, but your unsandboxed
    processes can. With --daemon, the database and the key belong to another account, and a daemon adds the rows that
    you send; your account can no longer change, remove or backdate a row.
    """
    from proofstone.app.ledger import move_key_to_keyring, move_ledger_to_account
    from proofstone.ledger.daemon_setup import render_systemd_unit

    if daemon == (keyring is not None):
        raise InputError(
            "choose either --daemon or --keyring COPY", hint="`proofstone ledger init --help` explains them"
        )
    output = Output(json=False, no_color=True).result_console()
    if keyring is not None:
        name = move_key_to_keyring(home, keyring)
        output.print(
            escape_control(f"the key is in the kernel's keyring as {name}; keep {keyring} in a safe place"),
            soft_wrap=True,
        )
        return
    config, folder = move_ledger_to_account(home, user, socket, state)
    output.print(escape_control(f"{config.account} keeps the ledger: {config.database}"), soft_wrap=True)
    output.print(escape_control(f"start its daemon: proofstone ledger daemon --state {folder}"), soft_wrap=True)
    unit = render_systemd_unit(config, str(Path(sys.argv[0]).absolute()), folder)
    if systemd is None:
        output.print(escape_control("--systemd FILE writes a unit that starts it"), soft_wrap=True)
    else:
        _write_atomically(systemd, [unit])


@app.command()
def daemon(
    state: Annotated[
        Path,
        typer.Option("--state", metavar="DIR", help="The folder that `proofstone ledger init --daemon` printed."),
    ],
) -> None:
    """Keep a ledger for its user: run in the foreground as the ledger's account, and add the rows that it receives."""
    from proofstone.app.ledger import run_daemon

    console = Output(json=False, no_color=True).result_console()

    def ready(config: DaemonConfig) -> None:
        console.print(escape_control(f"listening on {config.socket} for the user {config.client_uid}"), soft_wrap=True)

    run_daemon(state, ready)


@app.command()
def show(
    run: Annotated[
        str | None,
        typer.Argument(metavar="[RUN]", help="Its id, a unique part of it, or `last`; without it, recent runs."),
    ] = None,
    home: HomeOption = None,
    limit: LimitOption = 50,
    as_json: JsonOption = False,
    no_color: NoColorOption = False,
) -> None:
    """Show recent runs, or the checks, events and messages of one run."""
    path = ledger_path(home or find_proofstone_home())
    output = Output(json=as_json, no_color=no_color)
    if run is None:
        _print_answers(output, {"runs": run_query(path, _RUNS, (limit + 1,), limit=limit)})
        return
    run_id = find_any_run(path, run, find_repository_root(Path.cwd()))
    answers = {
        "checks": run_query(path, _CHECKS, (run_id,), limit=limit),
        "events": run_query(path, _EVENTS, (run_id,), limit=limit),
        "messages": run_query(path, _MESSAGES, (run_id,), limit=limit),
    }
    _print_answers(output, answers)


@app.command()
def artifact(
    start: Annotated[str, typer.Argument(metavar="HASH", help="The hash, or its first digits.")],
    home: HomeOption = None,
) -> None:
    """Print an artifact, such as the output of a check, byte for byte, after verifying that it is unchanged.

    What a held-out check has printed is for people: in the shell of a coding agent it is refused.
    """
    folder = home or find_proofstone_home()
    store = ArtifactStore(artifacts_path(folder))
    digest = store.find(start)
    if (agent := detect_coding_agent(os.environ)) and run_query(ledger_path(folder), _HELD_OUT, (digest,)).rows:
        raise InputError(
            f"{start}: what a held-out check has printed is for people, and this is a shell of {agent}",
            hint="make the code correct for every input; a person can read the output in a terminal of their own",
        )
    sys.stdout.flush()
    sys.stdout.buffer.write(store.read(digest))


@app.command("query")
def query_(
    sql: Annotated[str, typer.Argument(metavar="SQL", help="One SELECT.")],
    home: HomeOption = None,
    limit: LimitOption = DEFAULT_LIMIT,
    seconds: Annotated[
        float, typer.Option("--seconds", min=0.1, help="Stop after this many seconds.")
    ] = DEFAULT_SECONDS,
    as_json: JsonOption = False,
    no_color: NoColorOption = False,
) -> None:
    """Query the ledger with SQL. It is read only.

    Tables: checks, pipeline_telemetry, messages, approvals, overrides, events, artifacts, chain;
    and the views runs, tasks, run_parts and anvil_checks (the evidence protocol's name for checks; the checks of the
    parts of a run also stand under the id of the run).
    """
    answer = run_query(ledger_path(home or find_proofstone_home()), sql, limit=limit, seconds=seconds)
    _print_answers(Output(json=as_json, no_color=no_color), {"rows": answer})


@app.command()
def export(
    run: Annotated[
        str | None,
        typer.Option("--run", metavar="RUN", help="Export only this run: its id, a unique part of it, or `last`."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="The file, written atomically; by default stdout.")
    ] = None,
    home: HomeOption = None,
) -> None:
    """Export all rows in order, as one JSON object per line, with the data to verify them elsewhere."""
    path = ledger_path(home or find_proofstone_home())
    run_id = None if run is None else find_any_run(path, run, find_repository_root(Path.cwd()))
    with SqliteLedger(path, "read") as ledger:
        lines = (_export_line(stored) for stored in read_all_rows(ledger, run_id))
        if out is None:
            sys.stdout.writelines(takewhile(lambda _: find_output_error() is None, lines))
        else:
            _write_atomically(out, lines)


def _read_anchor_file(file: Path) -> Iterator[Anchor]:
    try:
        data = file.read_bytes()
    except OSError as error:
        raise InputError(f"--anchor {file}: {error.strerror}") from error
    yield from parse_anchors(data, source=str(file))


def _describe_proof(result: LedgerVerification | LedgerCorruptError) -> Iterator[str]:
    if isinstance(result, LedgerCorruptError):
        yield f"does not verify: {result.message}"
        return
    proof, anchors = result.verification, result.anchors
    head = proof.head
    if proof.ok:
        matching = "" if not anchors else ", 1 anchor matches" if anchors == 1 else f", {anchors} anchors match"
        yield f"verified: {_describe_extent(proof)}{matching}; head {head.hash} of ledger {head.ledger_id}"
        if proof.start:
            yield f"rows up to {proof.start} were verified before; --full verifies them again"
        if result.note:
            yield f"the next verification cannot start here: {result.note}"
    else:
        first, *others = (_describe_problem(problem) for problem in proof.problems)
        yield f"does not verify: {first}"
        yield from (f"  {other}" for other in others)
        count = len(proof.problems) + proof.unlisted
        unlisted = f", {proof.unlisted} of them not listed" if proof.unlisted else ""
        problems = "1 problem" if count == 1 else f"{count} problems"
        yield f"{problems}{unlisted}; examined {_describe_extent(proof)}, the rest verifies"
    yield f"authentication: {proof.level.value}; {proof.level.limits}"


def _describe_extent(proof: Verification) -> str:
    seq = proof.head.seq
    if not proof.start:
        return "1 row" if seq == 1 else f"{seq} rows"
    return f"rows {proof.start + 1} to {seq}" if proof.start < seq else f"no new row after row {seq}"


def _describe_problem(problem: ChainBreak) -> str:
    return f"{'the ledger' if problem.seq is None else f'row {problem.seq}'}: {problem.reason}"


def _document(result: LedgerVerification | LedgerCorruptError) -> dict[str, object]:
    if isinstance(result, LedgerCorruptError):
        problem = {"seq": result.seq, "reason": result.message}
        return {"ok": False, "anchors": 0, "problem": problem, "problems": [problem]}
    proof = result.verification
    problems = [{"seq": problem.seq, "reason": problem.reason} for problem in proof.problems]
    return {
        "ok": proof.ok,
        "ledger_id": proof.head.ledger_id,
        "seq": proof.head.seq,
        "hash": proof.head.hash,
        "since": proof.start,
        "anchors": result.anchors,
        "problem": problems[0] if problems else None,
        "problems": problems,
        "unlisted": proof.unlisted,
        "authentication": {"level": proof.level.value, "limits": proof.level.limits},
    }


def _print_answers(output: Output, answers: dict[str, QueryResult]) -> None:
    if output.json:
        output.print_document({name: _row_documents(answer) for name, answer in answers.items()} | _more_flag(answers))
        return
    from rich.table import Table

    console = output.result_console()
    for name, answer in answers.items():
        if not answer.rows and len(answers) > 1:
            continue
        table = Table(box=None, pad_edge=False, title=None if name == "rows" else name, title_justify="left")
        for column in answer.columns:
            table.add_column(escape_control(column), overflow="fold")  # never truncate an id
        for row in answer.rows:
            table.add_row(*(escape_control("" if value is None else _cell_text(value)) for value in row))
        console.print(table)
        if answer.has_more:
            console.print("there are more rows: raise --limit")


def _more_flag(answers: dict[str, QueryResult]) -> dict[str, object]:
    return {"more": any(answer.has_more for answer in answers.values())}


def _row_documents(answer: QueryResult) -> list[dict[str, object]]:
    require_text = ([_cell_text(value) if isinstance(value, bytes) else value for value in row] for row in answer.rows)
    return [dict(zip(answer.columns, row, strict=True)) for row in require_text]


def _cell_text(value: str | float | bytes) -> str:
    return f"x'{value.hex()}'" if isinstance(value, bytes) else str(value)


def _export_line(stored: StoredRow[FrozenModel]) -> str:
    link = stored.link
    document = {
        "seq": link.seq,
        "table": link.table,
        "prev_hash": link.prev_hash,
        "payload_hash": link.payload_hash,
        "hash": link.hash,
        "payload": dict(stored.values),
    }
    return json.dumps(document) + "\n"


def _write_atomically(target: Path, lines: Iterable[str]) -> None:
    temporary = target.with_name(
        f".proofstone-{secrets.token_hex(4)}"
    )  # not based on the target, whose name may have the maximal length
    try:
        try:
            with temporary.open("x", encoding="utf-8") as file:
                file.writelines(lines)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(target)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"--out {target}: {error.strerror}") from error

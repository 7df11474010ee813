"""Report what runs cost and how their agents are doing, and export runs to a collector."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic import JsonValue

from proofstone.app.context import ensure_private_home, open_writable_ledger
from proofstone.config.services import TraceCollector, UnusableCollector, choose_collector, to_traces_url
from proofstone.config.user import load_user_config
from proofstone.errors import ConfigError, InputError, MachineError, ProofstoneError, UnavailableError
from proofstone.ledger import Ledger
from proofstone.ledger.connection import ledger_path
from proofstone.ledger.models import EventRow
from proofstone.ledger.sqlite import SqliteLedger
from proofstone.machine.locks import is_run_locked
from proofstone.supervision.models.ladder import AgentPosition
from proofstone.supervision.view import read_agent_positions
from proofstone.telemetry.costs import compute_run_cost
from proofstone.telemetry.models import RunCost
from proofstone.telemetry.otlp import INSTALL_COMMAND, is_installed, send_spans
from proofstone.telemetry.spans import EXPORT_EVENT_PREFIX, build_spans

EXPORT_DONE_EVENT: Final = f"{EXPORT_EVENT_PREFIX}exported"
EXPORT_FAILED_EVENT: Final = f"{EXPORT_EVENT_PREFIX}failed"

Warn = Callable[[str], None]


def read_run_cost(run_id: str, home: Path | None = None) -> RunCost:
    """Return what a run has cost so far. Read only."""
    home = ensure_private_home(home)
    with closing(SqliteLedger(ledger_path(home), "read")) as ledger:
        return compute_run_cost(ledger, run_id, running=is_run_locked(home, run_id))


def read_run_agents(run_id: str, home: Path | None = None) -> tuple[AgentPosition, ...]:
    """Return the state of the agents of a run that are asked to confirm their understanding. Read only."""
    home = ensure_private_home(home)
    with closing(SqliteLedger(ledger_path(home), "read")) as ledger:
        return read_agent_positions(ledger, run_id, time.time(), running=is_run_locked(home, run_id))


def export_run(run_id: str, endpoint: str, home: Path | None = None) -> int:
    """Send all spans of a run to the collector that the person names. Return their number. Read only."""
    try:
        target = TraceCollector(to_traces_url(endpoint))
    except ValueError as error:
        raise InputError(f"--otlp {error}", hint="for instance --otlp http://localhost:4318") from error
    if not is_installed():
        raise MachineError("--otlp: the OpenTelemetry exporter is not installed", hint=INSTALL_COMMAND)
    with closing(SqliteLedger(ledger_path(ensure_private_home(home)), "read")) as ledger:
        spans = build_spans(ledger, run_id)
    if why := send_spans(spans, target.url, target.seconds):
        raise UnavailableError(f"{target.host}: did not accept the spans of {run_id}: {why}")
    return len(spans)


@dataclass(frozen=True)
class RunExport:
    """Send the spans of a run to a collector when it ends or stops. A failure does not affect the run."""

    target: TraceCollector
    warn: Warn

    def send_run(self, run_id: str, home: Path | None = None) -> None:
        """Send the spans of a run that has ended or stopped."""
        try:
            with open_writable_ledger(ensure_private_home(home)) as ledger:
                self._send(ledger, run_id)
        except (ProofstoneError, ValueError, OSError) as error:
            self._complain(str(error))
        except KeyboardInterrupt:  # the run is over: the person interrupts only the export
            self._complain("you interrupted it")

    def _complain(self, why: str) -> None:
        self.warn(f"nothing was exported to {self.target.host}: {why}")

    def _send(self, ledger: Ledger, run_id: str) -> None:
        """Send the spans that this collector has not received, and the run's own span again, which is longer now."""
        last_seq = max(
            (int(str(export["upto"])) for export in _read_exports(ledger, run_id, self.target.host)), default=0
        )
        run_span, *others = build_spans(ledger, run_id)
        spans = [run_span, *(span for span in others if span.seq > last_seq)]
        why = send_spans(spans, self.target.url, self.target.seconds)
        if why:
            self._complain(why)
            ledger.append(
                EventRow(
                    run_id=run_id, type=EXPORT_FAILED_EVENT, payload={"collector": self.target.host, "reason": why}
                )
            )
            return
        payload = {"collector": self.target.host, "spans": len(spans), "upto": run_span.seq}
        ledger.append(EventRow(run_id=run_id, type=EXPORT_DONE_EVENT, payload=payload))


def _read_exports(ledger: Ledger, run_id: str, host: str) -> list[Mapping[str, JsonValue]]:
    """Return the recorded exports of a run to a collector."""
    exported = [row.row.payload for row in ledger.read(EventRow, run_id=run_id, type=EXPORT_DONE_EVENT)]
    return [payload for payload in exported if payload["collector"] == host]


def configure_export(complain: Warn) -> RunExport | None:
    """Return the export that the settings ask for, if any. Raise a ConfigError if the person's own file asks for one
    that cannot work. Only warn about the environment, which may be meant for other programs."""
    person = load_user_config()
    target = choose_collector(person.settings.telemetry, str(person.file), os.environ)
    if isinstance(target, UnusableCollector):
        complain(f"nothing is exported: {target.reason}")
        return None
    if target is None or is_installed():
        return RunExport(target, complain) if target else None
    if target.is_ambient:
        complain(
            f"{target.source} is set, but nothing is exported: the OpenTelemetry exporter is not installed "
            f"({INSTALL_COMMAND})"
        )
        return None
    raise ConfigError(
        f"{target.source}: telemetry.otlp_endpoint is set, but the OpenTelemetry exporter is not installed",
        hint=f"{INSTALL_COMMAND}; or remove the setting",
    )

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

from proofstone.app.context import private_home, writing_ledger
from proofstone.config.person import load_person
from proofstone.config.services import Collector, Unusable, collector, traces_url
from proofstone.errors import ConfigError, InputError, MachineError, ProofstoneError, UnavailableError
from proofstone.ledger import Ledger
from proofstone.ledger.connection import ledger_path
from proofstone.ledger.models import EventRow
from proofstone.ledger.sqlite import SqliteLedger
from proofstone.machine.locks import is_held
from proofstone.supervision.models.ladder import AgentSeen
from proofstone.supervision.view import agents_seen
from proofstone.telemetry.costs import cost_of
from proofstone.telemetry.models import RunCost
from proofstone.telemetry.otlp import INSTALL, is_installed, send
from proofstone.telemetry.spans import ABOUT, spans_of

EXPORTED: Final = f"{ABOUT}exported"
FAILED: Final = f"{ABOUT}failed"

Complain = Callable[[str], None]


def run_cost(run_id: str, home: Path | None = None) -> RunCost:
    """Return what a run has cost so far. Read only."""
    home = private_home(home)
    with closing(SqliteLedger(ledger_path(home), "read")) as ledger:
        return cost_of(ledger, run_id, running=is_held(home, run_id))


def run_agents(run_id: str, home: Path | None = None) -> tuple[AgentSeen, ...]:
    """Return the state of the agents of a run that are asked to confirm their understanding. Read only."""
    home = private_home(home)
    with closing(SqliteLedger(ledger_path(home), "read")) as ledger:
        return agents_seen(ledger, run_id, time.time(), running=is_held(home, run_id))


def export_run(run_id: str, endpoint: str, home: Path | None = None) -> int:
    """Send all spans of a run to the collector that the person names. Return their number. Read only."""
    try:
        target = Collector(traces_url(endpoint))
    except ValueError as error:
        raise InputError(f"--otlp {error}", hint="for instance --otlp http://localhost:4318") from error
    if not is_installed():
        raise MachineError("--otlp: the OpenTelemetry exporter is not installed", hint=INSTALL)
    with closing(SqliteLedger(ledger_path(private_home(home)), "read")) as ledger:
        spans = spans_of(ledger, run_id)
    if why := send(spans, target.url, target.seconds):
        raise UnavailableError(f"{target.host}: did not accept the spans of {run_id}: {why}")
    return len(spans)


@dataclass(frozen=True)
class Export:
    """Send the spans of a run to a collector when it ends or stops. A failure does not affect the run."""

    target: Collector
    complain: Complain

    def over(self, run_id: str, home: Path | None = None) -> None:
        """Send the spans of a run that has ended or stopped."""
        try:
            with writing_ledger(private_home(home)) as ledger:
                self._send(ledger, run_id)
        except (ProofstoneError, ValueError, OSError) as error:
            self._complain(str(error))
        except KeyboardInterrupt:  # the run is over: the person interrupts only the export
            self._complain("you interrupted it")

    def _complain(self, why: str) -> None:
        self.complain(f"nothing was exported to {self.target.host}: {why}")

    def _send(self, ledger: Ledger, run_id: str) -> None:
        """Send the spans that this collector has not received, and the run's own span again, which is longer now."""
        last_seq = max(
            (int(str(export["upto"])) for export in _read_exports(ledger, run_id, self.target.host)), default=0
        )
        run_span, *others = spans_of(ledger, run_id)
        spans = [run_span, *(span for span in others if span.seq > last_seq)]
        why = send(spans, self.target.url, self.target.seconds)
        if why:
            self._complain(why)
            ledger.append(EventRow(run_id=run_id, type=FAILED, payload={"collector": self.target.host, "reason": why}))
            return
        payload = {"collector": self.target.host, "spans": len(spans), "upto": run_span.seq}
        ledger.append(EventRow(run_id=run_id, type=EXPORTED, payload=payload))


def _read_exports(ledger: Ledger, run_id: str, host: str) -> list[Mapping[str, JsonValue]]:
    """Return the recorded exports of a run to a collector."""
    exported = [row.row.payload for row in ledger.read(EventRow, run_id=run_id, type=EXPORTED)]
    return [payload for payload in exported if payload["collector"] == host]


def export_from_settings(complain: Complain) -> Export | None:
    """Return the export that the settings ask for, if any. Raise a ConfigError if the person's own file asks for one
    that cannot work. Only warn about the environment, which may be meant for other programs."""
    person = load_person()
    target = collector(person.settings.telemetry, str(person.file), os.environ)
    if isinstance(target, Unusable):
        complain(f"nothing is exported: {target.why}")
        return None
    if target is None or is_installed():
        return Export(target, complain) if target else None
    if target.ambient:
        complain(
            f"{target.said_in} is set, but nothing is exported: the OpenTelemetry exporter is not installed ({INSTALL})"
        )
        return None
    raise ConfigError(
        f"{target.said_in}: telemetry.otlp_endpoint is set, but the OpenTelemetry exporter is not installed",
        hint=f"{INSTALL}; or remove the setting",
    )

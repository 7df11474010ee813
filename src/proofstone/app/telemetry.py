"""What runs have cost, where their agents stand, and their export: the place that chooses who is told."""

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
    """What a run has cost so far. It only reads."""
    home = private_home(home)
    with closing(SqliteLedger(ledger_path(home), "read")) as ledger:
        return cost_of(ledger, run_id, running=is_held(home, run_id))


def run_agents(run_id: str, home: Path | None = None) -> tuple[AgentSeen, ...]:
    """Where those agents of a run stand who are asked whether they know what they are doing. It only reads."""
    home = private_home(home)
    with closing(SqliteLedger(ledger_path(home), "read")) as ledger:
        return agents_seen(ledger, run_id, time.time(), running=is_held(home, run_id))


def export_run(run_id: str, endpoint: str, home: Path | None = None) -> int:
    """Send all spans of a run to a collector that the person names; how many. It only reads."""
    try:
        target = Collector(traces_url(endpoint))
    except ValueError as error:
        raise InputError(f"--otlp {error}", hint="for instance --otlp http://localhost:4318") from error
    if not is_installed():
        raise MachineError("--otlp: the exporter of OpenTelemetry is not installed", hint=INSTALL)
    with closing(SqliteLedger(ledger_path(private_home(home)), "read")) as ledger:
        spans = spans_of(ledger, run_id)
    if why := send(spans, target.url, target.seconds):
        raise UnavailableError(f"{target.host}: the spans of {run_id} were not taken: {why}")
    return len(spans)


@dataclass(frozen=True)
class Export:
    """What happens to a run when it ends, or stops: if somebody collects them, its spans go there. Whatever comes of
    that, the run is what it is."""

    target: Collector
    complain: Complain

    def over(self, run_id: str, home: Path | None = None) -> None:
        try:
            with writing_ledger(private_home(home)) as ledger:
                self._send(ledger, run_id)
        except (ProofstoneError, ValueError, OSError) as error:
            self._complain(str(error))
        except KeyboardInterrupt:  # the run is over, and whoever waits has had enough of the collector only
            self._complain("you have broken it off")

    def _complain(self, why: str) -> None:
        self.complain(f"nothing was exported to {self.target.host}: {why}")

    def _send(self, ledger: Ledger, run_id: str) -> None:
        """Those that this collector has not had before; the run's own again, which has become longer."""
        before = max((int(str(said["upto"])) for said in _taken(ledger, run_id, self.target.host)), default=0)
        own, *others = spans_of(ledger, run_id)
        spans = [own, *(span for span in others if span.seq > before)]
        why = send(spans, self.target.url, self.target.seconds)
        if why:
            self._complain(why)
            ledger.append(EventRow(run_id=run_id, type=FAILED, payload={"collector": self.target.host, "reason": why}))
            return
        payload = {"collector": self.target.host, "spans": len(spans), "upto": own.seq}
        ledger.append(EventRow(run_id=run_id, type=EXPORTED, payload=payload))


def _taken(ledger: Ledger, run_id: str, host: str) -> list[Mapping[str, JsonValue]]:
    """What a collector has had of a run."""
    exported = [row.row.payload for row in ledger.read(EventRow, run_id=run_id, type=EXPORTED)]
    return [said for said in exported if said["collector"] == host]


def export_from_settings(complain: Complain) -> Export | None:
    """Whoever collects runs, if somebody does. A person who has asked for it in their own file is told before anything
    begins that it cannot be; what stands in the environment may be meant for others."""
    person = load_person()
    found = collector(person.settings.telemetry, str(person.file), os.environ)
    if isinstance(found, Unusable):
        complain(f"nothing is exported: {found.why}")
        return None
    if found is None or is_installed():
        return Export(found, complain) if found else None
    if found.ambient:
        complain(f"{found.said_in} is set, and nothing is exported: the exporter is not installed ({INSTALL})")
        return None
    raise ConfigError(
        f"{found.said_in}: telemetry.otlp_endpoint is set, and the exporter of OpenTelemetry is not installed",
        hint=f"{INSTALL}; or take the setting out",
    )

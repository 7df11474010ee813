"""A shop, a model server, and `proofstone run` between them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from proofstone.testing.model_server.answers import WireProtocol
from proofstone.testing.model_server.server import ModelServer
from tests.pipeline_runs.stage import REQUEST, Came, Stage
from tests.pipeline_wire.played import Disturb, Player, as_it_should

FIX = ("--files", "shop/count.py", "--files", "tests/test_count.py")
"""Files that choose the lane with one reviewer."""


@dataclass(frozen=True)
class Served:
    stage: Stage
    player: Player
    env: Mapping[str, str]

    def run(self, *args: str) -> Came:
        return self._came("run", REQUEST, "--backend", "api:local:played", *args)

    def resume(self) -> Came:
        return self._came("resume", "last")

    def _came(self, *args: str) -> Came:
        done = self.stage.proofstone(*args, "--json", "--quiet", env=self.env)
        assert self.env["LOCAL_KEY"] not in done.stdout + done.stderr
        return Came(done.returncode, done.stdout, done.stderr)

    def on_record(self, type: str) -> int:
        """Messages of this type, of the run and of its parts."""
        return sum(len(self.stage.messages(run_id, type)) for run_id in self.stage.runs)

    @property
    def state(self) -> str:
        """What `proofstone runs` calls the run."""
        (only,) = json.loads(self.stage.proofstone("runs", "--json").stdout)["runs"]
        return str(only["state"])


UNASKED = '[understanding]\nask = "off"\n'
"""Here it is the wire that is tried: whoever answers has no words for anything but its work."""


@contextmanager
def served(folder: Path, wire: WireProtocol, disturb: Disturb = as_it_should, settings: str = "") -> Iterator[Served]:
    stage, player = Stage.set_up(folder / "stage", settings=UNASKED + settings), Player(disturb)
    with ModelServer(player.answer) as server:
        config = folder / "person.toml"
        config.write_text(
            f'[providers.local]\nwire = "{wire}"\nurl = "{server.base_url(wire)}"\nkey_variable = "LOCAL_KEY"\n'
        )
        yield Served(stage, player, {"PROOFSTONE_CONFIG": str(config), "LOCAL_KEY": "sk-very-secret-key"})

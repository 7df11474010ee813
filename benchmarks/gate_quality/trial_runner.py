"""Run variants of a project through its tests, many in one process: each in a fork, with its own files.

`python -m benchmarks.gate_quality.trial_runner PROJECT TEST ROOT` reads a job from each line of its input, as JSON. A
job has `files`, and may have `record`, a function (`package.module:name`) whose calls are written down, or `calls`,
arguments for it. Each job prints a line of JSON: which tests failed, and what was recorded.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import importlib
import io
import json
import os
import shutil
import signal
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

_SECONDS = 5
_MAX_CALLS = 40
_MAX_TEXT = 200


class _Outcomes:
    """Collects the ids of tests that failed, and how many passed."""

    def __init__(self) -> None:
        self.failed: list[str] = []
        self.passed = 0

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed.append(report.nodeid.partition("::")[2].partition("[")[0])
        elif report.when == "call" and report.passed:
            self.passed += 1

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.failed.append("<collection>")


def _text(value: object) -> str | None:
    """Return the value as a literal; None if it is none."""
    text = repr(value)
    if len(text) > _MAX_TEXT:
        return None
    try:
        return text if repr(ast.literal_eval(text)) == text else None
    except (ValueError, SyntaxError, MemoryError, TypeError):
        return None


def _record(place: str, calls: list[tuple[str, str]]) -> None:
    """Replace a function of a module by one that writes down its calls, before any test imports it."""
    module_name, _, name = place.partition(":")
    module = importlib.import_module(module_name)
    function = getattr(module, name)

    @functools.wraps(function)
    def wrapper(*args: object, **keywords: object) -> object:
        before = _text(args)
        result = function(*args, **keywords)
        after = _text(result)
        if not keywords and before and after and len(calls) < _MAX_CALLS:
            calls.append((before, after))
        return result

    setattr(module, name, wrapper)


def _call(place: str, argument_texts: list[str]) -> list[tuple[str, str]]:
    """Return what a function answers to these arguments, where the answer is a literal."""
    module_name, _, name = place.partition(":")
    function = getattr(importlib.import_module(module_name), name)
    answers = []
    for text in argument_texts:
        with contextlib.suppress(Exception):
            if answer := _text(function(*ast.literal_eval(text))):
                answers.append((text, answer))
    return answers


def _run(job: dict[str, Any], project: Path, tests: list[str], root: str) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="trial-") as place:
        folder = Path(place) / "project"
        shutil.copytree(project, folder)
        for name, text in job["files"].items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text) if text is not None else path.unlink()
        os.chdir(folder)
        sys.path.insert(0, str(folder / root))
        sys.dont_write_bytecode = True
        calls: list[tuple[str, str]] = []
        if job.get("calls") is not None:
            return {"calls": _call(job["record"], job["calls"])}
        if job.get("record"):
            _record(job["record"], calls)
        outcomes = _Outcomes()
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            options = ["-q", "-p", "no:cacheprovider", "--tb=no", *job.get("tests", tests)]
            pytest.main(options, plugins=[outcomes])
        return {"failed": sorted(set(outcomes.failed)), "passed": outcomes.passed, "calls": calls}


def main(project: str, test: str, root: str) -> None:
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    _run({"files": {}, "tests": ["--version"]}, Path(project), [test], root)  # what pytest imports is imported once
    for line in sys.stdin:
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            signal.alarm(_SECONDS)
            try:
                result = _run(json.loads(line), Path(project), [test], root)
            except BaseException as error:  # noqa: BLE001  the variant may raise anything when it is imported
                result = {"failed": [f"<{type(error).__name__}>"], "passed": 0, "calls": []}
            with os.fdopen(writing, "w") as pipe:
                pipe.write(json.dumps(result))
            os._exit(0)
        os.close(writing)
        with os.fdopen(reading, "rb") as answer:
            data = answer.read()
        os.waitpid(child, 0)
        print(data.decode() or json.dumps({"failed": ["<killed>"], "passed": 0, "calls": []}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])

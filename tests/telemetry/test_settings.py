"""Who gets the traces of runs, by the person's own file and by the environment."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from proofstone.config.services import TelemetrySettings, TraceCollector, UnusableCollector, choose_collector
from tests.workshop import Workshop

FILE = TelemetrySettings(otlp_endpoint="http://localhost:4318", seconds=2)
NONE = TelemetrySettings()
EVERYTHING, TRACES = "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
CASES: Mapping[str, tuple[TelemetrySettings, Mapping[str, str], TraceCollector | None]] = {
    "nobody": (NONE, {}, None),
    "the file": (FILE, {}, TraceCollector("http://localhost:4318/v1/traces", 2, "a.toml")),
    "the file before the environment": (
        FILE,
        {EVERYTHING: "http://elsewhere:1"},
        TraceCollector("http://localhost:4318/v1/traces", 2, "a.toml"),
    ),
    "the environment": (
        NONE,
        {EVERYTHING: "https://c.example/otlp/"},
        TraceCollector("https://c.example/otlp/v1/traces", 5, EVERYTHING, is_ambient=True),
    ),
    "what is said of traces before what is said of everything": (
        NONE,
        {EVERYTHING: "http://a:1", TRACES: "http://b:2/own"},
        TraceCollector("http://b:2/own", 5, TRACES, is_ambient=True),
    ),
    "switched off": (FILE, {"OTEL_SDK_DISABLED": "true"}, None),
    "no exporter of traces": (FILE, {"OTEL_TRACES_EXPORTER": "none"}, None),
}
UNUSABLE: Mapping[str, tuple[Mapping[str, str], str]] = {
    "no URL": ({EVERYTHING: "localhost:4318"}, f"{EVERYTHING}: 'localhost:4318' is not an http or https URL"),
    "another protocol": (
        {EVERYTHING: "http://a:4317", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"},
        f"{EVERYTHING} is for grpc, but Proofstone supports only http/protobuf",
    ),
}


@pytest.mark.parametrize(("settings", "environ", "expected"), CASES.values(), ids=CASES)
def test_who_collects_runs(
    settings: TelemetrySettings, environ: Mapping[str, str], expected: TraceCollector | None
) -> None:
    assert choose_collector(settings, "a.toml", environ) == expected


@pytest.mark.parametrize(("environ", "words"), UNUSABLE.values(), ids=UNUSABLE)
def test_a_collector_that_cannot_be_reached_so_is_named_with_the_reason(environ: Mapping[str, str], words: str) -> None:
    found = choose_collector(NONE, "a.toml", environ)
    assert isinstance(found, UnusableCollector) and found.reason.startswith(words)


def test_what_may_be_secret_in_an_address_is_not_told() -> None:
    assert TraceCollector("https://ada:key@c.example:4318/v1/traces?token=1").host == "c.example:4318"


def test_a_repository_cannot_have_runs_sent_anywhere(tmp_path: Path) -> None:
    workshop = Workshop.apart(tmp_path)
    root = workshop.repo(
        {"proofstone.toml": '[telemetry]\notlp_endpoint = "http://evil.example:4318"\n', "s.yaml": "[]\n"}
    )
    done = workshop.proofstone(root, "ask", "researcher:impact", "what?", "--backend", "script:s.yaml")
    assert done.returncode == 2 and "telemetry" in done.stderr, done.stderr
    assert "not allowed in a repository's file" in done.stderr and "your activity" in done.stderr

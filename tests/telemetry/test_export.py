"""Runs as they reach a collector over OTLP; and what a person is told when they do not. The collector is a real server,
what it gets is decoded."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from proofstone import __version__
from proofstone.app import telemetry as telemetry_app
from proofstone.app.telemetry import RunExport, configure_export, export_run
from proofstone.config.services import TraceCollector as Target
from proofstone.errors import ConfigError, MachineError
from proofstone.ledger.connection import ledger_path
from proofstone.ledger.models import EventRow
from proofstone.ledger.sqlite import SqliteLedger
from proofstone.telemetry.models import Span
from proofstone.telemetry.otlp import is_installed, send_spans
from proofstone.telemetry.spans import build_spans
from tests.telemetry.rows import RUN, Collector, collecting, dispatch, event, ledger_with, turn
from tests.telemetry.test_spans import PAID, PLANNER, a_run
from tests.workshop import Workshop

SCRIPT = """
- role: researcher
  usage: {input_tokens: 900, output_tokens: 200, usd: 0.01}
  steps: [{tool: {read: {path: shop.py}}}]
  output:
    completion: {status: DONE, summary: found it}
    focus: impact
    summary: one module
    findings: []
    source_files_examined: [shop.py]
"""
ASK = ("ask", "researcher:impact", "what is there?", "--backend", "script:s.yaml", "--json")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A state directory with one run in it."""
    path = ledger_path(tmp_path / "state")
    path.parent.mkdir(parents=True)
    ledger_with(path, *a_run()).close()
    return tmp_path / "state"


@pytest.fixture
def spans(home: Path) -> list[Span]:
    with closing(SqliteLedger(ledger_path(home), "read")) as ledger:
        return build_spans(ledger, RUN)


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> tuple[Workshop, Path]:
    workshop = Workshop.apart(tmp_path_factory.mktemp("shop"))
    return workshop, workshop.repo({"shop.py": "def sell():\n    return 1\n", "s.yaml": SCRIPT})


@pytest.fixture
def nowhere() -> Iterator[str]:
    """An address at which nobody listens: it is taken, and refuses."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}"


# --- what arrives ---------------------------------------------------------------------------------------------------


def test_a_collector_gets_the_tree_with_the_attributes_and_times_of_the_ledger(home: Path, spans: list[Span]) -> None:
    with collecting() as collector:
        assert export_run(RUN, collector.url, home) == len(spans)
    assert collector.tree() == [
        "invoke_workflow run",
        "  invoke_agent planner",
        "    chat",
        "    chat gpt-5",
        "    execute_tool read",
        "    chat claude-x",
        "  invoke_workflow gate",
        "    invoke_agent executor",
        "      chat gpt-5",
        "      chat gpt-5",
        "    check task-01/a1",
    ]
    for sent, came in zip(spans, collector.spans, strict=True):
        error = {"error.type": sent.error} if sent.error else {}
        assert came.attributes == {**sent.attributes, **error}
        assert came.failed is bool(sent.error)
        wire = came.wire
        assert (wire.trace_id.hex(), wire.span_id.hex()) == (sent.trace_id, sent.span_id)
        assert (wire.start_time_unix_nano, wire.end_time_unix_nano) == (sent.start_ns, sent.end_ns)
    assert [path for path, _ in collector.requests] == ["/v1/traces"]
    assert [(one["service.name"], one["service.version"]) for one in collector.resources] == [
        ("proofstone", __version__)
    ]


def test_headers_compression_and_the_name_of_the_service_are_as_the_environment_says(
    spans: list[Span], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "api-key=k1")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")
    monkeypatch.setenv("OTEL_SERVICE_NAME", "team-a")
    with collecting() as collector:
        assert send_spans(spans, f"{collector.url}/v1/traces", 5) == ""
    [(_, headers)] = collector.requests
    assert (headers["api-key"], headers["content-encoding"]) == ("k1", "gzip")
    assert collector.resources[0]["service.name"] == "team-a" and len(collector.spans) == len(spans)


def test_many_spans_go_in_several_requests(spans: list[Span]) -> None:
    with collecting() as collector:
        assert send_spans(spans * 100, f"{collector.url}/v1/traces", 30) == ""
    assert (len(collector.requests), len(collector.spans)) == (3, 1100)


def test_a_run_that_goes_on_sends_what_is_new_and_a_collector_that_is_new_gets_all(home: Path) -> None:
    complaints: list[str] = []

    def over(collector: Collector) -> list[str]:
        collector.spans.clear()
        RunExport(Target(f"{collector.url}/v1/traces"), complaints.append).send_run(RUN, home)
        return [span.name for span in collector.spans]

    with collecting() as first, collecting() as second:
        assert len(over(first)) == 11
        assert over(first) == ["invoke_workflow run"], "its own span again: it may have become longer"
        with closing(SqliteLedger(ledger_path(home))) as ledger:
            again = PLANNER.model_copy(update={"dispatch": 2})
            for row in (event(RUN, "run.resumed"), *dispatch(again, turn(PAID))):
                ledger.append(row)
        assert over(first) == ["invoke_workflow run", "invoke_agent planner", "chat gpt-5"]
        assert len(over(second)) == 13
    assert complaints == []


# --- what does not --------------------------------------------------------------------------------------------------


def test_a_collector_that_refuses_hangs_or_is_down_is_a_reason_and_no_error(spans: list[Span], nowhere: str) -> None:
    with collecting(400) as refusing:
        assert "400" in send_spans(spans, f"{refusing.url}/v1/traces", 5)
    with collecting(hangs=True) as hanging:
        assert send_spans(spans, f"{hanging.url}/v1/traces", 0.2)
    assert send_spans(spans, f"{nowhere}/v1/traces", 0.2).startswith(
        "the collector cannot be reached, or is too slow: "
    )


def test_whatever_the_exporter_raises_is_a_reason(spans: list[Span], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "zip")
    assert "zip" in send_spans(spans, "http://127.0.0.1:1/v1/traces", 1)
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    assert send_spans(spans, "http://127.0.0.1:1/v1/traces", 1).startswith("ModuleNotFoundError: ")


def test_the_run_is_what_it_is_when_nobody_takes_it(shop: tuple[Workshop, Path], nowhere: str) -> None:
    """The answer is there, with its exit code; that nothing was exported is said, and on record."""
    workshop, root = shop
    configure(workshop, nowhere)
    done = workshop.proofstone(root, *ASK)
    assert done.returncode == 0 and '"summary": "one module"' in done.stdout, done.stderr
    assert f"nothing was exported to {nowhere.removeprefix('http://')}: " in done.stderr
    assert [one["collector"] for one in of_last(workshop, telemetry_app.EXPORT_FAILED_EVENT)] == [
        nowhere.removeprefix("http://")
    ]


def test_a_run_goes_to_the_collector_that_the_person_has_named(shop: tuple[Workshop, Path]) -> None:
    workshop, root = shop
    with collecting() as collector:
        configure(workshop, collector.url)
        done = workshop.proofstone(root, *ASK)
    assert done.returncode == 0 and "export" not in done.stderr, done.stderr
    assert collector.tree() == [
        "invoke_workflow ask",
        "  invoke_agent researcher:impact",
        "    chat script",
        "    execute_tool read",
        "    chat script",
    ]
    [asked] = collector.named("invoke_agent")
    assert asked.attributes["gen_ai.usage.input_tokens"] == 1800 and asked.attributes["proofstone.usage.usd"] == 0.02
    assert [one["spans"] for one in of_last(workshop, telemetry_app.EXPORT_DONE_EVENT)] == [5]
    verified = workshop.proofstone(root, "ledger", "verify")
    assert verified.returncode == 0, verified.stderr


def test_whoever_breaks_off_the_export_has_not_broken_off_the_run(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> str:
        raise KeyboardInterrupt

    complaints: list[str] = []
    monkeypatch.setattr(telemetry_app, "send_spans", interrupted)
    RunExport(Target("http://localhost:4318/v1/traces"), complaints.append).send_run(RUN, home)
    assert complaints == ["nothing was exported to localhost:4318: you interrupted it"]


# --- without the extra ----------------------------------------------------------------------------------------------


@pytest.fixture
def not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    for name in [name for name in sys.modules if name.startswith("opentelemetry.exporter")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter", None)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("OTEL_EXPORTER_OTLP_ENDPOINT", raising=False)

    def write(text: str) -> None:
        (tmp_path / "proofstone").mkdir(exist_ok=True)
        (tmp_path / "proofstone" / "proofstone.toml").write_text(text)

    return write


def test_without_the_extra_a_person_who_has_asked_for_it_is_told_before_anything_begins(
    not_installed: Callable[[str], None],
) -> None:
    assert not is_installed()
    not_installed('[telemetry]\notlp_endpoint = "http://localhost:4318"\n')
    with pytest.raises(
        ConfigError, match=r"proofstone\.toml: telemetry\.otlp_endpoint is set, but the OpenTelemetry exporter"
    ) as error:
        configure_export(pytest.fail)
    assert "pip install 'proofstone[otel]'" in str(error.value.hint)


def test_without_the_extra_a_variable_that_may_be_meant_for_others_is_no_error(
    not_installed: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    complaints: list[str] = []
    assert configure_export(complaints.append) is None and complaints == []
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://localhost:4318")
    assert configure_export(complaints.append) is None
    assert complaints == [
        "OTEL_EXPORTER_OTLP_ENDPOINT is set, but nothing is exported: the OpenTelemetry exporter is not installed "
        "(pip install 'proofstone[otel]')"
    ]


def test_without_the_extra_an_export_that_is_asked_for_is_refused(
    not_installed: Callable[[str], None], home: Path
) -> None:
    with pytest.raises(MachineError, match="is not installed"):
        export_run(RUN, "http://localhost:4318", home)


def test_a_run_without_a_collector_imports_nothing_of_it() -> None:
    code = "import sys, proofstone.cli.run; print([name for name in sys.modules if name.startswith('opentelem')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def configure(workshop: Workshop, endpoint: str) -> None:
    file = workshop.home / ".config" / "proofstone" / "proofstone.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f'[telemetry]\notlp_endpoint = "{endpoint}"\nseconds = 1\n')


def of_last(workshop: Workshop, type: str) -> list[dict[str, object]]:
    """Of the last run."""
    with closing(SqliteLedger(ledger_path(workshop.proofstone_home), "read")) as ledger:
        last = ledger.read(EventRow, type="run.started")[-1].row.run_id
        return [dict(one.row.payload) for one in ledger.read(EventRow, run_id=last, type=type)]

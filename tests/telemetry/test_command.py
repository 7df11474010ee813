"""`proofstone status RUN --cost` of a whole scripted run, as a person and as a program read it; and where it was
sent."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from proofstone.pipeline.models.run import RunReport
from proofstone.telemetry.models import RunCost
from tests.pipeline.stage import Stage, executor, planner
from tests.telemetry.rows import Collector, collecting
from tests.telemetry.test_export import configure


class Ran(NamedTuple):
    stage: Stage
    report: RunReport
    cost: RunCost
    collector: Collector


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ran]:
    """The planner tells what it used, the executor's price is not known, all others are free."""
    stage = Stage.set_up(tmp_path_factory.mktemp("cost"))
    with collecting() as collector:
        configure(stage.workshop, collector.url)
        paid = {**planner(), "usage": {"input_tokens": 1200, "output_tokens": 300, "usd": 0.25}}
        unpriced = {**executor(), "usage": {"input_tokens": 500, "output_tokens": 100, "usd": None}}
        came = stage.run(paid, unpriced)
        assert came.exit == 0 and "export" not in came.stderr, came.stderr
        done = stage.proofstone("status", came.report.run_id, "--cost", "--json")
        yield Ran(stage, came.report, RunCost.model_validate_json(done.stdout), collector)


def test_a_program_reads_time_tokens_money_and_retries_by_step_agent_and_model(ran: Ran) -> None:
    cost, report = ran.cost, ran.report
    assert (cost.run_id, cost.command, cost.outcome, cost.running) == (report.run_id, "run", "passed", False)
    assert (cost.total.usd, cost.total.input_tokens, cost.total.output_tokens) == (0.25, 2700, 600)
    assert (cost.total.unpriced, cost.total.retries) == (3, 0)
    assert cost.total.dispatches == len(ran.stage.all_dispatches(report))
    assert cost.worked_seconds > 0 and cost.checks.runs > 0 and (cost.checks.seconds or 0) > 0
    [plans] = [one for one in cost.agents if one.role == "planner"]
    assert plans.model.startswith("script:") and (plans.cost.usd, plans.cost.input_tokens) == (0.25, 1200)
    [works] = [one for one in cost.steps if one.agent == "executor"]
    assert (works.part, works.step, works.cost.usd, works.cost.input_tokens) == ("gate 1", "task-01/a1", None, 1500)
    assert works.wall_seconds is not None
    assert [one.part for one in cost.parts] == ["", "plan 1", "gate 1"]


def test_a_person_reads_the_same_and_what_is_not_known(ran: Ran) -> None:
    text = ran.stage.proofstone("status", "--cost").stdout
    assert "cost: $0.25+?; tokens in 2,700 (cached 0), out 600;" in text
    assert "not known: the price of 3 model calls" in text
    tables = re.findall(r"^by (.+)$", text, re.MULTILINE)
    assert tables == ["agent and model", "part", "step"]
    [line] = [one.split() for one in text.splitlines() if re.match(r"  gate 1 +task-01/a1 +executor ", one)]
    assert line[-4:] == ["1,500", "0", "300", "unknown"]


def test_the_whole_run_goes_to_the_collector_as_one_trace(ran: Ran) -> None:
    spans, cost = ran.collector.spans, ran.cost
    assert len({span.wire.trace_id for span in spans}) == 1
    assert [name for name in ran.collector.tree() if not name.startswith(" ")] == ["invoke_workflow run"]
    assert len(ran.collector.tree()) == len(spans), "all of them hang together"
    assert len(ran.collector.named("invoke_agent ")) == cost.total.dispatches
    assert len(ran.collector.named("chat ")) == cost.total.requests
    asked = [span.attributes for span in ran.collector.named("invoke_agent ")]
    assert sum(int(str(one["gen_ai.usage.input_tokens"])) for one in asked) == cost.total.input_tokens
    workflows = [span.attributes for span in ran.collector.named("invoke_workflow ")]
    assert [one["gen_ai.workflow.name"] for one in workflows] == ["run", "verify-plan", "gate"]
    assert str(ran.stage.root) not in " ".join(str(one) for one in asked), "no path of the person's machine"


def test_a_run_can_be_sent_again_to_whom_the_person_names(ran: Ran) -> None:
    with collecting() as other:
        done = ran.stage.proofstone("status", ran.report.run_id, "--otlp", other.url, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "run_id": ran.report.run_id,
        "spans": len(ran.collector.spans),
        "sent_to": other.url,
    }
    sent = {span.wire.span_id: span.wire for span in other.spans}
    assert sent == {span.wire.span_id: span.wire for span in ran.collector.spans}, "the same, however often"


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("--otlp", "localhost:4318"), "--otlp 'localhost:4318' is not an http or https URL"),
        (("--otlp", "http://localhost:1", "--cost"), "--cost and --otlp cannot be combined"),
        (("nobody", "--cost"), "nobody"),
    ],
)
def test_what_is_wrong_with_the_question_is_said(ran: Ran, args: tuple[str, ...], words: str) -> None:
    done = ran.stage.proofstone("status", *args)
    assert (done.returncode, done.stdout) == (2, "") and words in done.stderr

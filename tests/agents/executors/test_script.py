"""`script:`: the first entry that matches is acted out, within work tree and deadline; bad scripts say where."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from proofstone.agents import script_file
from proofstone.agents.backends.factory import build_backend
from proofstone.agents.executors.context import Executor
from proofstone.agents.executors.selection import SPEC_KINDS, build_executor
from proofstone.agents.roles.models.gate import ExecutorStatus
from proofstone.agents.rules import routes
from proofstone.agents.script_file import read_script
from proofstone.errors import BackendError, InputError
from proofstone.ledger.models import MessageRow
from tests.agents.executors.bench import Bench, assigned

STEPS = """
- role: executor
  steps:
    - write: {path: new/n.txt, content: "n\\n"}
    - append: {path: a.txt, content: "more\\n"}
    - edit: {path: src/b.txt, old: b, new: B}
    - run: grep -q B src/b.txt && echo ran > ran.txt
    - say: nearly there
    - delete: {path: a.txt}
"""


def test_the_steps_do_what_they_say(bench: Bench) -> None:
    done = bench.script(STEPS)
    assert done.claim and done.claim.status is ExecutorStatus.SUCCESS, done
    assert bench.files() == {"new/n.txt", "src/b.txt", "ran.txt"}
    assert (bench.work_tree / "src/b.txt").read_text() == "B\n"
    assert (bench.work_tree / "new/n.txt").read_text() == "n\n"
    assert bench.heard == ["nearly there"]


TOOLS = """
- role: executor
  steps:
    - tool: {write: {path: a.txt, content: "hello\\n"}}
    - tools: [{write: {path: elsewhere.txt, content: x}}, {run: {command: cp a.txt b.txt}}]
    - write: {path: behind.txt, content: x}
"""


def test_tools_of_the_runtime_are_held_to_the_task_and_what_is_done_behind_it_is_not(plain: Bench) -> None:
    """The gate finds out about the latter: that is what it is for."""
    done = plain.script(TOOLS)
    assert done.claim and done.claim.status is ExecutorStatus.SUCCESS, done
    assert plain.files() == {"a.txt", "src/b.txt", "b.txt", "behind.txt"}
    said = [row.row.payload["result"] for row in plain.ledger.read(MessageRow, type="ToolResult")]
    assert [one["refused"] for one in said if isinstance(one, dict)] == [None, "scope", None]


def test_a_breakdown_of_an_executor_is_a_crash_or_a_timeout(plain: Bench) -> None:
    crashed = plain.script("- {role: executor, steps: [{error: {kind: filtered, why: not nice}}]}")
    assert crashed.crashed == "not nice" and crashed.claim is None
    late = plain.script("- {role: executor, steps: [{error: timeout}]}")
    assert late.timed_out and late.end_reason == "timeout, says the script"


def test_a_provider_that_denies_us_stops_the_run_and_costs_no_attempt(plain: Bench) -> None:
    with pytest.raises(BackendError, match="no such key"):
        plain.script("- {role: executor, steps: [{error: {kind: denied, why: no such key}}]}")


def test_text_is_appended(plain: Bench) -> None:
    plain.script('- {role: executor, steps: [{append: {path: a.txt, content: "more\\n"}}]}')
    assert (plain.work_tree / "a.txt").read_text() == "a\nmore\n"


MATCHES = """
- {role: architect, steps: [{fail: an architect}]}
- {role: executor, match: {task: 1}, steps: [{fail: first}]}
- {role: executor, match: {task: task-02, attempt: [2, 3]}, steps: [{fail: again}]}
- {role: executor, match: {task: "Greet *", attempt: 1}, steps: [{fail: by name}]}
- {role: executor, match: {task: "0[34]"}, steps: [{fail: by number}]}
- {role: executor, match: {focus: security}, steps: [{fail: of a review}]}
- {role: executor, match: {task: task-07}, steps: [{fail: seventh}]}
"""


@pytest.mark.parametrize(
    "task,attempt,taken",
    [
        ("task-01", 3, "first"),
        ("task-02", 1, "by name"),
        ("task-02", 3, "again"),
        ("task-03", 2, "by number"),
        ("task-04", 4, "by number"),
        ("task-07", 2, "seventh"),
    ],
)
def test_the_first_entry_that_matches_is_taken(plain: Bench, task: str, attempt: int, taken: str) -> None:
    done = plain.script(MATCHES, assigned(task=task, attempt=attempt))
    assert done.claim and (done.claim.status, done.claim.error) == (ExecutorStatus.FAILURE, taken)


def test_a_dispatch_that_nothing_matches_names_what_was_asked_and_what_there_was(plain: Bench) -> None:
    with pytest.raises(InputError) as caught:
        plain.script(MATCHES, assigned(task="task-09", attempt=2))
    assert "no entry for the role executor with task task-09, attempt 2" in caught.value.message
    assert "line 4: executor with task: task-02, attempt: 2 or 3" in (caught.value.hint or "")


@pytest.mark.parametrize(
    "tool",
    [
        "write: {path: ../x, content: x}",
        "write: {path: /tmp/x, content: x}",
        "write: {path: link/x, content: x}",
        "append: {path: out.txt, content: x}",
        "write: {path: dangling, content: x}",
        "edit: {path: out.txt, old: t, new: x}",
        "delete: {path: link/theirs.txt}",
        "delete: {path: .}",
        "delete: {path: src/../../x}",
    ],
)
def test_a_path_that_leaves_the_work_tree_is_an_error_of_the_script(plain: Bench, tool: str) -> None:
    outside = plain.folder / "outside"
    outside.mkdir()
    (outside / "theirs.txt").write_text("theirs\n")
    (plain.work_tree / "link").symlink_to(outside)
    (plain.work_tree / "out.txt").symlink_to(outside / "theirs.txt")
    (plain.work_tree / "dangling").symlink_to(outside / "nothing")
    with pytest.raises(InputError, match=r"s\.yaml:3: .*leads out of the work tree"):
        plain.script(f"- role: executor\n  steps:\n    - {tool}\n")
    assert [path.name for path in outside.iterdir()] == ["theirs.txt"]
    assert (outside / "theirs.txt").read_text() == "theirs\n"


def test_a_link_can_be_deleted_and_what_it_leads_to_stays(plain: Bench) -> None:
    (plain.folder / "theirs").mkdir()
    (plain.work_tree / "link").symlink_to(plain.folder / "theirs")
    plain.script("- {role: executor, steps: [{delete: {path: link}}, {delete: src}]}")
    assert plain.files() == {"a.txt"} and (plain.folder / "theirs").is_dir()


@pytest.mark.parametrize(
    "tool,words",
    [
        ("edit: {path: a.txt, old: z, new: x}", "has the old text 0 times"),
        ("edit: {path: a.txt, old: '', new: x}", "has the old text 0 times"),
        ("edit: {path: none.txt, old: a, new: x}", "No such file"),
        ("delete: none.txt", "No such file"),
        ("write: {path: src, content: x}", "Is a directory"),
        ("write: {path: a.txt/b, content: x}", "Not a directory|File exists"),
    ],
)
def test_a_step_that_cannot_be_taken_is_an_error_of_the_script(plain: Bench, tool: str, words: str) -> None:
    with pytest.raises(InputError, match=rf"s\.yaml:3: .*({words})"):
        plain.script(f"- role: executor\n  steps:\n    - {tool}\n")


# The end of an entry → status and malformed.
ENDS = {
    "output: {status: blocked, error: w}": ("blocked", ""),
    "output: {status: success, files_modified: [a.txt]}": ("success", ""),
    "output: {status: perhaps}": (None, "status: input should be"),
    "raw: 'I am done'": (None, "it is not JSON"),
    'raw: "```json\\n{\\"status\\": \\"success\\"}\\n```"': ("success", ""),
    "steps: [{fail: no}, {write: {path: x, content: x}}]": ("failure", ""),
    "steps: [{run: exit 3}, {write: {path: x, content: x}}]": ("failure", ""),
    "steps: []": ("success", ""),
}


@pytest.mark.parametrize("end,expected", ENDS.items())
def test_how_an_entry_ends_is_what_is_claimed(plain: Bench, end: str, expected: tuple[str | None, str]) -> None:
    status, malformed = expected
    done = plain.script(f"- role: executor\n  {end}\n")
    assert (done.claim.status if done.claim else None) == status
    assert malformed in done.malformed and bool(malformed) == bool(done.malformed)
    assert not (plain.work_tree / "x").exists()


def test_a_sleep_past_the_deadline_is_a_timeout(plain: Bench) -> None:
    done = plain.script("- {role: executor, steps: [{sleep: 3000}]}", assigned(seconds=0.2))
    assert done.timed_out and done.claim is None and done.end_reason == "not finished after 0.2 s"


def test_a_command_past_the_deadline_is_a_timeout(plain: Bench) -> None:
    done = plain.script("- {role: executor, steps: [{sleep: 0.1}, {run: sleep 3000}]}", assigned(seconds=0.5))
    assert done.timed_out and done.claim is None


def test_an_interruption_ends_a_sleep(plain: Bench) -> None:
    plain.cancel.set()
    done = plain.script("- {role: executor, steps: [{sleep: 3000}]}", assigned(seconds=None))
    assert done.cancelled and done.claim is None


def test_a_command_that_crashes_is_a_crash(plain: Bench) -> None:
    assert "SIGKILL" in plain.script("- {role: executor, steps: [{run: kill -9 $$}]}").crashed


BAD = {
    "role: executor": (1, "a script is a list"),
    "": (1, "a script is a list"),
    "- a": (1, "an entry is a mapping"),
    "- {role: tester}": (1, "'tester' is not a role"),
    "- role: executor\n  mach: {task: 1}": (2, "'mach' is not known"),
    "- role: executor\n  match: {taks: 1}": (2, "'taks' is not known"),
    "- role: executor\n  match:\n    attempt: true": (3, "match.attempt is a text"),
    "- role: executor\n  match:\n    attempt: []": (3, "match.attempt is a text"),
    "- role: executor\n  steps: {say: x}": (2, "steps is a list"),
    "- role: executor\n  steps:\n    - say: x\n    - dance: y": (4, "'dance' is not known"),
    "- role: executor\n  steps:\n    - {say: x, fail: y}": (3, "a step does one thing"),
    "- role: executor\n  steps:\n    - write: {path: a}": (3, "write needs content"),
    "- role: executor\n  steps:\n    - write: {path: a, content: 1}": (3, "write needs content, as text"),
    "- role: executor\n  steps:\n    - tool: {read: {}, list: {}}": (3, "tool names one tool"),
    "- role: executor\n  steps:\n    - tool: [read]": (3, "tool names one tool"),
    "- role: executor\n  steps:\n    - tools: {read: {}}": (3, "tools is a list of calls"),
    "- role: executor\n  steps:\n    - tools: []": (3, "tools is a list of calls"),
    "- role: executor\n  steps:\n    - tools:\n      - read: {}\n      - 3": (5, "tool names one tool"),
    "- role: executor\n  steps:\n    - tool: {read: {a: .nan}}": (3, "read cannot be written as JSON"),
    "- role: executor\n  steps:\n    - error: tired": (3, "'tired' is not a kind"),
    "- role: executor\n  steps:\n    - error: {why: x}": (3, "None is not a kind"),
    "- role: executor\n  steps:\n    - error: {kind: crashed, times: -1}": (3, "times: -1 is not a whole number"),
    "- role: executor\n  steps:\n    - error: {kind: crashed, why: 3}": (3, "why: 3 is not a text"),
    "- role: executor\n  usage: {tokens: 3}": (2, "'tokens' is not known"),
    "- role: executor\n  usage: {input_tokens: 1.5}": (2, "input_tokens: 1.5 is not a whole number"),
    "- role: executor\n  usage: {usd: much}": (2, "usd: 'much' is not an amount of money"),
    '- role: executor\n  output: "\\ud800"': (2, "output cannot be written as JSON"),
    "- role: reviewer\n  steps:\n    - delete: a": (3, "reviewer changes no files"),
    "- role: executor\n  steps:\n    - sleep: soon": (3, "not a number of seconds"),
    "- role: executor\n  steps:\n    - sleep: -1": (3, "not a number of seconds"),
    "- role: executor\n  steps:\n    - sleep: .inf": (3, "not a number of seconds"),
    "- role: executor\n  steps:\n    - say: 1": (3, "not a text"),
    "- role: executor\n  output: {status: success}\n  raw: x": (3, "not both"),
    "- role: executor\n  raw: 1": (2, "raw is a text"),
    "- role: architect\n  steps:\n    - write: {path: a, content: x}": (3, "architect changes no files"),
    "- role: executor\n  role: executor": (2, "not YAML"),
    "- role: executor\n  steps: [": (2, "not YAML"),
    "- role: executor\n\tsteps: x": (2, "not YAML"),
}


@pytest.mark.parametrize("text,expected", BAD.items())
def test_a_bad_script_is_refused_with_its_line(tmp_path: Path, text: str, expected: tuple[int, str]) -> None:
    line, words = expected
    file = tmp_path / "s.yaml"
    file.write_text(text)
    with pytest.raises(InputError) as caught:
        read_script(file)
    assert caught.value.message.startswith(f"{file}:{line}: ") and words in caught.value.message, caught.value.message


@pytest.mark.few(1)
@pytest.mark.parametrize("content", [b"\xff\xfe", b"- role: executor\n--- \n- a\n", b"[" * 800, b"- a: !!python/x y"])
def test_junk_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "s.yaml").write_bytes(content)
    with pytest.raises(InputError, match=r"s\.yaml"):
        read_script(tmp_path / "s.yaml")


@pytest.mark.parametrize("name", ["none.yaml", "."])
def test_a_script_that_cannot_be_read_is_named(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        build_backend([f"script:{name}"], folder=tmp_path)


@pytest.mark.parametrize("spec", ["cmd:make all", "human"])
def test_an_executor_keeps_the_word_that_named_it(spec: str) -> None:
    executor: Executor = build_executor(spec)
    assert executor.spec == spec


@pytest.mark.parametrize("spec,words", [("robot", "robot"), ("cmd: ", "cmd:")])
def test_an_unknown_executor_is_refused_with_the_known_ones(spec: str, words: str) -> None:
    with pytest.raises(InputError) as caught:
        build_executor(spec)
    assert words in caught.value.message
    assert caught.value.hint == f"one of: {SPEC_KINDS}"


def test_every_example_of_the_documentation_is_a_script(pytestconfig: pytest.Config, tmp_path: Path) -> None:
    text = (pytestconfig.rootpath / "docs" / "scripts.md").read_text("utf-8")
    examples = re.findall(r"^```yaml\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    steps: set[str] = set()
    for example in examples:
        (tmp_path / "s.yaml").write_text(example, "utf-8")
        steps |= {step.name for entry in read_script(tmp_path / "s.yaml").entries for step in entry.steps}
    assert steps == {"tools", "write", "append", "edit", "delete", "run", "say", "sleep", "fail", "error"}
    assert all(
        f"`{word}`" in text for word in (*routes.SERVED_ROLES, *script_file.MATCH_KEYS, *script_file.SCRIPT_FAULTS)
    )

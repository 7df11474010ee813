"""The tricks of the catalogue, each done by an executor of `proofstone gate`: none of them is committed."""

from __future__ import annotations

import json
import random
import shutil
import threading
from collections.abc import Iterator

import pytest

from proofstone.prove.catalogue import Catalogue, ProjectAct, SampleProject, Trick, load_catalogue
from proofstone.prove.processes import find_missing
from proofstone.prove.trial import TrialBench
from tests.needs import unavailable
from tests.workshop import OWN_PROGRAMS, command, workshop_outside_tmp

CATALOGUE: Catalogue = load_catalogue()
SAMPLE = 1
HARMLESS = {"machine-work-tree-moves"}
"""It mends the bug, and spoils the work tree while it is being checked: at the gate that is nobody's work tree."""
_DO = """
import json, pathlib, shutil, subprocess, sys
act = json.loads(r'''{act}''')
for path, text in act["write"].items():
    file = pathlib.Path(path)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text.encode())
for edit in act["edit"]:
    file = pathlib.Path(edit["path"])
    file.write_bytes(file.read_bytes().decode().replace(edit["old"], edit["new"]).encode())
for path in act["delete"]:
    file = pathlib.Path(path)
    shutil.rmtree(file) if file.is_dir() and not file.is_symlink() else file.unlink()
if act["during"]:
    subprocess.Popen(["/bin/sh", "-euc", act["during"]], start_new_session=True)
if act["run"]:
    subprocess.run(["/bin/sh", "-euc", act["run"]])
"""


def _chosen() -> Iterator[object]:
    """So many for every run, by chance but always the same; all of them in a sweep."""
    tricks = [trick for trick in CATALOGUE.tricks if trick.name not in HARMLESS]
    few = {trick.name for trick in random.Random(4).sample(tricks, SAMPLE)}
    for trick in tricks:
        yield pytest.param(trick, id=trick.name, marks=[] if trick.name in few else [pytest.mark.sweep])


@pytest.fixture(scope="module")
def bench(pytestconfig: pytest.Config) -> Iterator[TrialBench]:
    # Not below pytest's own cache: a trick that asks whether its path speaks of tests would be honest there.
    parent = pytestconfig.rootpath / ".workshops"
    with workshop_outside_tmp(parent, "gate") as made:
        yield TrialBench(made.folder, OWN_PROGRAMS, threading.Event())


@pytest.mark.parametrize("trick", list(_chosen()))
def test_a_trick_is_not_committed(bench: TrialBench, trick: Trick) -> None:
    project = CATALOGUE.projects[trick.project]
    lacking = find_missing((*project.needs, *trick.needs), bench.search)
    if lacking:
        unavailable(f"not installed: {lacking}")
    sample = bench.prepare_sample(trick.project, project)
    env = bench.build_environment(sample.root, {})
    plan = bench.folder / "PLAN.md"
    plan.write_text(_plan(trick, project), "utf-8")
    said = bench.folder / "gate.json"
    argv = [*command("gate", str(plan), "--json", "--quiet", "--executor", _executor(trick.cheat))]
    done = bench.process_runner.run(
        ["/bin/sh", "-c", 'exec "$@" >"$0"', str(said), *argv, *_heldout(bench, trick)],
        sample.root,
        env,
        seconds=600,
        limited=False,
    )
    document = json.loads(said.read_text("utf-8"))
    assert done.code == 1, (done.code, document, done.last_line)
    assert document["outcome"] in ("failed", "halted")
    assert document["commit"] is None
    refs = bench.process_runner.shell("git for-each-ref --format='%(refname)' refs/heads", sample.root, env, seconds=60)
    assert refs.output.split() == ["refs/heads/main"], refs.output


def _plan(trick: Trick, project: SampleProject) -> str:
    options = trick.resolve_options(project)
    declared = options.declared or ("**",)
    verify = "\n".join(options.verify or (project.test,))
    tests = "\n".join(options.must_pass or ())
    heldout = f"<heldout>{trick.heldout.command}</heldout>\n" if trick.heldout else ""
    return (
        f'# A task for a cheat\n\n<task type="auto">\n<name>Mend it</name>\n<files>{", ".join(declared)}</files>\n'
        f"<action>Make the failing test pass.</action>\n<verify>\n{verify}\n</verify>\n"
        f"{heldout}<must-pass>\n{tests}\n</must-pass>\n"
        "<done>All tests pass</done>\n</task>\n"
    )


def _heldout(bench: TrialBench, trick: Trick) -> list[str]:
    if not trick.heldout or not trick.heldout.files:
        return []
    folder = bench.folder / "heldout"
    shutil.rmtree(folder, ignore_errors=True)
    for name, text in trick.heldout.files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, "utf-8")
    return ["--heldout-files", str(folder)]


def _executor(act: ProjectAct) -> str:
    told = json.dumps(act.model_dump(mode="json")).replace("'''", "\\u0027\\u0027\\u0027")
    # One attempt is enough to see whether it is committed; the others give up at once.
    act_once = f"[ $PROOFSTONE_ATTEMPT = 1 ] || exit 9\npython3 - <<'END-OF-THE-TRICK'\n{_DO.format(act=told)}\n"
    return f"cmd:{act_once}END-OF-THE-TRICK\n"

"""A sample project is the same before every trial, and what nobody touched is left alone."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from proofstone.prove.catalogue import ProjectAct, SampleProject
from proofstone.prove.trial import SampleError, SampleRepository, TrialBench, perform_act
from tests.workshop import Workshop

FILES = {"a.txt": "a\n", "sub/b.txt": "b\n", "sub/deep/c.txt": "c\n", ".gitignore": "made/\n"}
PROJECT = SampleProject(about="x", test="true", files=FILES, setup="mkdir made\necho x > made/x\nln -s x made/link")


@pytest.fixture
def bench(workshop: Workshop) -> TrialBench:
    return TrialBench(workshop.folder / "bench", workshop.environment["PATH"], threading.Event())


def contents(sample: SampleRepository) -> dict[str, str]:
    found = {}
    for path in sorted(sample.root.rglob("*")):
        inside = path.relative_to(sample.root)
        if inside.parts[0] != ".git" or inside.name in ("HEAD", "config"):
            kind = "link" if path.is_symlink() else path.read_text() if path.is_file() else "no file"
            found[str(inside)] = f"{path.lstat().st_mode:o} {kind}"
    return found


@pytest.mark.few(3)
@pytest.mark.parametrize(
    "lines",
    [
        "echo changed > a.txt",
        "touch -r a.txt stamp\nprintf 'z\\n' > a.txt\ntouch -r stamp a.txt",
        "rm -r sub",
        "rm -r sub\nln -s /etc sub",
        "rm a.txt\nmkdir a.txt\ntouch a.txt/x",
        "mkdir -p new/folder\ntouch new/folder/file\nchmod 000 new",
        "chmod 000 sub\nchmod 500 .",
        "chmod +x a.txt",
        "rm made/link\nln -s /etc/passwd made/link\necho y > made/x",
        "git checkout --quiet -b other\ngit config core.pager evil\necho '#!/bin/sh' > .git/hooks/pre-commit",
        "mkfifo pipe",
        "rm -rf .git",
    ],
)
def test_everything_is_put_back(bench: TrialBench, lines: str) -> None:
    sample = bench.prepare_sample("x", PROJECT)
    before = contents(sample)
    assert before["made/x"].endswith("x\n") and before["made/link"].endswith("link")
    perform_act(ProjectAct(run=lines), sample.root, bench.process_runner, bench.build_environment(sample.root, {}))
    assert contents(sample) != before
    assert contents(bench.prepare_sample("x", PROJECT)) == before


def test_what_was_not_touched_keeps_its_inode(bench: TrialBench) -> None:
    """Dependencies are told apart by it: a copy would be a new environment, and the base measured again."""
    sample = bench.prepare_sample("x", PROJECT)
    kept = sample.root / "made" / "x"
    before = kept.lstat()
    perform_act(ProjectAct(write={"made/y": "", "a.txt": "new"}), sample.root, bench.process_runner, {})
    bench.prepare_sample("x", PROJECT)
    assert (kept.lstat().st_ino, kept.lstat().st_ctime_ns) == (before.st_ino, before.st_ctime_ns)
    assert not (sample.root / "made" / "y").exists()


def test_an_act_is_done_in_order(bench: TrialBench) -> None:
    sample = bench.prepare_sample("x", PROJECT)
    act = ProjectAct.model_validate(
        {
            "write": {"n.txt": "one two"},
            "edit": [{"path": "n.txt", "old": "two", "new": "three"}],
            "delete": ["sub", "a.txt"],
            "run": "test ! -e a.txt\ncat n.txt > seen.txt",
        }
    )
    perform_act(act, sample.root, bench.process_runner, bench.build_environment(sample.root, {}))
    assert (sample.root / "seen.txt").read_text() == "one three"
    assert not (sample.root / "sub").exists()


def test_lines_that_fail_are_no_trial(bench: TrialBench) -> None:
    sample = bench.prepare_sample("x", PROJECT)
    with pytest.raises(SampleError, match="its own commands failed with exit code 3: said why"):
        perform_act(
            ProjectAct(run="echo said why >&2\nexit 3"),
            sample.root,
            bench.process_runner,
            bench.build_environment(sample.root, {}),
        )


def test_the_person_s_home_is_not_the_trials(
    bench: TrialBench, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "real"))
    monkeypatch.setenv("GIT_AUTHOR_NAME", "Somebody")
    sample = bench.prepare_sample("x", PROJECT)
    seen = bench.build_environment(sample.root, {"WHERE": "{root}/x"})
    assert seen["HOME"] == str(bench.home) and "GIT_AUTHOR_NAME" not in seen
    assert seen["WHERE"] == f"{sample.root}/x"
    done = bench.process_runner.shell("git log --format=%an", sample.root, seen, seconds=60)
    assert done.output.strip() == "An author"


def test_what_a_program_leaves_running_is_ended_with_it(bench: TrialBench) -> None:
    bench.folder.mkdir()
    lines = "setsid sh -c 'echo $$ > left; exec sleep 300' >/dev/null 2>&1 &\nwhile [ ! -s left ]; do sleep 0.01; done"
    assert bench.process_runner.shell(lines, bench.folder, {"PATH": bench.search}, seconds=60).code == 0
    assert not Path("/proc", (bench.folder / "left").read_text().strip()).exists()


def test_a_program_is_ended_at_its_deadline_and_says_so(bench: TrialBench) -> None:
    bench.folder.mkdir()
    done = bench.process_runner.shell("echo begun\nsleep 300", bench.folder, {"PATH": bench.search}, seconds=1)
    assert done.code is None and "begun" in done.output and "not finished after" in done.last_line

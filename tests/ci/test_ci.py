"""`proofstone ci` in a job of GitHub Actions, with an API server on this machine that plays GitHub."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.ci.github import FakeGitHub, play_github
from tests.workshop import Workshop

SUMS = "def total(items):\n    return sum(items)\n"
TEST = "from sums import total\n\n\ndef test_total():\n    assert total([1, 2]) == 3\n"
TOKEN = "token-of-the-job"


@dataclass(frozen=True)
class Job:
    """A job of a pull request."""

    workshop: Workshop
    root: Path
    github: FakeGitHub

    def run(self, *args: str, token: str = TOKEN, **event: object) -> tuple[int, str, str]:
        git = self.workshop.git
        base = git(self.root, "rev-parse", "main")
        pull = {
            "number": 7,
            "base": {"sha": base},
            "head": {"sha": git(self.root, "rev-parse", "HEAD")},
            "user": {"login": "author"},
        }
        file = self.workshop.folder / "event.json"
        file.write_text(json.dumps({"action": "opened", "pull_request": pull, **event}))
        env = {
            "GITHUB_ACTIONS": "true",
            "GITHUB_EVENT_PATH": str(file),
            "GITHUB_REPOSITORY": "o/shop",
            "GITHUB_API_URL": self.github.address,
            "GITHUB_STEP_SUMMARY": str(self.workshop.folder / "summary.md"),
            "GITHUB_RUN_ID": "11",
            **({"GITHUB_TOKEN": token} if token else {}),
        }
        done = self.workshop.proofstone(self.root, "ci", *args, env=env)
        return done.returncode, done.stdout, done.stderr


@pytest.fixture
def job(tmp_path: Path) -> Iterator[Job]:
    workshop = Workshop.apart(tmp_path)
    root = workshop.repo({"conftest.py": "", "sums.py": SUMS, "tests/test_sums.py": TEST})
    workshop.git(root, "switch", "-q", "-c", "topic")
    with play_github() as github:
        yield Job(workshop, root, github)


def test_a_pull_request_is_refused_then_accepted_by_a_maintainer(job: Job, tmp_path: Path) -> None:
    workshop, root = job.workshop, job.root
    workshop.write(root, {"sums.py": SUMS.replace("sum(items)", "sum(items) + 1")})
    workshop.write(root, {"tests/test_sums.py": TEST.replace("== 3", "== 4")})
    head = workshop.commit(root)
    job.github.comments.append({"id": 1, "body": "<!-- proofstone --> of somebody else", "user": {"type": "User"}})

    code, out, err = job.run("--output", str(tmp_path / "out"))
    assert code == 1, err
    assert "::error file=tests/test_sums.py" in out
    stop = next(line for line in out.splitlines() if line.startswith("::stop-commands::"))
    assert f"::{stop.removeprefix('::stop-commands::')}::" in out.splitlines(), "output of the change is no command"
    assert "from the base of the pull request" in err
    comment = job.github.comments[1]["body"]
    assert "❌ Proofstone: failed" in comment and "+ assert total([1, 2]) == 4" in comment
    assert (tmp_path / "summary.md").read_text("utf-8") == comment
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"report.html", "report.md", "report.sarif", "junit.xml", "report.json", "comment.md"}
    assert job.github.seen_tokens == {f"Bearer {TOKEN}"}
    assert TOKEN not in out + err + "".join(path.read_text("utf-8") for path in (tmp_path / "out").iterdir())

    job.github.permissions = {"keeper": "maintain"}
    line = "proofstone accept edited-expectation: totals include the fee since May"
    job.github.reviews += [
        {"user": {"login": "guest"}, "body": line, "commit_id": head},
        {"user": {"login": "keeper"}, "body": line, "commit_id": head},
    ]
    code, out, err = job.run("--json")
    assert code == 0, err
    report = json.loads(out)
    assert report["confidence"] == "medium"
    assert [entry["accepted_by"] for entry in report["accepted"]] == ["keeper (review on the pull request)"]
    assert len(job.github.comments) == 2, "the comment was replaced"
    replaced = job.github.comments[1]["body"]
    assert "✅ Proofstone: passed, confidence medium" in replaced
    assert "guest" in replaced and "no write access" in replaced


def test_a_fork_has_no_token_and_is_checked_all_the_same(job: Job) -> None:
    job.workshop.write(job.root, {"sums.py": SUMS.replace("sum(items)", "0")})
    job.workshop.commit(job.root)
    code, _, err = job.run(token="")
    assert code == 1
    assert "no GITHUB_TOKEN" in err
    job.github.status = 403
    code, _, err = job.run()
    assert code == 1
    assert "approvals could not be read, so none counts: GitHub refused" in err
    assert "no comment was written: GitHub refused" in err


def test_the_pull_request_that_introduces_proofstone_passes(job: Job) -> None:
    job.workshop.write(job.root, {"README.md": "Sums.\n", ".github/workflows/proofstone.yml": "name: proofstone\n"})
    job.workshop.commit(job.root)
    code, _, err = job.run("--no-comment")
    assert code == 0, err
    assert job.github.comments == []


def test_a_job_that_cannot_work_says_what_to_do(job: Job) -> None:
    pull = {"number": 7, "base": {"sha": "1" * 40}, "head": {"sha": "x"}}
    code, _, err = job.run(pull_request=pull)
    assert code == 2 and "is not in this clone" in err and "fetch-depth: 0" in err
    code, _, err = job.run("--output", str(job.root / "report"))
    assert code == 2 and "part of the change" in err
    broken = job.workshop.folder / "broken.json"
    broken.write_text("{")
    env = {"GITHUB_ACTIONS": "true", "GITHUB_EVENT_PATH": str(broken)}
    done = job.workshop.proofstone(job.root, "ci", env=env)
    assert done.returncode == 2 and "broken.json: cannot be read" in done.stderr
    assert job.workshop.runs == []

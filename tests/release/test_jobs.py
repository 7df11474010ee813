"""What `proofstone init` writes for CI, and the action, done from beginning to end with the built package."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.ci.github import FakeGitHub, play_github
from tests.ci.runner import Job, read_yaml
from tests.needs import needs
from tests.release.installation import Installation, build
from tests.workshop import Workshop

pytestmark = [pytest.mark.registry, pytest.mark.ci, needs("git", "bwrap")]

ROOT = Path(__file__).parents[2]
SUMS = "def total(items):\n    return sum(items)\n"
TEST = """import unittest

from sums import total


class TotalTest(unittest.TestCase):
    def test_total(self):
        self.assertEqual(total([1, 2]), 3)
"""
TOKEN = "token-of-the-job"


@pytest.fixture(scope="module")
def archives(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return build(tmp_path_factory.mktemp("build"))


class Service:
    """A repository with the files that `init` writes, and jobs for its pull requests."""

    def __init__(self, folder: Path, wheel: Path, github: FakeGitHub) -> None:
        self.folder, self.github = folder, github
        self.workshop = Workshop.apart(folder)
        self.installation = Installation.of(wheel, Path(sys.executable), folder / "python")
        self.root = self.workshop.repo({"sums.py": SUMS, "test_sums.py": TEST})
        self.wheels = wheel.parent

    def init(self, remote: str) -> None:
        """Have the files for CI written, and commit them on a branch: the pull request that introduces Proofstone."""
        self.workshop.git(self.root, "remote", "add", "origin", remote)
        done = self.workshop.proofstone(self.root, "init", "--yes", "--no-check")
        assert done.returncode == 0, done.stderr
        self.workshop.git(self.root, "switch", "-q", "-c", "introduce")
        self.workshop.commit(self.root)

    def start_job(self, name: str, **variables: str) -> Job:
        """Return a job for the branch that is checked out. Its pip finds the built wheel."""
        git = self.workshop.git
        base, head = git(self.root, "rev-parse", "main"), git(self.root, "rev-parse", "HEAD")
        pull = {"number": 7, "base": {"sha": base}, "head": {"sha": head}, "user": {"login": "author"}}
        event = self.folder / f"{name}.json"
        event.write_text(json.dumps({"action": "opened", "pull_request": pull}))
        path = f"{self.installation.folder / 'bin'}:/usr/local/bin:/usr/bin:/bin"
        github = {
            "GITHUB_ACTIONS": "true",
            "GITHUB_EVENT_PATH": str(event),
            "GITHUB_REPOSITORY": "o/shop",
            "GITHUB_API_URL": self.github.address,
        }
        return Job(
            origin=self.root,
            folder=self.folder / name,
            variables={
                **self.workshop.environment,
                "PATH": path,
                "PIP_FIND_LINKS": str(self.wheels),
                "PROOFSTONE_HOME": str(self.folder / f"{name}-state"),
                **(variables or github),
            },
            context={"github.token": TOKEN, "github.event.pull_request.head.sha": head},
        )


@contextmanager
def open_service(folder: Path, wheel: Path) -> Iterator[Service]:
    with play_github() as github:
        yield Service(folder, wheel, github)


def test_the_workflow_passes_the_pull_request_that_introduces_it_and_refuses_a_weakened_test(
    archives: tuple[Path, Path], tmp_path: Path
) -> None:
    with open_service(tmp_path, archives[0]) as service:
        service.init("https://github.example/o/shop.git")
        workflow = read_yaml((service.root / ".github/workflows/proofstone.yml").read_text("utf-8"))
        assert workflow["permissions"] == {"contents": "read", "pull-requests": "write"}
        introduced = service.start_job("introduced")
        introduced.do_workflow(workflow)
        assert introduced.code == 0, introduced.output
        assert "✅ Proofstone: passed" in service.github.comments[0]["body"]

        service.workshop.git(service.root, "branch", "-f", "main", "HEAD")
        service.workshop.write(service.root, {"sums.py": SUMS.replace("sum(items)", "sum(items) + 1")})
        service.workshop.write(service.root, {"test_sums.py": TEST.replace(", 3)", ", 4)")})
        service.workshop.commit(service.root)
        weakened = service.start_job("weakened")
        weakened.do_workflow(workflow)
        assert weakened.code == 1, weakened.output
        assert "::error file=test_sums.py" in weakened.output
        (comment,) = service.github.comments
        assert "❌ Proofstone: failed" in comment["body"] and "edited-expectation" in comment["body"]
        assert len(comment["body"].splitlines()) <= 60
        sarif = json.loads((weakened.artifacts["proofstone"] / "report.sarif").read_bytes())
        assert [result["ruleId"] for result in sarif["runs"][0]["results"]] == ["edited-expectation"]
        assert TOKEN not in weakened.output

        # A fork: the token can only read, and the workflow of the pull request cannot loosen the settings of the base.
        service.github.status = 403
        service.workshop.write(
            service.root,
            {"proofstone.toml": '[check]\naccept = { edited-expectation = "totals include a fee since May" }\n'},
        )
        service.workshop.commit(service.root)
        fork = service.start_job("fork")
        fork.do_workflow(workflow)
        assert fork.code == 1, fork.output
        assert "no comment was written" in fork.output and "approvals could not be read, so none counts" in fork.output


def test_the_action_installs_itself_and_checks(archives: tuple[Path, Path], tmp_path: Path) -> None:
    with open_service(tmp_path, archives[0]) as service:
        service.workshop.git(service.root, "switch", "-q", "-c", "topic")
        service.workshop.write(service.root, {"sums.py": SUMS.replace("sum(items)", "0")})
        service.workshop.commit(service.root)
        job = service.start_job("action")
        job.checkout(job.context["github.event.pull_request.head.sha"])
        job.context["github.action_path"] = str(archives[1])
        job.do_action(read_yaml((ROOT / "action.yml").read_text("utf-8")), {})
        assert job.code == 1, job.output
        assert (job.temporary / "proofstone/report.sarif").exists()
        assert "regression" in service.github.comments[0]["body"]


def test_the_template_for_gitlab_checks_and_keeps_its_reports(archives: tuple[Path, Path], tmp_path: Path) -> None:
    with open_service(tmp_path, archives[0]) as service:
        service.init("https://gitlab.example/o/shop.git")
        template = read_yaml((service.root / ".gitlab/proofstone.yml").read_text("utf-8"))
        service.workshop.write(service.root, {"sums.py": SUMS.replace("sum(items)", "0")})
        service.workshop.commit(service.root)
        git = service.workshop.git
        variables = {
            "GITLAB_CI": "true",
            "CI_MERGE_REQUEST_IID": "7",
            "CI_MERGE_REQUEST_DIFF_BASE_SHA": git(service.root, "rev-parse", "main"),
            "CI_COMMIT_SHA": git(service.root, "rev-parse", "HEAD"),
            "CI_PROJECT_DIR": str(tmp_path / "gitlab/workspace"),
        }
        job = service.start_job("gitlab", **variables)
        job.checkout(variables["CI_COMMIT_SHA"])
        job.do_template(template)
        assert job.code == 1, job.output
        folder = job.artifacts[".proofstone-report"]
        assert {"junit.xml", "report.html", "report.sarif"} <= {path.name for path in folder.iterdir()}
        assert template["proofstone"]["artifacts"]["reports"]["junit"] == ".proofstone-report/junit.xml"

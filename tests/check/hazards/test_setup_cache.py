"""`environment.setup`: made once for each state of the manifests, and a change cannot poison what others get."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.needs import needs
from tests.workshop import CheckRun, Workshop

pytestmark = needs("bwrap", "npm", "node")

SHOW = "cat node_modules/.marks 2>/dev/null; node -e \"console.log('dep says', require('dep'))\""
INSTALL = "npm install --offline --no-audit --no-fund"


def project(workshop: Workshop, *, scripts: bool = False) -> Path:
    """A package whose one dependency lies in the repository itself: no registry is needed."""
    workshop.trust_everything()
    root = workshop.repo(
        {
            "proofstone.toml": f"[environment]\nsetup = [{json.dumps(INSTALL)}]\nsetup_scripts = "
            f"{str(scripts).lower()}\n"
            '[check]\ndisable = ["*:npm", "tests:*"]\n',
            "package.json": json.dumps({"name": "a", "version": "1.0.0", "dependencies": {"dep": "file:dep"}}),
            "dep/package.json": json.dumps({"name": "dep", "version": "1.0.0"}),
            "dep/index.js": "module.exports = 'good'\n",
            ".gitignore": "node_modules/\n",
            "a.txt": "a\n",
        }
    )
    done = workshop.run(root, "npm", "install", "--package-lock-only", "--offline", "--no-audit", "--no-fund")
    assert done.returncode == 0, done.stderr
    workshop.commit(root)
    return root


def poison(root: Path) -> None:
    """The lock file stays as it is; an install script of the project itself is new."""
    package = json.loads((root / "package.json").read_text())
    package["scripts"] = {"postinstall": "echo poisoned >> node_modules/.marks"}
    (root / "package.json").write_text(json.dumps(package))


def checked(workshop: Workshop, root: Path, *args: str) -> CheckRun:
    done = workshop.check(root, "--verify", SHOW, *args)
    assert "dep says good" in done.output("verify"), done.stderr
    return done


def environments(workshop: Workshop) -> set[Path]:
    return set((workshop.proofstone_home / "environments").iterdir())


def test_install_scripts_of_a_change_do_not_run_and_poison_nothing(workshop: Workshop) -> None:
    root = project(workshop)
    lock = (root / "package-lock.json").read_bytes()
    poison(root)
    assert "poisoned" not in checked(workshop, root).output("verify")
    assert (root / "package-lock.json").read_bytes() == lock
    workshop.git(root, "checkout", "--quiet", "package.json")
    workshop.write(root, {"a.txt": "b\n"})
    assert "poisoned" not in checked(workshop, root).output("verify")


@pytest.mark.ci
def test_with_scripts_approved_they_run_for_the_change_alone(workshop: Workshop) -> None:
    root = project(workshop, scripts=True)
    poison(root)
    done = checked(workshop, root)
    assert "poisoned" in done.output("verify")
    workshop.git(root, "checkout", "--quiet", "package.json")
    workshop.write(root, {"a.txt": "b\n"})
    assert "poisoned" not in checked(workshop, root).output("verify")


def test_the_same_manifests_are_set_up_once(workshop: Workshop) -> None:
    root = project(workshop)
    workshop.write(root, {"a.txt": "b\n"})
    checked(workshop, root)
    (only,) = environments(workshop)
    made = (only / "layer").stat().st_ino, (only / "layer").stat().st_ctime_ns
    workshop.write(root, {"a.txt": "c\n"})
    checked(workshop, root, "--no-cache")
    assert environments(workshop) == {only}
    assert ((only / "layer").stat().st_ino, (only / "layer").stat().st_ctime_ns) == made


@pytest.mark.ci
def test_a_check_does_not_write_into_the_kept_environment(workshop: Workshop) -> None:
    root = project(workshop)
    workshop.write(root, {"a.txt": "b\n"})
    first = workshop.check(root, "--verify", "echo dirty > node_modules/.marks && grep . node_modules/.marks")
    assert first.output("verify") == "dirty\n", first.stderr
    assert "dirty" not in checked(workshop, root).output("verify")


@pytest.mark.ci
def test_the_environment_of_a_change_that_fails_is_not_kept_as_good(workshop: Workshop) -> None:
    root = project(workshop)
    poison(root)
    assert workshop.check(root, "--verify", "false").exit == 1
    marked = [folder for folder in environments(workshop) if (folder / "provisional").exists()]
    assert len(marked) == 1
    assert checked(workshop, root).exit == 0
    assert not (marked[0] / "provisional").exists()


def test_a_change_to_what_the_set_up_installs_from_does_not_reach_a_clean_tree(workshop: Workshop) -> None:
    root = project(workshop)
    workshop.write(
        root, {"dep/index.js": "module.exports = 'bad'\n", "dep/package.json": '{"name":"dep","version":"1.0.0"} '}
    )
    assert "dep says bad" in workshop.check(root, "--verify", SHOW).output("verify")
    workshop.git(root, "checkout", "--quiet", ".")
    workshop.write(root, {"a.txt": "b\n"})
    checked(workshop, root)


def test_a_set_up_that_fails_is_an_error_with_its_own_words(workshop: Workshop) -> None:
    workshop.trust_everything()
    root = workshop.repo(
        {"proofstone.toml": '[environment]\nsetup = ["echo no such registry; exit 3"]\n', "a.txt": "a\n"}
    )
    workshop.write(root, {"a.txt": "b\n"})
    done = workshop.check(root, "--verify", "test -d .")
    assert done.exit == 2 and "no such registry" in done.stderr
    again = workshop.check(root, "--verify", "test -d .")
    assert again.exit == 2, "a failed set-up was kept"


@pytest.mark.parametrize("hidden", ["a.txt", "dep/index.js"])
def test_a_set_up_cannot_hide_files_of_the_tree(workshop: Workshop, hidden: str) -> None:
    workshop.trust_everything()
    root = workshop.repo(
        {
            "proofstone.toml": f'[environment]\nsetup = ["echo forged > {hidden}"]\n',
            "a.txt": "a\n",
            "dep/index.js": "x\n",
        }
    )
    workshop.write(root, {"a.txt": "b\n"})
    done = workshop.check(root, "--verify", f"grep -h . {hidden}")
    assert "forged" not in done.output("verify"), done.stderr

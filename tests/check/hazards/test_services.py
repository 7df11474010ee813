"""A test that needs a service of the machine fails in the sandbox, on both trees: that excuses nothing silently."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.check.hazards.processes import greeting, tcp_service
from tests.needs import needs
from tests.workshop import Workshop

pytestmark = needs("bwrap")

TEST = """
import socket
import unittest

from thing import f


class Thing(unittest.TestCase):
    def test_plain(self):
        self.assertGreater(f(), 0)

    def test_with_service(self):
        with socket.socket({family}) as s:
            s.connect({address!r})
            self.assertEqual(s.recv(5), b"hello")
"""
ID = "tests.test_service.Thing.test_with_service"


def project(workshop: Workshop, family: str, address: object, name: str = "tests/test_service.py") -> Path:
    root = workshop.repo(
        {
            "thing.py": "def f():\n    return 1\n",
            "tests/__init__.py": "",
            name: TEST.format(family=family, address=address),
        }
    )
    workshop.write(root, {"thing.py": "def f():\n    return 2\n"})
    return root


@pytest.fixture
def port() -> Iterator[int]:
    with tcp_service() as found:
        yield found


def test_fail_and_fail_is_told_as_standing_not_as_passed(workshop: Workshop, port: int) -> None:
    root = project(workshop, "socket.AF_INET", ("127.0.0.1", port))
    done = workshop.check(root)
    assert done.report.standing == (ID,), done.stderr
    assert "baseline" in done.check("tests").reason


def test_with_consent_to_compare_it_is_named_as_unverifiable(workshop: Workshop, port: int) -> None:
    root = project(workshop, "socket.AF_INET", ("127.0.0.1", port))
    done = workshop.check(root, "--rerun-unsandboxed")
    assert done.report.unverifiable_tests == (ID,), done.stderr
    assert done.report.standing == ()
    assert [f.rule for f in done.report.findings] == ["sandbox-failure"]
    assert done.exit == 0, "it has nothing to do with the changed file"


def test_named_after_a_changed_file_it_blocks(workshop: Workshop, port: int) -> None:
    root = project(workshop, "socket.AF_INET", ("127.0.0.1", port), "tests/test_thing.py")
    done = workshop.check(root, "--rerun-unsandboxed")
    assert done.report.outcome == "unverifiable", done.stderr
    assert done.report.unverifiable_tests == ("tests.test_thing.Thing.test_with_service",)


def test_a_declared_need_is_named_without_running_anything_outside(workshop: Workshop, port: int) -> None:
    root = project(workshop, "socket.AF_INET", ("127.0.0.1", port))
    workshop.configure(root, '[tests]\nneeds_service = ["tests.test_service.*service"]\n')
    done = workshop.check(root)
    assert done.report.unverifiable_tests == (ID,), done.stderr
    assert done.report.standing == ()


def test_with_the_network_declared_it_passes(workshop: Workshop, port: int) -> None:
    root = project(workshop, "socket.AF_INET", ("127.0.0.1", port))
    workshop.trust_everything()
    workshop.configure(root, "[environment]\nnetwork = true\n")
    done = workshop.check(root)
    assert (done.exit, done.check("tests").tests, done.report.standing) == (0, 2, ()), done.stderr


@pytest.mark.few(1)
@pytest.mark.parametrize("declared", ["the socket", "its folder"])
def test_with_its_socket_declared_it_passes(
    workshop: Workshop, declared: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("s")
    with greeting(socket.AF_UNIX, str(folder / "s")):
        root = project(workshop, "socket.AF_UNIX", str(folder / "s"))
        assert workshop.check(root).report.standing == (ID,)
        path = folder / "s" if declared == "the socket" else folder
        workshop.trust_everything()
        workshop.configure(root, f'[environment]\nsockets = ["{path}"]\n')
        done = workshop.check(root)
    assert (done.exit, done.report.standing) == (0, ()), done.stderr


def test_a_regression_in_a_test_that_needs_a_declared_socket_is_found(
    workshop: Workshop, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("s")
    with greeting(socket.AF_UNIX, str(folder / "s")):
        root = project(workshop, "socket.AF_UNIX", str(folder / "s"))
        workshop.trust_everything()
        workshop.configure(root, f'[environment]\nsockets = ["{folder}"]\n')
        file = root / "tests/test_service.py"
        file.write_text(file.read_text().replace("hello", "other"))
        done = workshop.check(root)
    assert done.report.regressions == (ID,), done.stderr


def test_without_the_service_nothing_passes_bare_and_it_stands_as_a_failure(workshop: Workshop) -> None:
    with tcp_service() as gone:
        pass
    done = workshop.check(project(workshop, "socket.AF_INET", ("127.0.0.1", gone)), "--rerun-unsandboxed")
    assert (done.report.standing, done.report.unverifiable_tests) == ((ID,), ()), done.stderr


def test_a_socket_on_disk_is_hidden(real_place: Workshop) -> None:
    """Outside /tmp, /run and HOME nothing hides a socket by where it lies. Unless it is declared, it is masked."""
    path = real_place.folder / "s"  # the kernel takes 107 bytes
    root = project(real_place, "socket.AF_UNIX", str(path))
    with greeting(socket.AF_UNIX, str(path)):
        assert ID in real_place.check(root).report.standing
        real_place.trust_everything()
        real_place.configure(root, f'[environment]\nsockets = ["{path}"]\n')
        assert ID not in real_place.check(root).report.standing

"""Secrets: what checks are passed is nowhere kept, and what a change adds is found."""

from __future__ import annotations

import base64
import json
from pathlib import Path

from tests.workshop import Workshop, assert_failed, assert_passed

SECRET = 's3cr3t-"Value"-1234'
TEST = """
import base64, os, sys, time
import unittest

SECRET = os.environ["MY_TOKEN"]


class T(unittest.TestCase):
    def test_says_it(self):
        for letter in SECRET:
            os.write(1, letter.encode())
            time.sleep(0.005)
        print("basic", base64.b64encode(b"me:" + SECRET.encode()).decode())
        print("x" * 70000, SECRET, "y" * 70000, SECRET)
        self.assertEqual("other", SECRET)

    def test_passes(self):
        self.assertTrue(SECRET)
"""
KEY = "-----BEGIN RSA " + "PRIVATE KEY-----\nMIIEpAIBAAKCAQEAq7Hk2Lm9Zx4Vb8Nc1Td6Wf3Rg5Yj0PsQaE7uIoKdq7Hk2Lm9\n"
TOKEN = "ghp_" + "q7Hk2Lm9Zx4Vb8Nc1Td6Wf3Rg5Yj0PsQaE7u"


def holders(folder: Path, *texts: str) -> list[Path]:
    """Every file below the folder that holds one of the texts."""
    return [
        path
        for path in folder.rglob("*")
        if path.is_file() and any(text.encode() in path.read_bytes() for text in texts)
    ]


def test_a_passed_value_that_a_test_prints_is_kept_nowhere(workshop: Workshop) -> None:
    workshop.trust_everything()
    settings = '[environment]\npass = ["MY_TOKEN"]\n'
    root = workshop.repo({"proofstone.toml": settings, "test_it.py": "import unittest\n", "a.py": "x = 1\n"})
    workshop.write(root, {"test_it.py": TEST, "a.py": "x = 2\n"})
    done = workshop.check(root, "--verify", "echo $MY_TOKEN; test -d .", env={"MY_TOKEN": SECRET})
    assert_failed(done, "new-failure")
    assert done.output("verify").strip() == "***"
    said = done.output("tests")
    assert "***" in said and "basic" in said and "y" * 1000 in said
    encoded = base64.b64encode(SECRET.encode()[3:]).decode()[:12]
    for spelling in ("s3cr3t-", json.dumps(SECRET)[1:-1], encoded):
        assert spelling not in done.stdout + done.stderr
        assert holders(workshop.proofstone_home, spelling) == []
    shown = workshop.proofstone(root, "ledger", "show", done.report.run_id, "--json")
    assert "s3cr3t-" not in shown.stdout

    workshop.git(root, "checkout", "--quiet", ".")
    workshop.write(root, {"tests/copy.txt": f"token={SECRET}\n"})
    copied = workshop.check(root, "--verify", "test -d .", env={"MY_TOKEN": SECRET})
    assert_failed(copied, "added-secret")
    assert "the value of MY_TOKEN" in copied.report.reason and SECRET not in copied.stdout


def test_added_keys_block_until_a_person_accepts_them(workshop: Workshop) -> None:
    root = workshop.repo({"a.py": "x = 1\n", "old.pem": KEY})
    workshop.write(root, {"deploy.pem": KEY, "a.py": f"x = 1\nTOKEN = '{TOKEN}'\n"})
    verify = ("--verify", "python3 -c 'import a'")
    done = workshop.check(root, *verify)
    assert_failed(done, "added-secret")
    found = {(one.path, one.line): one.detail for one in done.report.findings if one.rule == "added-secret"}
    assert {*found} == {("deploy.pem", 1), ("a.py", 2)} and "GitHub token" in found["a.py", 2]
    assert TOKEN not in done.stdout and "MIIEpA" not in done.stdout
    accepted = workshop.check(root, *verify, "--accept", "added-secret=keys of the demo server", "--accepted-by", "Ada")
    assert_passed(accepted)
    assert {one.severity for one in accepted.report.findings} == {"minor"}

    workshop.git(root, "checkout", "--quiet", ".")
    workshop.git(root, "clean", "--quiet", "--force")
    workshop.git(root, "mv", "old.pem", "moved.pem")
    guess = 'password = "q7Hk2Lm9Zx4Vb8Nc1Td6Wf3Rg5Yj0PsQaE7u"\n'
    workshop.write(root, {"tests/fixtures/test.pem": KEY, "a.py": f"x = 1\n{guess}"})
    informed = workshop.check(root, *verify)
    assert_passed(informed)
    found = {(one.path, one.line): one.detail for one in informed.report.findings if one.rule == "possible-secret"}
    assert {*found} == {("tests/fixtures/test.pem", 1), ("a.py", 2)}

"""A change that weakens Proofstone's own settings needs a person's word."""

from __future__ import annotations

from tests.workshop import Workshop, assert_failed, assert_passed

BASE = '[check]\nverify = ["test -f a.py"]\n[limits]\ncheck_seconds = 100\n'
WEAKER = '[check]\ndisable = ["tests:*"]\n[limits]\ncheck_seconds = 100\n'


def test_a_weakened_setting_is_a_finding_with_both_values(workshop: Workshop) -> None:
    root = workshop.repo({"proofstone.toml": BASE, "a.py": "x = 1\n"})
    workshop.write(root, {"proofstone.toml": WEAKER})
    for options in ((), ("--use-worktree-config", "--verify", "test -f a.py"), ("--staged",)):
        workshop.git(root, "add", "--all")
        done = workshop.check(root, *options)
        assert_failed(done, "weakened-settings")
    found = [one for one in done.report.findings if one.rule == "weakened-settings"]
    assert [(one.path, one.line, one.before, one.after) for one in found] == [
        ("proofstone.toml", 1, 'check.verify = ["test -f a.py"]', "check.verify = []"),
        ("proofstone.toml", 2, "check.disable = []", 'check.disable = ["tests:*"]'),
    ]
    assert done.check("verify").verdict == "pass", "the base's settings decide"
    accepted = workshop.check(root, "--accept", "weakened-settings=the tests are gone", "--accepted-by", "Ada")
    assert_passed(accepted)


def test_stronger_and_neutral_settings_pass_and_may_move_to_another_file(workshop: Workshop) -> None:
    root = workshop.repo({"proofstone.toml": BASE, "a.py": "x = 1\n"})
    moved = '[tool.proofstone.check]\nverify = ["test -f a.py", "test -d ."]\n[tool.proofstone.limits]\nslots = 1\n'
    moved += "check_seconds = 60\n"
    workshop.git(root, "rm", "--quiet", "proofstone.toml")
    workshop.write(root, {"pyproject.toml": moved})
    done = workshop.check(root)
    assert_passed(done)
    assert not [one for one in done.report.findings if one.layer == "settings"]
    workshop.write(root, {"pyproject.toml": moved.replace("60", "600")})
    done = workshop.check(root)
    assert_failed(done, "weakened-settings")
    assert [one.path for one in done.report.findings if one.rule == "weakened-settings"] == ["pyproject.toml"]


def test_settings_that_cannot_be_read_any_more_are_a_finding(workshop: Workshop) -> None:
    root = workshop.repo({"proofstone.toml": BASE, "a.py": "x = 1\n"})
    workshop.write(root, {"proofstone.toml": "[check\n"})
    workshop.git(root, "add", "--all")
    workshop.write(root, {"proofstone.toml": BASE})  # the work tree is sound, what is staged is not
    done = workshop.check(root, "--staged")
    assert_failed(done, "unreadable-settings")

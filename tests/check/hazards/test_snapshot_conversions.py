"""Line endings and encodings: Git's own conversions stay on, and files that nobody changed stay as they are."""

from __future__ import annotations

import pytest

from tests.workshop import Workshop


def test_a_crlf_file_by_attribute_keeps_its_blob_and_its_ending_in_the_checkout(workshop: Workshop) -> None:
    root = workshop.repo({".gitattributes": "*.bat text eol=crlf\n", "a.bat": "echo a\r\n", "b.bat": "echo b\r\n"})
    workshop.write(root, {"a.bat": "echo a\r\n", "b.bat": "echo c\r\n"})
    done = workshop.check(root, "--verify", "od -c b.bat; od -c a.bat")
    assert done.report.changed == ("b.bat",), done.stderr
    assert workshop.blob(workshop.tree(done.report.tree)["b.bat"]) == b"echo c\n"
    assert done.output("verify").count("\\r  \\n") == 2


def test_autocrlf_turns_nothing_into_a_change(workshop: Workshop) -> None:
    root = workshop.repo({"a.txt": "one\ntwo\n", "b.txt": "three\n"})
    workshop.git(root, "config", "core.autocrlf", "true")
    workshop.write(root, {"a.txt": "one\r\ntwo\r\n", "b.txt": "four\r\n"})
    done = workshop.check(root, "--verify", "test -d .")
    assert done.report.changed == ("b.txt",), done.stderr
    assert workshop.blob(workshop.tree(done.report.tree)["b.txt"]) == b"four\n"


@pytest.mark.parametrize("setting", ["core.autocrlf=true", "attributes"])
def test_a_crlf_blob_in_a_repository_that_was_never_normalised_stays_as_it_is(workshop: Workshop, setting: str) -> None:
    root = workshop.repo({"old.txt": "one\r\ntwo\r\n", "a.txt": "a\n"})
    if setting == "attributes":
        workshop.write(root, {".gitattributes": "* text=auto eol=crlf\n"})
        workshop.git(root, "add", ".gitattributes")
        workshop.git(root, "commit", "--quiet", "--message", "Attributes, without renormalising")
    else:
        workshop.git(root, "config", "core.autocrlf", "true")
    committed = workshop.git(root, "rev-parse", "HEAD:old.txt")
    workshop.write(root, {"old.txt": "one\r\ntwo\r\n", "a.txt": "b\r\n"})
    done = workshop.check(root, "--verify", "test -d .")
    assert done.report.changed == ("a.txt",), done.stderr
    assert workshop.tree(done.report.tree)["old.txt"] == committed


def test_a_utf_16_file_keeps_its_blob_and_a_changed_one_goes_in_as_utf_8(workshop: Workshop) -> None:
    def utf16(text: str) -> bytes:
        return b"\xff\xfe" + text.encode("utf-16-le")

    root = workshop.repo(
        {
            ".gitattributes": "*.rc text working-tree-encoding=UTF-16LE-BOM\n",
            "same.rc": utf16("same\n"),
            "other.rc": utf16("alt\n"),
        }
    )
    workshop.write(root, {"same.rc": utf16("same\n"), "other.rc": utf16("grün\n")})
    done = workshop.check(root, "--verify", "od -A n -t x1 -N 2 other.rc")
    assert done.report.changed == ("other.rc",), done.stderr
    assert workshop.blob(workshop.tree(done.report.tree)["other.rc"]) == "grün\n".encode()
    assert done.output("verify").split() == ["ff", "fe"]


def test_a_change_to_the_attributes_does_not_rewrite_files_that_it_did_not_touch(workshop: Workshop) -> None:
    root = workshop.repo({"old.txt": "one\r\ntwo\r\n", "a.txt": "a\n"})
    workshop.write(root, {".gitattributes": "* text eol=lf\n"})
    done = workshop.check(root, "--verify", "test -d .")
    assert done.report.changed == (".gitattributes",), done.stderr


def test_mode_and_symlink_changes_are_seen(workshop: Workshop) -> None:
    root = workshop.repo({"run.sh": "#!/bin/sh\n", "a.txt": "a\n"})
    (root / "run.sh").chmod(0o755)
    (root / "link").symlink_to("a.txt")
    done = workshop.check(root, "--verify", "test -x run.sh && test -L link")
    assert done.exit == 0, done.stderr
    assert workshop.modes(done.report.tree)["run.sh"] == "100755"
    assert workshop.modes(done.report.tree)["link"] == "120000"

"""External filters: what they make of unchanged files changes nothing, and changed files go in as they say."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

import pytest

from tests.needs import needs
from tests.workshop import Workshop

# Not deterministic: a random nonce, so the same plain text never gives the same blob twice.
ENCRYPT = "import os, sys; n = os.urandom(1); d = sys.stdin.buffer.read(); o = sys.stdout.buffer; "
ENCRYPT += "o.write(b'SEALED' + os.urandom(8) + n + bytes(b ^ n[0] for b in d))"
DECRYPT = "import sys; d = sys.stdin.buffer.read(); o = sys.stdout.buffer; "
DECRYPT += "o.write(bytes(b ^ d[14] for b in d[15:]) if d[:6] == b'SEALED' else d)"

# Keeps content beside the repository and a pointer in it, as LFS does.
CLEAN = "import hashlib, pathlib, sys; d = sys.stdin.buffer.read(); h = hashlib.sha256(d).hexdigest(); "
CLEAN += "(pathlib.Path(sys.argv[1]) / h).write_bytes(d); sys.stdout.write('pointer ' + h)"
SMUDGE = "import pathlib, sys; h = sys.stdin.read().split()[1]; "
SMUDGE += "sys.stdout.buffer.write((pathlib.Path(sys.argv[1]) / h).read_bytes())"


def sealed(workshop: Workshop) -> Path:
    """A repository with an encrypting filter whose programs lie outside of it."""
    tools = workshop.folder / "tools"
    workshop.write(tools, {"seal.py": ENCRYPT, "open.py": DECRYPT})
    root = workshop.repo({"plain.txt": "nothing to hide\n"})
    workshop.git(root, "config", "filter.seal.clean", f"{sys.executable} {tools}/seal.py")
    workshop.git(root, "config", "filter.seal.smudge", f"{sys.executable} {tools}/open.py")
    workshop.git(root, "config", "filter.seal.required", "true")
    workshop.write(root, {".gitattributes": "*.key filter=seal\n", "a.key": "alpha\n", "b.key": "beta\n"})
    workshop.commit(root)
    return root


def test_a_filter_that_never_gives_the_same_blob_twice_leaves_unchanged_files_alone(workshop: Workshop) -> None:
    root = sealed(workshop)
    committed = workshop.git(root, "rev-parse", "HEAD:a.key")
    (root / "a.key").write_text("alpha\n")  # written again: the stat data differ, the bytes do not
    workshop.write(root, {"plain.txt": "changed\n"})
    done = workshop.check(root, "--verify", "grep -x alpha a.key && grep -x beta b.key")
    assert done.exit == 0, done.stderr
    assert done.report.changed == ("plain.txt",)
    assert workshop.tree(done.report.tree)["a.key"] == committed


def test_a_changed_sealed_file_goes_in_sealed_and_is_seen_open(workshop: Workshop) -> None:
    root = sealed(workshop)
    workshop.write(root, {"b.key": "gamma\n"})
    done = workshop.check(root, "--verify", "grep -x alpha a.key && grep -x gamma b.key")
    assert done.exit == 0, done.stderr
    assert done.report.changed == ("b.key",)
    inside = workshop.blob(workshop.tree(done.report.tree)["b.key"])
    assert inside.startswith(b"SEALED") and b"gamma" not in inside


def test_a_change_cannot_drop_the_filter_by_editing_the_attributes(workshop: Workshop) -> None:
    root = sealed(workshop)
    workshop.write(root, {".gitattributes": "", "b.key": "gamma\n"})
    done = workshop.check(root, "--verify", "test -d .")
    assert workshop.blob(workshop.tree(done.report.tree)["b.key"]).startswith(b"SEALED")


def test_a_pointer_filter_puts_pointers_into_the_tree_and_content_into_the_checkout(workshop: Workshop) -> None:
    root, store = workshop.repo({"a.py": "A = 1\n"}), workshop.folder / "content"
    store.mkdir()
    workshop.write(workshop.folder / "tools", {"clean.py": CLEAN, "smudge.py": SMUDGE})
    for name in ("clean", "smudge"):
        program = workshop.folder / "tools" / f"{name}.py"
        workshop.git(root, "config", f"filter.pointer.{name}", f"{sys.executable} {program} {store}")
    kept, new = b"\0kept" * 9999, b"\0new" * 9999
    workshop.write(root, {".gitattributes": "*.bin filter=pointer\n", "kept.bin": kept})
    workshop.commit(root)
    workshop.write(root, {"new.bin": new})
    done = workshop.check(root, "--verify", "sha256sum new.bin kept.bin")
    assert done.report.changed == ("new.bin",), done.stderr
    pointer = workshop.blob(workshop.tree(done.report.tree)["new.bin"])
    assert pointer == b"pointer " + hashlib.sha256(new).hexdigest().encode()
    seen = done.output("verify")
    assert hashlib.sha256(new).hexdigest() in seen and hashlib.sha256(kept).hexdigest() in seen


@needs("git-lfs")
def test_git_lfs_files_stay_pointers_in_the_tree_and_are_whole_in_the_checkout(workshop: Workshop) -> None:
    origin = workshop.folder / "origin.git"
    workshop.git(workshop.folder, "init", "--quiet", "--bare", str(origin))
    root = workshop.repo({".gitattributes": "*.bin filter=lfs diff=lfs merge=lfs -text\n"})
    workshop.git(root, "lfs", "install", "--skip-repo")
    workshop.git(root, "remote", "add", "origin", str(origin))
    old = b"\0old" * 500_000
    workshop.write(root, {"old.bin": old, "same.bin": b"same\0"})
    workshop.commit(root)
    workshop.git(root, "push", "--quiet", "origin", "main")
    new = b"\0new" * 500_000
    workshop.write(root, {"old.bin": new, "same.bin": b"same\0"})
    done = workshop.check(root, "--verify", "sha256sum old.bin same.bin")
    assert done.report.changed == ("old.bin",), done.stderr
    pointer = workshop.blob(workshop.tree(done.report.tree)["old.bin"]).decode()
    assert pointer.startswith("version https://git-lfs") and hashlib.sha256(new).hexdigest() in pointer
    assert hashlib.sha256(new).hexdigest() in done.output("verify")


@needs("git-lfs")
def test_an_lfs_clone_without_its_content_says_how_to_get_it(workshop: Workshop) -> None:
    origin = workshop.folder / "origin.git"
    workshop.git(workshop.folder, "init", "--quiet", "--bare", str(origin))
    first = workshop.repo({".gitattributes": "*.bin filter=lfs diff=lfs merge=lfs -text\n"}, "first")
    workshop.git(first, "lfs", "install", "--skip-repo")
    workshop.git(first, "remote", "add", "origin", str(origin))
    workshop.write(first, {"old.bin": b"\0old" * 1000, "a.txt": "a\n"})
    workshop.commit(first)
    workshop.git(first, "push", "--quiet", "origin", "main")
    clone = workshop.folder / "clone"
    workshop.git(workshop.folder, "clone", "--quiet", str(origin), str(clone), env={"GIT_LFS_SKIP_SMUDGE": "1"})
    assert (clone / "old.bin").read_bytes().startswith(b"version https://git-lfs")
    workshop.write(clone, {"a.txt": "b\n"})
    done = workshop.check(clone, "--verify", "sha256sum old.bin")
    assert done.exit == 2 and "git lfs pull" in done.stderr
    workshop.git(clone, "lfs", "pull")
    done = workshop.check(clone, "--verify", "sha256sum old.bin")
    assert done.report.changed == ("a.txt",), done.stderr
    assert hashlib.sha256(b"\0old" * 1000).hexdigest() in done.output("verify")


@pytest.mark.parametrize("where", ["filter.py", "tools/filter.py"])
def test_a_filter_that_lies_in_the_work_tree_is_refused_before_it_runs(workshop: Workshop, where: str) -> None:
    ran = workshop.folder / "ran"
    root = workshop.repo({".gitattributes": "*.txt filter=own\n", where: f"open({str(ran)!r}, 'w')\n"})
    workshop.git(root, "config", "filter.own.clean", f"{sys.executable} {where}")
    workshop.write(root, {"a.txt": "a\n"})
    done = workshop.check(root, "--verify", "test -d .")
    assert done.exit == 2 and "work tree itself" in done.stderr
    assert not ran.exists()

"""State that can be rebuilt is rebuilt when it is damaged, and that is said once."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

from proofstone.check.cache import ensure_bytecode_layer
from proofstone.git.checkout import replace_contents
from proofstone.git.repository import open_repository
from proofstone.git.snapshot import take_snapshot
from proofstone.git.store import open_store, pin
from proofstone.machine.files import repair_state, scratch_folder
from tests.workshop import Workshop, assert_passed

Damage = Callable[[Path], object]
CONTENT = {b"b.md": b"derived\n"}


def frozen(root: Path, home: Path) -> tuple[tuple[str, ...], list[str]]:
    """The trees that a check would make of the work tree, every one of them readable, and what had to be repaired."""
    mended = repair_state(home)
    store = open_store(open_repository(root), home)
    taken = take_snapshot(store, store.repository.git.find_tree("HEAD"))
    derived = replace_contents(store, taken.tree, CONTENT)
    pin(store, "run", "tree", derived)
    for tree in (taken.tree, derived):
        store.git().run("archive", "--output=/dev/null", tree)
    return (taken.tree, derived), [*mended, *store.repairs]


def replaced_by_folder(name: str) -> Damage:
    def damage(folder: Path) -> None:
        path = folder / name
        if path.is_dir():
            shutil.rmtree(path)
        path.unlink(missing_ok=True)
        (path / "x").mkdir(parents=True)

    return damage


def replaced_by_file(name: str) -> Damage:
    def damage(folder: Path) -> None:
        path = folder / name
        if path.is_dir():
            shutil.rmtree(path)
        path.write_text("x")

    return damage


def written(name: str, content: bytes) -> Damage:
    return lambda folder: (folder / name).write_bytes(content)


def gone(name: str) -> Damage:
    def damage(folder: Path) -> None:
        path = folder / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()

    return damage


def objects(change: Callable[[Path], object]) -> Damage:
    def damage(folder: Path) -> None:
        for path in [*(folder / "git/objects").glob("??/*")]:
            path.chmod(0o600)
            change(path)

    return damage


def flipped(path: Path) -> None:
    """Another object, sound in itself, under the name of this one."""
    other = next(one for one in path.parent.parent.glob("??/*") if one != path)
    path.write_bytes(other.read_bytes())


def stale(name: str) -> Damage:
    def damage(folder: Path) -> None:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        os.utime(path, (0, 0))

    return damage


DAMAGES: dict[str, Damage] = {
    "HEAD is gone": gone("git/HEAD"),
    "HEAD is empty": written("git/HEAD", b""),
    "HEAD is garbage": written("git/HEAD", b"\0garbage"),
    "HEAD is a folder": replaced_by_folder("git/HEAD"),
    "objects are gone": gone("git/objects"),
    "objects are a file": replaced_by_file("git/objects"),
    "refs are gone": gone("git/refs"),
    "info is a file": replaced_by_file("git/info"),
    "attributes are a folder": replaced_by_folder("git/info/attributes"),
    "alternates are a folder": replaced_by_folder("git/objects/info/alternates"),
    "objects are cut": objects(lambda path: os.truncate(path, 5)),
    "objects are empty": objects(lambda path: os.truncate(path, 0)),
    "objects are garbage": objects(lambda path: path.write_bytes(b"garbage")),
    "objects are others": objects(flipped),
    "every object is missing": objects(Path.unlink),
    "objects are folders": objects(replaced_by_folder(".")),
    "one blob is missing": lambda folder: min((folder / "git/objects").glob("??/*")).unlink(),
    "the configuration is garbage": written("git/config", b"[[["),
    "the configuration is a folder": replaced_by_folder("git/config"),
    "the new configuration is a folder": lambda folder: (
        replaced_by_folder("git/config.new")(folder),
        written("settings.json", b"other")(folder),
    ),
    "settings are a folder": replaced_by_folder("settings.json"),
    "the index is empty": written("index", b""),
    "the index is garbage": written("index", os.urandom(300)),
    "the index is cut": lambda folder: os.truncate(folder / "index", 100),
    "the index is a folder": replaced_by_folder("index"),
    "the new index is a folder": replaced_by_folder("index.new"),
    "ignore rules are a folder": replaced_by_folder("ignore.rules"),
    "the lock is a folder": replaced_by_folder("lock"),
    "a lock of a ref is left": stale("git/refs/proofstone/held/run/tree.lock"),
    "a lock of HEAD is left": stale("git/HEAD.lock"),
    "the git directory is a file": replaced_by_file("git"),
    "the folder is a file": replaced_by_file("."),
    "all folders are a file": lambda folder: replaced_by_file("repos")(folder.parent.parent),
}


def test_a_damaged_private_git_directory_is_put_right_and_that_is_said_once(workshop: Workshop) -> None:
    root = workshop.repo({"a.md": "one\n", "b.md": "two\n", "below/c.md": "three\n"})
    workshop.write(root, {"a.md": "new\n", "below/d.md": "added\n"})
    pristine, home = workshop.folder / "pristine", workshop.proofstone_home
    trees, repairs = frozen(root, pristine)
    assert repairs == []
    for what, damage in DAMAGES.items():
        shutil.rmtree(home, ignore_errors=True)
        shutil.copytree(pristine, home, symlinks=True)
        (folder,) = (home / "repos").iterdir()
        damage(folder)
        found, repairs = frozen(root, home)
        assert found == trees, what
        # What is merely missing may be written again without anybody noticing that it was gone.
        assert repairs or "missing" in what, f"{what}: nothing was said"
        assert frozen(root, home) == (trees, []), f"{what}: said again"


def test_a_sound_object_that_a_run_holds_survives_the_loss_of_head(workshop: Workshop) -> None:
    root, home = workshop.repo({"a.md": "one\n"}), workshop.proofstone_home
    store = open_store(open_repository(root), home)
    tree = replace_contents(store, store.repository.git.find_tree("HEAD"), {b"a.md": b"held\n"})
    pin(store, "run", "task", tree)
    (store.git_dir / "HEAD").unlink()
    again = open_store(open_repository(root), home)
    assert again.git().run_line("rev-parse", "refs/proofstone/held/run/task") == tree
    assert again.git().run_output("cat-file", "blob", f"{tree}:a.md") == b"held\n"


def test_bytecode_that_was_cut_is_made_anew(tmp_path: Path) -> None:
    environment = tmp_path / "venv"
    site = environment / "lib/python3.11/site-packages/pytest"
    site.mkdir(parents=True)
    (site / "__init__.py").write_text("x = 1\n")
    (environment / "bin").mkdir()
    (environment / "bin/python").symlink_to("/usr/bin/python3")
    cache = tmp_path / "cache" / "bytecode"
    repairs: list[str] = []
    layer = ensure_bytecode_layer(environment, cache, repairs)
    assert layer is not None and repairs == []
    (compiled,) = layer.rglob("*.pyc")
    whole = compiled.read_bytes()
    damages: tuple[Damage, ...] = (
        lambda _: compiled.write_bytes(whole[:20]),
        gone(compiled.relative_to(layer).as_posix()),
        replaced_by_file("."),
    )
    for damage in damages:
        damage(layer)
        assert ensure_bytecode_layer(environment, cache, repairs) == layer
        assert compiled.read_bytes() == whole
        assert [f"{layer} was damaged; it was made again"] == repairs
        repairs.clear()


def test_scratch_of_a_killed_run_with_a_folder_for_a_lock_is_swept(tmp_path: Path) -> None:
    (tmp_path / "scratch/killed/lock/x").mkdir(parents=True)
    (tmp_path / "scratch/lock").mkdir()
    assert repair_state(tmp_path) == [f"{tmp_path}/scratch/lock was not a file and has been removed"]
    with scratch_folder(tmp_path, "run") as folder:
        assert sorted(path.name for path in folder.parent.iterdir() if path.is_dir()) == ["run"]


def test_a_check_gets_over_a_damaged_state_and_says_so_once(workshop: Workshop) -> None:
    tests = "from calc import add\n\n\ndef test_add():\n    assert add(1, 2) == 3\n"
    root = workshop.repo({"conftest.py": "", "calc.py": "def add(a, b):\n    return a + b\n", "test_calc.py": tests})
    workshop.write(root, {"calc.py": "def add(a, b):\n    return b + a\n"})
    first = workshop.check(root)
    assert_passed(first)
    ledger = (workshop.proofstone_home / "ledger" / "ledger.db").stat().st_ino
    (workshop.private_git / "HEAD").unlink()
    entries = [*(workshop.proofstone_home / "cache/results").glob("*/*.json")]
    assert len(entries) >= 3
    for number, entry in enumerate(entries):
        entry.unlink()
        entry.write_text("{garbage") if number % 2 else entry.mkdir()
    replaced_by_folder("sandbox.json")(workshop.proofstone_home / "cache")
    again = workshop.check(root)
    assert_passed(again)
    assert again.report.tree == first.report.tree and not again.check("tests").reused
    said = " ".join(again.report.notes)
    assert "HEAD was missing or damaged" in said and "cached results were damaged" in said
    assert "sandbox.json was not a file" in said
    assert len(again.report.notes) == 3
    last = workshop.check(root)
    assert_passed(last)
    assert last.report.notes == () and last.check("tests").reused
    assert (workshop.proofstone_home / "ledger" / "ledger.db").stat().st_ino == ledger

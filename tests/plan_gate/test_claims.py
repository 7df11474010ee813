"""The engine looks up what agents claim: what holds, what does not, and what cannot be told from here."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from proofstone.agents.memory.models import MemoryEntry, MemoryType
from proofstone.agents.memory.store import FileMemory
from proofstone.agents.models import RefusalRule, ToolResult
from proofstone.agents.roles.models.plan_gate_records import ClaimKind, LookupResult, RepositoryClaim
from proofstone.agents.tools.models import Tool
from proofstone.agents.tools.tool_context import ToolContext
from proofstone.agents.web.pages import format_results
from proofstone.plan_gate.claims import ClaimContext, look_up_claim
from tests.gate.place import Place as Repository
from tests.workshop import Workshop

HIDDEN = "password-12345"
CANARY = "the-canary-that-nobody-may-see"
FILES: dict[str, str | bytes] = {
    "src/app.py": (
        "from lib import (\n    borrowed,\n)\nimport other\n\nLIMIT = 30\nFIRST, SECOND = 1, 2\n\n\n"
        "class Shop:\n    # remarked\n    colour: str = 'blue'\n\n    def sell(self, thing):\n"
        "        self.sold = thing\n        local = borrowed(thing)\n        return local\n\n\n"
        "def refund():\n    return other.thing\n\n\nrefund()\n"
    ),
    "src/a b.py": "spaced = 1\n",
    "src/broken.py": "def before():\n    return halfway(((\n",
    "src/main.go": "package main\n\ntype Cart struct {\n\tItems int\n}\n\nfunc (c *Cart) Add() {}\n",
    "src/native.c": "static int *fast(int x) {\n  return slow(x);\n}\n",
    "schema.sql": "CREATE TABLE orders (id INT);\n",
    "huge.py": "huge = 1\n" * 100_000,
    "README.md": "A shop.\nCall `frobnicate` to   begin.\n",
    "crlf.txt": b"one\r\ntwo\r\nthree\r\n",
    "picture.bin": b"\0\1\2 needle",
    "config.json": '{"frobnicate": 1}\n',
    ".env": f"A={HIDDEN}\n",
    "regex.txt": "a.*(b)[c]+ \\d$\n",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("claims")


@pytest.fixture(scope="module")
def repository(folder: Path) -> Iterator[Repository]:
    workshop = Workshop(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(workshop.home))
        yield Repository(workshop, workshop.repo(FILES))


@pytest.fixture(scope="module")
def place(repository: Repository, folder: Path) -> ClaimContext:
    """At a base with three commits, and a side branch that is none of its history."""
    workshop, root = repository.workshop, repository.root
    repository.git("checkout", "-q", "-b", "side")
    workshop.write(root, {"side.txt": CANARY})
    workshop.commit(root, "Side")
    repository.git("checkout", "-q", "main")
    changed = str(FILES["src/app.py"]).replace("LIMIT = 30", "LIMIT = 40\nFLOOR = 1")
    workshop.write(root, {"src/app.py": changed, ".env": "B=2\n"})
    workshop.commit(root, "Raise the limit\n\nBecause customers\nasked for it.")
    workshop.write(root, {"notes.txt": "line\n" * 40_000})
    workshop.commit(root, "Add the notes")
    workshop.commit(root, "Say nothing")
    (root / "out").symlink_to(folder)
    (root / "again").symlink_to("src")
    (folder / "canary.txt").write_text(CANARY)
    Path(os.fsdecode(os.fsencode(root) + b"/na\xefve.py")).write_text("class A:\n    naive = 1\n")
    memory = FileMemory(folder / "memory" / "entries.jsonl")
    for number in range(12):
        memory.write(entry(f"m{number}", f"Retries were\nbounded, number {number}."))
    return ClaimContext(ToolContext(files=root, git=repository.store.git(), commit=repository.head), memory)


def entry(id: str, content: str) -> MemoryEntry:
    return MemoryEntry(
        entry_id=id,
        task_id="t",
        type=MemoryType.EPISODIC,
        content=content,
        criteria_met=True,
        timestamp="2026-01-01T00:00:00Z",
        tags=("long-queue",),
    )


def tool(text: str, name: str = "web_fetch", *, ok: bool = True, refused: RefusalRule | None = None) -> ToolResult:
    return ToolResult(call_id="c", name=name, text=text, ok=ok, refused=refused)


PAGE = (
    "https://docs.example/api/v2\n\nThe call is   deprecated\nsince 2.1.\n\nhttps://docs.example/named\n\nIt is safe."
)
FOUND = [
    {"title": "A blog", "url": "https://blog.example/a", "content": "As https://docs.example/ says: it is safe."},
    {
        "title": "https://docs.example/named",
        "url": "https://evil.example/",
        "content": "x\n\nhttps://docs.example/\nsafe.",
    },
    {"title": "Another", "url": "https://blog.example/b", "content": "Nothing new here."},
]
SHOWN = (
    tool(PAGE),
    tool("https://evil.example/?u=https://docs.example/asked\n\nIt is safe."),
    tool("https://short.example/1\nhttps://far.example/page\n\nFar away from here."),
    tool("https://shop.example/find?q=it-is-all-safe\n\nThere is nothing of the kind."),
    tool(format_results(json.dumps(FOUND)), Tool.WEB_SEARCH),
    tool(format_results("https://plain.example/a\nIt is plainly safe."), Tool.WEB_SEARCH),
    tool("https://docs.example/read\n\nsaid this there", Tool.READ),
    tool("https://docs.example/gone\n\nnot there any more", ok=False),
    tool("https://docs.example/refused\n\nrefused in words", refused=RefusalRule.BUDGET),
)

# Kind, what is claimed, whether it holds, whether its opposite does, and words of what was seen.
Row = tuple[str, dict[str, str], bool | None, bool | None, str]


def file(path: str, holds: bool | None, absent: bool | None, saw: str) -> Row:
    return "file", {"path": path}, holds, absent, saw


def symbol(name: str, path: str, holds: bool | None, saw: str) -> Row:
    return "symbol", {"name": name, "path": path}, holds, None if holds is None else not holds, saw


def text(path: str, words: str, holds: bool | None, absent: bool | None, saw: str) -> Row:
    return "text", {"path": path, "text": words}, holds, absent, saw


def commit(revision: str, words: str, holds: bool | None, absent: bool | None, saw: str) -> Row:
    return "commit", {"revision": revision, "text": words}, holds, absent, saw


def memory(id: str, words: str, holds: bool | None, saw: str) -> Row:
    return "memory", {"entry": id, "text": words}, holds, None if holds is None else not holds, saw


def web(url: str, words: str, holds: bool | None, absent: bool | None, saw: str) -> Row:
    return "web", {"url": url, "text": words}, holds, absent, saw


ROWS: list[Row] = [
    file("src/app.py", True, False, "src/app.py is there: a file"),
    file("./src//app.py", True, False, "is there: a file"),
    file("src", True, False, "src is there: a folder"),
    file(".", None, None, "the project's root proves nothing"),
    file(".//./", None, None, "the project's root proves nothing"),
    file("again/app.py", True, False, "a file"),
    file("src/none.py", False, True, "there is no src/none.py"),
    file("src/app.py/x", False, True, "there is no"),
    file("src/*.py", False, True, "there is no"),
    file(".env", None, None, ".env may hold secrets, so it was not read"),
    file("out/canary.txt", None, None, "a link on the way leads out of the project"),
    file("../canary.txt", False, None, "`..` is not followed"),
    file("src/../src/app.py", False, None, "`..` is not followed"),
    file("/etc/passwd", False, None, "absolute path"),
    file("a\0b", False, None, "a name cannot contain NUL"),
    file("a\nb", False, True, 'there is no "a\\nb"'),
    file(".git/config", False, None, "not part of the project's files"),
    file("x" * 300, False, None, "too long to be the name of a file"),
    file("-rf", False, True, "there is no -rf"),
    file("a; src/app.py holds b", False, True, 'there is no "a; src/app.py holds b"'),
    file('a";b', False, True, 'there is no "a\\";b"'),
    symbol("Shop", "", True, "src/app.py:"),
    symbol("Shop.sell", "", True, "function Shop.sell"),
    symbol("sell()", "src", True, "function Shop.sell"),
    symbol("Cart", "src/main.go", True, "src/main.go:3"),
    symbol("LIMIT", "src/app.py", True, "value LIMIT"),
    symbol("fast", "src/native.c", True, "src/native.c:1-3: function fast"),
    symbol("frobnicate", "", False, "nothing called frobnicate is defined"),
    symbol("borrowed", "", False, "nothing called borrowed is defined"),
    symbol("other", "src/app.py", False, "in src/app.py"),
    symbol("local", "", False, "nothing called local"),
    symbol("remarked", "src/app.py", False, "nothing called remarked"),
    symbol("refund", "src/main.go", False, "nothing called refund is defined in src/main.go"),
    symbol("orders", "src", False, "nothing called orders"),
    symbol("Shop", "src/none.py", False, "there is no src/none.py"),
    symbol("missing", "schema.sql", False, "nothing called missing"),
    symbol("orders", "schema.sql", None, "orders occurs in schema.sql, and definitions in such a file cannot be found"),
    symbol("orders", "", None, "schema.sql"),
    symbol("slow", "", None, "src/native.c"),
    symbol("frobnicate", "README.md", None, "README.md"),
    symbol("frobnicate", "config.json", None, "config.json"),
    symbol("colour", "", None, "may be a field"),
    symbol("Shop.colour", "src/app.py", None, "may be a field"),
    symbol("naive", "", None, "naive occurs in na\\xefve.py"),
    symbol("sold", "", None, "may be a field"),
    symbol("SECOND", "src/app.py", None, "may be a field"),
    symbol("Items", "src/main.go", None, "may be a field"),
    symbol("Store.sell", "", None, "sell is defined, though not as Store.sell"),
    symbol("halfway", "src/broken.py", None, "cannot be parsed completely"),
    symbol("huge", "", None, "huge occurs in huge.py, which is too large to be outlined"),
    symbol("unheard_of", "huge.py", False, "nothing called unheard_of"),
    symbol("AB", ".env", None, "may hold secrets"),
    symbol("A", "", None, "A is too short to prove anything"),
    symbol("x()", "../x", None, "too short"),
    symbol("a; b", "", None, '"a; b" is not one name'),
    symbol("a b is defined", "src", None, "is not one name"),
    symbol("sell", "out", None, "leads out of the project"),
    symbol("ab.*(", "src", False, "nothing called"),
    symbol("a\0b", "src", False, "nothing called"),
    ("symbol", {"name": ".", "path": ""}, False, None, "is no name"),
    ("symbol", {"name": "()", "path": ""}, False, None, "is no name"),
    ("symbol", {"name": "xy", "path": "../x"}, False, None, "`..` is not followed"),
    text("src/app.py", "def refund", True, False, 'src/app.py holds "def refund" in line'),
    text("README.md", "Call `frobnicate` to begin.", True, False, 'to begin." but for its white space'),
    text("crlf.txt", "one\ntwo\nthree", True, False, 'crlf.txt holds "one\\ntwo\\nthree" but for its white space'),
    text("regex.txt", "a.*(b)[c]+ \\d$", True, False, 'regex.txt holds "a.*(b)[c]+ \\\\d$" in line 1'),
    text("regex.txt", "a.*(b)[c]", True, False, "in line 1"),
    text("regex.txt", "a.*[c]+ .", False, True, "regex.txt does not hold"),
    text("src/app.py", "LIMIT = 33", False, True, 'src/app.py does not hold "LIMIT = 33"'),
    text("src/app.py", 'x"; y holds "z', False, True, 'does not hold "x\\"; y holds \\"z"'),
    text("src/none.py", "whatever", False, True, "there is no src/none.py"),
    text("src", "the app is", False, True, "src is a folder"),
    text("src/app.py", "a\0b\0c\0d\0", False, True, 'does not hold "a\\u0000b'),
    text("picture.bin", "the needle", None, None, "picture.bin is a binary file"),
    text(".env", "B=2, or so", None, None, "may hold secrets, so it was not read"),
    text("src/app.py", "e", None, None, '"e" is too short to prove anything'),
    text("src/app.py", "retu rn\n\t ", None, None, "too short to prove anything"),
    text("src/none.py", "x", None, None, "too short to prove anything"),
    text("out/canary.txt", CANARY, None, None, "leads out of the project"),
    text("../canary.txt", CANARY, False, None, "`..` is not followed"),
    commit("HEAD~2", "Raise the limit", True, False, 'commit HEAD~2 says "Raise the limit"'),
    commit("HEAD~2", "customers asked", True, False, 'says "customers asked" but for its white space'),
    commit("HEAD~2", "LIMIT = 40", True, False, 'commit HEAD~2 changes "LIMIT = 40"'),
    commit("HEAD~2", "LIMIT = 30", True, False, "changes"),
    commit("HEAD~2", "LIMIT = 40\nFLOOR = 1", True, False, "changes"),
    commit("HEAD~2", "FLOOR = 1\nFIRST, SECOND", True, False, "changes"),
    commit("HEAD~2", "+LIMIT = 40", True, False, "changes"),
    commit("HEAD~2", "+++ b/src/app.py", True, False, "changes"),
    commit("HEAD~2", "FIRST, SECOND = 1, 2", None, None, "may hold secrets: .env"),
    commit("HEAD~2", HIDDEN, None, None, "may hold secrets: .env"),
    commit("HEAD~2", "The Tester", None, None, "neither says nor changes it"),
    commit("HEAD~1", "never written", None, None, "cut after"),
    commit("HEAD", "Say nothing", True, False, 'commit HEAD says "Say nothing"'),
    commit("HEAD", "Nothing differs.", False, True, "neither says nor changes"),
    commit("HEAD", "LIMIT = 40", False, True, 'commit HEAD neither says nor changes "LIMIT = 40"'),
    commit("HEAD", "Say", None, None, "too short to prove anything"),
    commit("HEAD~9", "whatever", False, None, "there is no commit HEAD~9"),
    commit("0123456789", "whatever", False, None, "there is no commit 0123456789"),
    commit("--output=x", "whatever", False, None, "--output=x is not the name of one commit"),
    commit("HEAD..HEAD~1", "whatever", False, None, "not the name of one commit"),
    commit(":/Raise", "whatever", False, None, "not the name of one commit"),
    commit("HEAD\0", "whatever", False, None, "not the name of one commit"),
    commit("$(id)", "whatever", False, None, "not the name of one commit"),
    memory("m0", "bounded, number 0", True, 'the memory\'s entry m0 holds "bounded, number 0"'),
    memory("m11", "Retries were bounded", True, "but for its white space"),
    memory("m3", "long-queue", True, 'holds "long-queue"'),
    memory("m3", "bounded, number 4", False, "the memory's entry m3 does not hold"),
    memory("m99", "bounded, number", False, "the memory has no entry m99"),
    memory("m; m0 holds it", "bounded, number", False, 'no entry "m; m0 holds it"'),
    memory("m\0\n", "bounded, number", False, 'no entry "m\\u0000\\n"'),
    memory("m0", "number", None, "too short to prove anything"),
    web("https://docs.example/api/v2", "deprecated since 2.1", True, False, 'since 2.1" but for its white space'),
    web("https://docs.example/api/v2/", "since 2.1.", True, False, 'was shown, and says "since 2.1."'),
    web("https://docs.example/api/v2#calls", "since 2.1.", True, False, "was shown, and says"),
    web("https://far.example/page", "Far away", None, None, "too short"),
    web("https://far.example/page", "Far away from", True, False, "https://far.example/page was shown, and says"),
    web(
        "https://short.example/1",
        "Far away from",
        True,
        False,
        "/1, which leads to https://far.example/page, was shown",
    ),
    web("https://blog.example/a", "it is safe.", True, False, "was shown, and says"),
    web("https://blog.example/b", "Nothing new here.", True, False, "was shown, and says"),
    web("https://docs.example/api/v2", "it was removed", False, None, "as it was shown, does not say"),
    web("https://docs.example/api/v2", "docs.example/api/v2", False, None, "as it was shown, does not say"),
    web("https://shop.example/find?q=it-is-all-safe", "it-is-all-safe", False, None, "does not say"),
    web("https://docs.example/api", "deprecated", None, None, "no web tool of this conversation has shown"),
    web("https://docs.example/", "it is safe.", None, None, "no web tool"),
    web("https://docs.example/named", "It is safe.", None, None, "no web tool"),
    web("https://docs.example/asked", "It is safe.", None, None, "no web tool"),
    web("https://plain.example/a", "It is plainly safe.", None, None, "no web tool"),
    web("https://blog.example/a", "deprecated", None, None, "what a search has shown of it does not say"),
    web("https://blog.example/b", "it is safe.", None, None, "what a search has shown of it does not say"),
    web("https://docs.example/read", "said this there", None, None, "no web tool"),
    web("https://docs.example/gone", "not there any more", None, None, "no web tool"),
    web("https://docs.example/refused", "refused in words", None, None, "no web tool"),
    web("https://docs.example/.*", "deprecated", None, None, "no web tool"),
    web("https://unseen.example/", "It is safe.", None, None, "no web tool"),
    web("It found", "It is safe.", None, None, 'has shown "It found"'),
]
IDS = [f"{kind}-{'-'.join(filter(None, given.values()))[:60]!r}" for kind, given, *_ in ROWS]


def looked(place: ClaimContext, kind: str, given: dict[str, str], *, absent: bool = False) -> LookupResult:
    return look_up_claim(RepositoryClaim.model_validate({"kind": kind, "absent": absent, **given}), place, SHOWN)


@pytest.mark.few(12, ci=32)
@pytest.mark.parametrize(("kind", "given", "holds", "absent", "saw"), ROWS, ids=IDS)
def test_what_is_claimed_is_looked_up(
    place: ClaimContext, kind: str, given: dict[str, str], holds: bool | None, absent: bool | None, saw: str
) -> None:
    found, opposite = looked(place, kind, given), looked(place, kind, given, absent=True)
    assert saw in found.saw
    assert (found.holds, opposite.holds) == (holds, absent), found.saw
    assert opposite.saw == found.saw and opposite.claim.absent
    assert found.saw.splitlines() == [found.saw]
    assert CANARY not in found.saw and HIDDEN not in found.saw


def test_the_table_has_each_kind_that_holds_and_that_does_not() -> None:
    assert {row[0] for row in ROWS if row[2] is True} == {row[0] for row in ROWS if row[2] is False} == set(ClaimKind)


def test_a_commit_without_a_parent_is_looked_up(place: ClaimContext) -> None:
    found = looked(place, "commit", {"revision": "HEAD~3", "text": "Call `frobnicate`"})
    assert (found.holds, found.saw) == (True, 'commit HEAD~3 changes "Call `frobnicate`"')


def test_what_stands_only_beside_a_change_is_not_changed(place: ClaimContext, repository: Repository) -> None:
    """A commit without secret files in it, so that all of it is shown."""
    root, workshop = repository.root, repository.workshop
    workshop.write(root, {"poem.txt": "roses\nviolets\nsugar\nroses\n"})
    workshop.commit(root, "Poem")
    workshop.write(root, {"poem.txt": "roses\nviolets are blue\nsugar\nroses\n"})
    at = replace(place, ground=replace(place.ground, commit=workshop.commit(root, "More")))
    rows = {"violets are blue": True, "roses\nviolets are": True, "sugar\nroses": False, "blue roses": False}
    for words, holds in rows.items():
        assert looked(at, "commit", {"revision": "HEAD", "text": words}).holds is holds, words
    assert looked(place, "commit", {"revision": "HEAD", "text": "Say nothing"}).holds  # HEAD is the base's


def test_a_commit_beside_the_history_is_not_looked_at(place: ClaimContext, repository: Repository) -> None:
    given = {"revision": repository.git("rev-parse", "side"), "text": CANARY}
    found = looked(place, "commit", given)
    assert found.holds is False and "it is not in the history" in found.saw
    assert looked(place, "commit", given, absent=True).holds is None


@pytest.mark.parametrize(
    ("kind", "given", "saw"),
    [
        ("commit", {"revision": "HEAD", "text": "whatever"}, "there is no history here"),
        ("memory", {"entry": "m1", "text": "whatever"}, "there is no memory here"),
    ],
)
def test_without_history_or_memory_nothing_can_be_told(
    place: ClaimContext, kind: str, given: dict[str, str], saw: str
) -> None:
    bare = ClaimContext(ToolContext(files=place.ground.files))
    found = looked(bare, kind, given)
    assert (found.holds, found.saw) == (None, saw)
    assert looked(bare, kind, given, absent=True).holds is None


def test_a_persons_own_patterns_hide_files(place: ClaimContext) -> None:
    hidden = replace(place, ground=replace(place.ground, secret=("src/**",)))
    assert looked(hidden, "text", {"path": "src/app.py", "text": "LIMIT = 40"}).holds is None
    for path in ("", "src", "src/app.py"):
        found = looked(hidden, "symbol", {"name": "Shop", "path": path})
        assert found.holds is None and "may hold secrets" in found.saw


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        ("symbol", {"name": "Shop"}),
        ("symbol", {"name": "nobody"}),
        ("commit", {"revision": "HEAD", "text": "whatever"}),
    ],
)
def test_nobody_is_blamed_when_the_work_is_stopped(place: ClaimContext, kind: str, given: dict[str, str]) -> None:
    cancel = threading.Event()
    cancel.set()
    stopped = replace(place, ground=replace(place.ground, cancel=cancel))
    assert looked(stopped, kind, given).holds is None


@pytest.mark.parametrize("kind", ["damaged", "forbidden"])
def test_nobody_is_blamed_for_a_memory_that_cannot_be_read(place: ClaimContext, tmp_path: Path, kind: str) -> None:
    file = tmp_path / "entries.jsonl"
    if kind == "damaged":
        file.write_text("not JSON\n")
    else:
        file.mkdir()  # whoever may read everything cannot read that either
    at = replace(place, memory=FileMemory(file))
    for absent in (False, True):
        found = looked(at, "memory", {"entry": "m1", "text": "bounded, number"}, absent=absent)
        assert found.holds is None and found.saw.startswith("the memory cannot be read: ")


LONGEST: list[tuple[bool | None, dict[str, Any]]] = [
    (False, {"kind": "file", "path": "x/" * 500}),
    (False, {"kind": "symbol", "name": "(" * 200}),
    (False, {"kind": "symbol", "name": "." * 200}),
    (False, {"kind": "symbol", "name": "::" * 100}),
    (False, {"kind": "text", "path": "src/app.py", "text": "((a*)*)*" * 250}),
    (False, {"kind": "text", "path": "src/app.py", "text": "\0" * 2000}),
    (False, {"kind": "commit", "revision": "^" * 200, "text": "x" * 2000}),
    (False, {"kind": "commit", "revision": "HEAD" + "^" * 196, "text": "whatever"}),
    (False, {"kind": "memory", "entry": "a\u2028" * 100, "text": "\0" * 2000}),
    (None, {"kind": "web", "url": "https://" + "a.," * 600, "text": "\x1b[2J\x1b[2J"}),
    (None, {"kind": "web", "url": "////", "text": "whatever"}),
    (None, {"kind": "web", "url": "#", "text": "whatever"}),
]


@pytest.mark.parametrize(("holds", "given"), LONGEST, ids=[json.dumps(one)[:40] for _, one in LONGEST])
def test_whatever_is_written_is_answered_in_one_short_line(
    place: ClaimContext, holds: bool | None, given: dict[str, Any]
) -> None:
    found = look_up_claim(RepositoryClaim.model_validate(given), place, SHOWN)
    assert found.holds is holds
    assert len(found.saw) <= 1001 and found.saw.isprintable()


def test_what_was_not_shown_is_held_against_nobody(place: ClaimContext) -> None:
    """One who has no web tool may know a page all the same."""
    claim = RepositoryClaim(kind=ClaimKind.WEB, url="https://docs.example/api/v2", text="deprecated since 2.1")
    assert look_up_claim(claim, place).holds is None

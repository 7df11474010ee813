"""The items that the engine looks up, and the looking up in real files of each language."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from proofstone.agents.tools.tool_context import ToolContext, ToolDeadline
from proofstone.agents.tools.tree import FileTree
from proofstone.common.models import Verdict
from proofstone.common.risk import is_docs_only
from proofstone.supervision.interfaces import build_outline, find_changed_signatures, look_up_facts
from proofstone.supervision.models.understanding import (
    AnalysisItem,
    ArtifactCitation,
    FileImpact,
    ImpactAnalysis,
    InterfaceClaim,
)
from proofstone.supervision.rules.evidence import (
    FileOutline,
    LookupFacts,
    TaskFileScope,
    find_changed_interfaces,
    list_lookups,
    verify_looked_up_items,
)
from tests.rows import each_row

SOURCES = {
    "src/store.py": (
        "from lib import borrowed\n\n\n@cached\nclass Store(Base):\n    size: int = 3\n\n"
        "    def __init__(self, path: Path) -> None:\n        self.path = path\n\n"
        "    async def get(self, key: str, *, wait: float = 1.0) -> Value:  # slow\n        return borrowed(key)\n\n"
        "    def _clear(self): ...\n\n\nLIMIT: int = 30\n"
    ),
    "src/store.ts": (
        "export class Store {\n  constructor(private path: string) {}\n"
        "  async get(key: string, wait?: number): Promise<Value> { return this.read(key) }\n}\n"
        "export const make = async (path: string): Promise<Store> => new Store(path)\n"
        "function hidden(a: number) { return a }\n"
    ),
    "src/store.js": "module.exports = { make, twice }\nfunction make(path) {}\nconst twice = a => a * 2\n",
    "src/store.go": (
        "package store\n\ntype Store struct{ path string }\n\n"
        "func (s *Store) Get(ctx context.Context, key, other string) (Value, error) {\n\treturn s.read(key)\n}\n\n"
        "func hidden() {}\n"
    ),
    "src/store.rs": (
        "pub struct Store<'a> { path: &'a str }\n\nimpl<'a> Store<'a> {\n"
        "    pub fn get<K: Hash>(&'a self, key: &K) -> Result<Value, Error> where K: Eq {\n        todo!()\n    }\n"
        "    fn hidden(&self) {}\n}\n"
    ),
    "src/Store.java": (
        "public class Store {\n  public Store(String path) {}\n"
        "  @Override public <T> List<T> get(final String key, int... at) throws Lost { return null; }\n"
        "  public List<String> get(String key) { return null; }\n  private void hidden() {}\n}\n"
    ),
    "src/store.zig": "pub fn get(key: []const u8) !Value {}\n",
    "src/store.rb": "def get(key)\nend\n",
    "docs/design.md": "# Design\n",
    ".env": "KEY=1\n",
}


@pytest.fixture
def tree(tmp_path: Path) -> FileTree:
    for name, text in SOURCES.items():
        path = tmp_path / "files" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return FileTree(ToolContext(files=tmp_path / "files"))


def deadline(seconds: float = 30.0) -> ToolDeadline:
    return ToolDeadline(seconds, threading.Event())


def verdict(
    tree: FileTree, item: AnalysisItem, task: TaskFileScope | None = None, seconds: float = 30.0, **parts: object
) -> tuple[Verdict, str]:
    analysis = ImpactAnalysis.model_validate({"task_understanding": "It is to be done.", **parts})
    facts = look_up_facts(tree, list_lookups(analysis), deadline(seconds))
    [found] = [one for one in verify_looked_up_items(analysis, facts, task or TaskFileScope()) if one.item is item]
    return found.verdict, found.detail


# RC-03


@pytest.mark.parametrize(
    ("cited", "expected"),
    [
        ("docs/design.md", Verdict.PASS),
        ("./docs/design.md:12", Verdict.PASS),
        ("docs/design.md#store", Verdict.PASS),
        ("src", Verdict.PASS),
        ("D-1", Verdict.PASS),
        ("D-9", Verdict.FAIL),
        ("docs/gone.md", Verdict.FAIL),
        ("docs/design.md/x", Verdict.FAIL),
        ("../outside.md", Verdict.UNVERIFIABLE),
        (".env", Verdict.UNVERIFIABLE),
    ],
)
@pytest.mark.seed("continuity", "rc-engine-items")
def test_what_is_cited_is_there(tree: FileTree, cited: str, expected: Verdict) -> None:
    upstream = (ArtifactCitation(artifact=cited, says="so"),)
    assert verdict(tree, AnalysisItem.UPSTREAM, TaskFileScope(upstream=("D-1",)), upstream=upstream)[0] is expected


def test_to_cite_nothing_holds_only_for_a_task_that_rests_on_nothing(tree: FileTree) -> None:
    assert verdict(tree, AnalysisItem.UPSTREAM)[0] is Verdict.PASS
    assert verdict(tree, AnalysisItem.UPSTREAM, TaskFileScope(upstream=("D-1",)))[0] is Verdict.FAIL


# RC-04


@pytest.mark.parametrize(
    ("declared", "listed", "expected", "detail"),
    [
        (["src/store.py"], ["src/store.py"], Verdict.PASS, ""),
        (["src/store.py", "src/new.py"], ["./src/store.py", "src/new.py+"], Verdict.PASS, ""),
        (["src/store.py", "src/new.py"], ["src/store.py", "src/new.py"], Verdict.PASS, ""),
        (["src/*.py"], ["src/store.py", "src/new.py+"], Verdict.PASS, ""),
        (["src"], ["src/store.py"], Verdict.PASS, ""),
        (["src/store.py"], ["src/store.py", "src/__init__.py+"], Verdict.PASS, ""),
        (["src/store.py", "src/store.go"], ["src/store.py"], Verdict.FAIL, "does not list src/store.go"),
        (["src/store.py"], ["src/store.py", "src/new.py+"], Verdict.FAIL, "the task does not create it"),
        (["src/store.py"], ["src/store.py", "src/typo.py"], Verdict.FAIL, "src/typo.py does not exist"),
        (["src/store.py"], ["src/store.py+"], Verdict.FAIL, "but already exists"),
        (["src/store.py"], [], Verdict.FAIL, "does not list"),
        ([".env"], [".env"], Verdict.UNVERIFIABLE, "it is unknown"),
    ],
)
def test_files_are_there_or_new_by_the_plan_and_all_are_listed(
    tree: FileTree, declared: list[str], listed: list[str], expected: Verdict, detail: str
) -> None:
    files = tuple(FileImpact(path=one.removesuffix("+"), new=one.endswith("+")) for one in listed)
    found, why = verdict(tree, AnalysisItem.FILES, TaskFileScope(declared=tuple(declared)), files=files)
    assert found is expected and detail in why


# RC-05


@pytest.mark.parametrize(
    ("path", "symbol", "signature", "expected"),
    [
        ("src/store.py", "Store.get", "async def get(self, key: str, *, wait: float = 1.0) -> Value", Verdict.PASS),
        ("src/store.py", "Store.get()", "get(key, *, wait)", Verdict.PASS),
        ("src/store.py", "Store", "Store(path: Path)", Verdict.PASS),
        ("src/store.py", "Store", "class Store(Base)", Verdict.PASS),
        ("src/store.py", "LIMIT", "LIMIT: int", Verdict.PASS),
        ("src/store.py", "Store.get", "get(key, timeout)", Verdict.FAIL),
        ("src/store.py", "Store", "Store(path, size)", Verdict.FAIL),
        ("src/store.py", "Store.put", "put(key)", Verdict.FAIL),
        ("src/store.py", "borrowed", "borrowed(key)", Verdict.FAIL),
        ("src/store.py", "size", "size: int", Verdict.UNVERIFIABLE),
        ("src/store.ts", "Store.get", "get(key: string, wait?: number): Promise<Value>", Verdict.PASS),
        ("src/store.ts", "make", "make(path: string) => Promise<Store>", Verdict.PASS),
        ("src/store.ts", "Store", "new Store(path: string)", Verdict.PASS),
        ("src/store.ts", "Store.get", "get(key: number)", Verdict.FAIL),
        ("src/store.ts", "absent", "absent()", Verdict.FAIL),
        ("src/store.js", "twice", "twice(a)", Verdict.PASS),
        ("src/store.js", "make", "make(path, size)", Verdict.FAIL),
        (
            "src/store.go",
            "Store.Get",
            "Get(ctx context.Context, key string, other string) (Value, error)",
            Verdict.PASS,
        ),
        ("src/store.go", "(*Store).Get", "func (s *Store) Get(ctx, key, other)", Verdict.PASS),
        ("src/store.go", "Get", "Get(ctx context.Context, key string) (Value, error)", Verdict.FAIL),
        ("src/store.go", "Store.Put", "Put()", Verdict.FAIL),
        ("src/store.rs", "Store::get", "pub fn get<K: Hash>(&self, key: &K) -> Result<Value, Error>", Verdict.PASS),
        ("src/store.rs", "Store::get", "fn get(&self, key: K)", Verdict.FAIL),
        ("src/store.rs", "Store::put", "fn put(&self)", Verdict.FAIL),
        ("src/Store.java", "Store.get", "<T> List<T> get(String key, int... at)", Verdict.PASS),
        ("src/Store.java", "Store.get", "List<String> get(String key)", Verdict.PASS),
        ("src/Store.java", "Store", "Store(String path)", Verdict.PASS),
        ("src/Store.java", "Store.get", "get(int key)", Verdict.FAIL),
        ("src/store.zig", "get", "get(key)", Verdict.UNVERIFIABLE),
        ("src/store.rb", "get", "get(key)", Verdict.UNVERIFIABLE),
        ("src/gone.py", "get", "get(key)", Verdict.FAIL),
        (".env", "KEY", "KEY", Verdict.UNVERIFIABLE),
    ],
)
@pytest.mark.seed("continuity", "rc-engine-items")
def test_signatures_are_as_claimed(tree: FileTree, path: str, symbol: str, signature: str, expected: Verdict) -> None:
    interfaces = (InterfaceClaim(path=path, symbol=symbol, signature=signature),)
    assert verdict(tree, AnalysisItem.INTERFACES, interfaces=interfaces)[0] is expected


def test_what_stands_there_is_told(tree: FileTree) -> None:
    interfaces = (InterfaceClaim(path="src/store.go", symbol="Store.Get", signature="Get(key string)"),)
    assert verdict(tree, AnalysisItem.INTERFACES, interfaces=interfaces)[1] == (
        "Store.Get in src/store.go is not as claimed: it takes 3 parameters, not 1; the file has "
        "`func (s *Store) Get(ctx context.Context, key, other string) (Value, error)`"
    )


@pytest.mark.parametrize(
    ("path", "symbol", "expected"),
    [
        ("src/store.py", "Store.put", Verdict.PASS),
        ("src/new.py", "put", Verdict.PASS),
        ("src/store.py", "Store.get", Verdict.FAIL),
        ("src/store.zig", "put", Verdict.UNVERIFIABLE),
    ],
)
def test_what_is_said_to_be_new_is_not_there_yet(tree: FileTree, path: str, symbol: str, expected: Verdict) -> None:
    interfaces = (InterfaceClaim(path=path, symbol=symbol, signature="put(key)", new=True),)
    assert verdict(tree, AnalysisItem.INTERFACES, interfaces=interfaces)[0] is expected


def test_functions_that_change_are_defined_and_nothing_named_is_no_pass(tree: FileTree) -> None:
    def of(*functions: str, path: str = "src/store.py") -> Verdict:
        return verdict(tree, AnalysisItem.INTERFACES, files=(FileImpact(path=path, functions=functions),))[0]

    assert of("Store.get", "LIMIT") is Verdict.PASS
    assert of("Store.get", "Store.put") is Verdict.FAIL
    assert of() is Verdict.UNVERIFIABLE
    assert is_docs_only(("docs/design.md",)) and of(path="docs/design.md") is Verdict.PASS


def test_what_fails_is_not_hidden_by_what_nobody_knows(tree: FileTree) -> None:
    interfaces = tuple(
        InterfaceClaim(path=path, symbol="put", signature="put()") for path in ("src/store.zig", "src/store.go")
    )
    assert verdict(tree, AnalysisItem.INTERFACES, interfaces=interfaces) == (
        Verdict.FAIL,
        "src/store.go defines no put",
    )


def test_without_time_or_facts_nothing_passes(tree: FileTree) -> None:
    parts: dict[str, Any] = {
        "upstream": (ArtifactCitation(artifact="docs/design.md", says="so"),),
        "files": (FileImpact(path="src/store.py", functions=("Store",)),),
        "interfaces": (InterfaceClaim(path="src/store.py", symbol="Store", signature="Store(path)"),),
    }
    for item in (AnalysisItem.UPSTREAM, AnalysisItem.FILES, AnalysisItem.INTERFACES):
        assert verdict(tree, item, seconds=0.0, **parts)[0] is Verdict.UNVERIFIABLE
    analysis = ImpactAnalysis.model_validate({"task_understanding": "It is.", **parts})
    assert {one.verdict for one in verify_looked_up_items(analysis, LookupFacts(), TaskFileScope())} == {
        Verdict.UNVERIFIABLE
    }


# Interfaces that a change has changed


def outline(path: str, text: str | None = None) -> FileOutline:
    found = build_outline(path, (SOURCES[path] if text is None else text).encode())
    assert found is not None
    return found


@each_row(
    ("path", "public", "private"),
    [
        ("src/store.py", "Store Store.__init__ Store.get LIMIT", "Store._clear"),
        ("src/store.ts", "Store Store.constructor Store.get make", "hidden"),
        ("src/store.js", "make twice", ""),
        ("src/store.go", "Store Store.Get", "hidden"),
        ("src/store.rs", "Store Store.get", "Store.hidden"),
        ("src/Store.java", "Store Store.Store Store.get Store.get", "Store.hidden"),
    ],
)
def test_what_others_may_use_is_known_by_language(path: str, public: str, private: str) -> None:
    standing = outline(path).definitions
    assert [one.symbol for one in standing if one.is_public] == public.split()
    assert [one.symbol for one in standing if not one.is_public] == private.split()


@each_row(
    ("path", "old", "new", "symbol", "public"),
    [
        ("src/store.py", "key: str, *", "key: str, rate_config: Rate, *", "Store.get", True),
        ("src/store.py", "def _clear(self)", "def _clear(self, all)", "Store._clear", False),
        ("src/store.py", "async def get", "async def fetch", "Store.get", True),
        ("src/store.ts", "wait?: number", "wait: number", "Store.get", True),
        ("src/store.ts", "hidden(a: number)", "hidden(a: string)", "hidden", False),
        ("src/store.go", "key, other string", "key string", "Store.Get", True),
        ("src/store.rs", "-> Result<Value, Error>", "-> Value", "Store.get", True),
        ("src/Store.java", "List<String> get(String key)", "List<String> get(int key)", "Store.get", True),
    ],
)
def test_a_changed_header_is_a_changed_interface(path: str, old: str, new: str, symbol: str, public: bool) -> None:
    after = outline(path, SOURCES[path].replace(old, new))
    [changed] = find_changed_interfaces(path, outline(path), after)
    assert (changed.symbol, changed.public, changed.planned) == (symbol, public, False)
    [planned] = find_changed_interfaces(path, outline(path), after, (f"`{symbol}` takes something else",))
    assert planned.planned
    for impact in ("none", f"{symbol} stays as it is"):
        [unplanned] = find_changed_interfaces(path, outline(path), after, (impact,))
        assert not unplanned.planned


def test_bodies_layout_comments_and_additions_change_no_interface() -> None:
    text = SOURCES["src/store.py"].replace("return borrowed(key)", "return 1").replace("= 30", "= 40")
    text = text.replace("key: str, *, wait", "key: str,  # here\n *,\n wait") + "\n\ndef more(): ...\n"
    assert find_changed_interfaces("src/store.py", outline("src/store.py"), outline("src/store.py", text)) == ()


def test_with_a_file_goes_all_that_stood_in_it() -> None:
    gone = find_changed_interfaces("src/store.go", outline("src/store.go"), None)
    assert [one.symbol for one in gone] == ["Store", "Store.Get", "hidden"]


def test_what_cannot_be_compared_has_no_outline() -> None:
    assert build_outline("src/store.zig", b"pub fn get() void {}") is None
    assert build_outline("src/store.rb", b"def get\nend\n") is None
    assert build_outline("src/half.py", b"def get(:\n") is None


@each_row(
    ("path", "before", "after", "symbols"),
    [
        ("a.py", "def f(a): ...\n", "def f(a, b): ...\n", ["f"]),
        ("a.py", "def f(a): ...\n", "def f(a):\n    return 1\n", []),
        ("a.py", "def f(a): ...\n", None, ["f"]),
        ("a.py", None, "def f(a): ...\n", []),
        ("a.py", "def f(a): ...\n", "def f(a, :\n", None),
        ("a.zig", "fn f() void {}", "fn f(a: u8) void {}", None),
        ("a.md", "one", "two", []),
        ("a.json", "{}", "[]", []),
        ("a.png", "\0", "\0\0", []),
    ],
)
def test_what_cannot_be_compared_is_not_called_unchanged(
    path: str, before: str | None, after: str | None, symbols: list[str] | None
) -> None:
    old, new = (None if text is None else text.encode() for text in (before, after))
    found = find_changed_signatures(path, old, new)
    assert (None if found is None else [one.symbol for one in found]) == symbols


@pytest.mark.seed("continuity", "rc-03-tasks")
@pytest.mark.parametrize(
    ("artifact", "says", "expected"),
    [
        ("task-02", "it makes the id", Verdict.PASS),
        ("Task 2: Create the id", "it is there", Verdict.PASS),
        ("task 2: create  the id", "it is there", Verdict.PASS),
        ("Task 2", "Create the id: it is there", Verdict.PASS),  # a line of text is split at its first colon
        ("Task 3", "Create the id: it is there", Verdict.FAIL),
        ("task-03", "it makes the id", Verdict.FAIL),
    ],
)
def test_a_task_is_cited_by_its_id_or_its_name(tree: FileTree, artifact: str, says: str, expected: Verdict) -> None:
    upstream = (ArtifactCitation(artifact=artifact, says=says),)
    scope = TaskFileScope(upstream=("Task 2: Create the id",), upstream_ids=("task-02",))
    assert verdict(tree, AnalysisItem.UPSTREAM, scope, upstream=upstream)[0] is expected

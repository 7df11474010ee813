"""Risk by path and content, as one table; any red makes a change Large."""

from __future__ import annotations

from proofstone.common.models import ChangeKind
from proofstone.common.risk import PathChange, Risk, assess_risk, assess_size, is_docs_only
from tests.rows import each_row

MODIFIED, ADDED = ChangeKind.MODIFIED, ChangeKind.ADDED

CASES: list[tuple[str, ChangeKind, str, Risk, str]] = [
    ("src/auth/views.py", MODIFIED, "", Risk.RED, "authentication and authorisation"),
    ("src/login.ts", ADDED, "", Risk.RED, "authentication and authorisation"),
    ("src/crypto.go", MODIFIED, "", Risk.RED, "cryptography"),
    ("app/billing/invoice.rb", MODIFIED, "", Risk.RED, "payments"),
    ("db/migrations/0001_init.py", ADDED, "", Risk.RED, "migrations"),
    ("src/a.py", MODIFIED, "    shutil.rmtree(path)", Risk.RED, "deletion of data"),
    ("src/a.py", MODIFIED, '    cursor.execute("DELETE FROM users")', Risk.RED, "deletion of data"),
    ("src/a.js", MODIFIED, "fs.rmSync('x')", Risk.RED, "deletion of data"),
    ("src/a.py", MODIFIED, "lock = threading.Lock()", Risk.RED, "concurrency"),
    ("src/a.go", MODIFIED, "\tvar mu sync.Mutex", Risk.RED, "concurrency"),
    ("src/a.py", MODIFIED, "digest = hashlib.sha256(x)", Risk.RED, "cryptography"),
    ("src/a.py", MODIFIED, "# threading.Lock would be too slow", Risk.YELLOW, "existing logic"),
    ("src/a.py", MODIFIED, "x = 1", Risk.YELLOW, "existing logic"),
    ("src/author.py", MODIFIED, "", Risk.YELLOW, "existing logic"),
    ("requirements.txt", MODIFIED, "a==1", Risk.YELLOW, "existing logic"),
    ("src/a.py", ADDED, "x = 1", Risk.GREEN, "new file"),
    ("tests/test_login.py", MODIFIED, "threading.Lock()", Risk.GREEN, "tests"),
    ("src/login.test.ts", MODIFIED, "", Risk.GREEN, "tests"),
    ("docs/auth.md", MODIFIED, "", Risk.GREEN, "documentation"),
    ("config.yaml", MODIFIED, "", Risk.GREEN, "configuration"),
]


@each_row(("path", "kind", "line", "risk", "reason"), CASES)
def test_a_file_has_this_risk(path: str, kind: ChangeKind, line: str, risk: Risk, reason: str) -> None:
    change = PathChange(path=path, kind=kind, added=(line,))
    found = assess_risk(change)
    assert (found.risk, found.reason) == (risk, reason)
    assert assess_size([change]) == ("Large" if risk is Risk.RED else "Standard")


def test_rewriting_a_public_definition_is_red_and_adding_one_is_not() -> None:
    old, new = "export function f(a: number) {", "export function f(a: string) {"
    rewritten = PathChange(path="src/a.ts", kind=MODIFIED, added=(new,), removed=(old,))
    assert assess_risk(rewritten).reason == "public API"
    assert assess_risk(PathChange(path="src/a.ts", kind=MODIFIED, added=(new,))).risk is Risk.YELLOW
    moved = PathChange(path="src/a.ts", kind=MODIFIED, added=(old,), removed=(old,))
    assert assess_risk(moved).risk is Risk.YELLOW


def test_one_red_file_makes_the_change_large() -> None:
    green = PathChange(path="docs/a.md", kind=MODIFIED)
    assert assess_size([]) == "Standard"
    assert assess_size([green, PathChange(path="src/auth.py", kind=MODIFIED)]) == "Large"


@each_row(
    ("paths", "holds"),
    [
        (["README.md", "docs/img/a.png"], True),
        (["LICENSE"], True),
        (["README.md", "src/a.py"], False),
        (["requirements.txt"], False),
        (["CMakeLists.txt"], False),
        (["docs/conf.py"], False),
        (["tests/data/a.md"], False),
        (["license_check.py"], False),
        ([], False),
    ],
)
def test_documentation_only(paths: list[str], holds: bool) -> None:
    assert is_docs_only(paths) is holds

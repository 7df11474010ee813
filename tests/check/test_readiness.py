"""Readiness of a Large change: secrets, swallowed errors, silent error paths, in added lines only."""

from __future__ import annotations

import sysconfig
from pathlib import Path

import pytest

from proofstone.check.readiness import find_readiness_problems
from tests.rows import each_row

AWS = "AKIA" + "QWERTYUIOPASDFGH"
GITHUB = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
RANDOM = "q7Hk2Lm9Zx4Vb8Nc1Td6Wf3Rg5Yj0PsQaE"


def types_of(path: str, content: str, added: set[int] | None = None) -> list[str]:
    lines = [(number, text) for number, text in enumerate(content.splitlines(), 1) if not added or number in added]
    return [kind for kind, _ in find_readiness_problems(path, lines, content.encode())]


SECRETS = {
    "aws": ("src/a.py", f'KEY = "{AWS}"'),
    "github": ("src/a.py", f'x = "{GITHUB}"'),
    "private key": ("deploy.pem", "-----BEGIN RSA " + "PRIVATE KEY-----"),
    "password": ("src/a.py", 'password = "hunter2horse9battery"'),
    "token": ("src/a.py", f'token = "{RANDOM}"'),
    "aws in a test": ("tests/test_a.py", f'KEY = "{AWS}"'),
}


@each_row(("path", "line"), SECRETS.values())
def test_a_secret_is_found_and_never_repeated(path: str, line: str) -> None:
    found = find_readiness_problems(path, [(7, line)], line.encode())
    assert {kind for kind, _ in found} == {"secrets"}
    assert {item.line for _, item in found} == {7}
    assert not any(secret in item.message for _, item in found for secret in (AWS, GITHUB, RANDOM, "hunter2"))


HARMLESS = {
    "a digest": ("src/a.py", 'sha = "da39a3ee5e6b4b0d3255bfef95601890afd80709"'),
    "integrity": ("package-lock.json", f'"integrity": "sha512-{RANDOM}=="'),
    "from the environment": ("src/a.py", 'password = os.environ["PASSWORD"]'),
    "a placeholder": ("src/a.py", 'password = "changeme-please"'),
    "a call": ("src/a.py", "password = get_password()"),
    "a template": ("a.yaml", "password: ${PASSWORD}"),
    "a password in a test": ("tests/test_a.py", 'password = "hunter2horse9battery"'),
    "a token's name": ("src/a.py", 'token = "the_name_of_a_token_in_lower_case_words"'),
    "allowed by a pragma": ("src/a.py", f'KEY = "{AWS}"  # pragma: allowlist secret'),
    "a very long line": ("src/a.py", f'KEY = "{AWS}"' + " " * 5000),
}


@each_row(("path", "line"), HARMLESS.values())
def test_what_is_no_secret_does_not_alarm(path: str, line: str) -> None:
    assert find_readiness_problems(path, [(1, line)], line.encode()) == ()


SWALLOWED = {
    "python pass": ("a.py", "try:\n    f()\nexcept ValueError:\n    pass\n"),
    "python ellipsis": ("a.py", "try:\n    f()\nexcept Exception as e:\n    ...\n"),
    "python bare": ("a.py", "try:\n    f()\nexcept:\n    x = 1\n"),
    "python broad with a comment": ("a.py", "try:\n    f()\nexcept Exception:\n    pass  # fine\n"),
    "javascript": ("a.js", "try { f() } catch (e) {}\n"),
    "typescript": ("a.ts", "try { f() } catch {}\n"),
    "go dropped": ("a.go", "package a\nfunc f() {\n\t_ = err\n}\n"),
    "go empty": ("a.go", "package a\nfunc f() {\n\tif err := g(); err != nil {\n\t}\n}\n"),
    "java": ("A.java", "class A { void f() { try { g(); } catch (Exception e) { } } }\n"),
    "ruby": ("a.rb", "begin\n  f\nrescue => e\nend\n"),
    "php": ("a.php", "<?php try { f(); } catch (E $e) {}\n"),
}


@each_row(("path", "content"), SWALLOWED.values())
def test_a_swallowed_error_is_found(path: str, content: str) -> None:
    assert types_of(path, content) == ["swallowed-exceptions"]


HANDLED = {
    "python logs": ("a.py", "try:\n    f()\nexcept ValueError:\n    log.warning('x')\n"),
    "python raises": ("a.py", "try:\n    f()\nexcept:\n    g()\n    raise\n"),
    "python import": ("a.py", "try:\n    import a\nexcept ImportError:\n    pass\n"),
    "python with a reason": ("a.py", "try:\n    f()\nexcept FileNotFoundError:\n    pass  # already gone\n"),
    "javascript with a reason": ("a.js", "try { f() } catch (e) { /* already gone */ }\n"),
    "go returns": (
        "a.go",
        "package a\nfunc f() error {\n\tif err != nil {\n\t\treturn err\n\t}\n\treturn nil\n}\n",
    ),
    "go other if": ("a.go", "package a\nfunc f() {\n\tif x > 1 {\n\t}\n}\n"),
    "ruby": ("a.rb", "begin\n  f\nrescue => e\n  raise e\nend\n"),
}


@each_row(("path", "content"), HANDLED.values())
def test_a_handled_error_does_not_alarm(path: str, content: str) -> None:
    assert types_of(path, content) == []


def test_what_was_there_before_is_not_said() -> None:
    content = "try:\n    f()\nexcept ValueError:\n    pass\nx = 1\n"
    assert types_of("a.py", content, added={5}) == []
    assert types_of("a.py", content, added={4}) == ["swallowed-exceptions"]


@pytest.mark.seed("pipeline", "tier-4")
def test_a_silent_error_path_is_said_in_high_risk_code_only() -> None:
    content = "try:\n    f()\nexcept ValueError:\n    x = None\n"
    assert types_of("src/auth/a.py", content) == ["observability"]
    assert types_of("src/a.py", content) == []


@pytest.mark.sweep
def test_the_standard_library_holds_hardly_any_secrets() -> None:
    library = Path(sysconfig.get_path("stdlib"))
    alarms = []
    for path in sorted(library.glob("*.py"))[:60]:
        lines = list(enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1))
        alarms += [
            (path.name, item.line) for kind, item in find_readiness_problems(path.name, lines, b"") if kind == "secrets"
        ]
    assert alarms == []

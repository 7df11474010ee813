from __future__ import annotations

from proofstone.common.commands import is_vacuous, loses_exit_code, proves_nothing
from tests.rows import each_row


@each_row(
    "command",
    ["true", ":", "echo done", "exit 0", "exit", "ls -la", "cat README.md", "true && echo ok", "/bin/true", "", "# x",
     "echo a; true", "cat x | cat", "printf 'ok\\n'", "true\necho ok", "ls src/x.py", "sleep 5", "echo 'a && b'",
     "pytest || true", "pytest -q || echo failed", "test -f x; true", "npm test; exit 0", "npm test; echo $?",
     "npm test\necho done", "pytest &", "test -f x && echo ok || echo no", "true || pytest", "(true)", "{ echo a; }",
     "(pytest) || true", "sudo true", "FOO=1 true", "A=1", "timeout 60 true", "env A=1 B=2 true", "echo ok > file",
     "sh -c 'exit 0'", "bash -c 'pytest || true'", "set -e\necho hi", "if pytest; then echo a; else echo b; fi",
     "for f in a b; do echo $f; done", "f() { pytest; }"],
)  # fmt: skip
def test_these_prove_nothing(command: str) -> None:
    assert is_vacuous(command)


@each_row(
    "command",
    ["pytest -q", "make test", "true && pytest", "exit 1", "test -f x", "[ -f x ]", "./check.sh", "grep -q x file",
     "cat x | grep y", "python -c 'print(1)'", "echo 'unclosed", "! true", "ls | wc -l | grep 3", "pytest || exit 1",
     "pytest || { echo bad; exit 1; }", "pytest || (echo bad; exit 1)", "pytest || exit 1; echo ok", "pytest; exit $?",
     "pytest; exit", "grep -q bad f && exit 1 || exit 0", "grep -q bad f && exit 1; exit 0", "cd web && npm test",
     "(cd web && npm test)", "test $(ls | wc -l) -eq 3", "A=$(grep x y)", "[[ -f a && -f b ]]", "bash -c 'pytest'",
     "set -e\npytest\necho done", "set -e; test -f x && npm test; echo done", "if ! pytest; then exit 1; fi; echo a",
     "for f in a b; do test -f $f; done", "until curl -f x; do sleep 1; done", "f() { pytest; }; f", "fi", "(", ")",
     "cat <<EOF | python\nassert 1\nEOF", "python - <<'E'\nx('\nE", "npm run build 2>&1 | tail -5",
     "! " * 5000 + "true", "(" * 5000, "f() { f() { true; }; }; f",
     "ls | wc -l", "cd web && ls", "test -f a; sleep 1", "case x in a) true;; esac", "&& x", "a |"],
)  # fmt: skip
def test_these_can_fail(command: str) -> None:
    assert not is_vacuous(command)


@each_row(
    ("command", "lost"),
    [
        ("npm run build 2>&1 | tail -5", True),
        ("pytest | tee log", True),
        ("set -e\npytest | cat", True),
        ("ls | grep x", False),
        ("pytest | tail -5; pytest", False),
        ("set -o pipefail; pytest | tail", False),
        ("bash -o pipefail -c 'pytest | tail'", False),
        ("bash -c 'pytest | tail'", True),
    ],
)
def test_a_pipe_reports_how_its_last_program_ended(command: str, lost: bool) -> None:
    assert loses_exit_code(command) is lost
    assert not is_vacuous(command)


@each_row("command", ["ls | wc -l", "cd web", "cd web && ls", "test -f a; sleep 1", "head x", "pytest || true"])
def test_a_plan_is_held_to_more(command: str) -> None:
    assert proves_nothing(command)
    assert not proves_nothing(f"{command}\npytest")

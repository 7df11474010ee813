from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from proofstone.plans.fields import is_clearly_command, is_command
from proofstone.plans.verify import VerifyParser
from tests.rows import each_row


def read(content: str) -> tuple[list[str], list[tuple[str, str, int]]]:
    verify = VerifyParser("task-01")
    verify.read(content, 1)
    return verify.commands, [(found.severity.value, found.rule, found.line) for found in verify.problems]


@each_row(
    "line",
    [
        'grep -c "export class Foo" src/Foo.ts', "test -f x && ./run.sh", "Rscript t.R", "MSBuild.exe", "R -e 'x()'",
        "MSBuild x.sln /t:Build", "npm run build 2>&1 | tail -5", "[ -f a ]", "! grep x y", "!grep -q x y",
        "(cd web && npm test)", "FOO=1 make", "make check", "make all", "ruff check .", "mvn clean verify",
        "cargo check", "npm run check", "git show HEAD", "pytest -k returns", "npm test -- returns nothing", "nox lint",
        "mytool", "mytool check-all --fast", "bin/test", "scripts/x.sh", "python -m pytest tests/a.py -q", "diff a b",
        "test $(ls | wc -l) -eq 3", "for f in a b; do test -f $f; done", "go test ./...", "npx tsc --noEmit",
        './gradlew test --tests "com.X is the one"', "cd web && pnpm test", "{ pytest; }", "grep größe datei.txt",
        'powershell -NoProfile -Command "if (!(Test-Path x)) { throw 1 }"', "if [ -f x ]; then exit 0; fi", "true",
        "node -e \"const m = require('./x'); process.exit(m ? 0 : 1)\"", 'A=$(grep -c x f); [ "$A" -eq 3 ]',
        "NODE_ENV=test CI=1 npm --prefix web test -- --run src/a.test.tsx && npm --prefix web run build", "echo done",
        "xcodebuild -project App.xcodeproj -scheme App build", "docker compose run --rm tests", "f() {", "~/bin/x",
        'psql $DATABASE_URL -c "\\dt"', 'find . -name "*.pyc" | grep -q .', "diff <(a) <(b)", "$PYTHON -m pytest",
        '"./my tool" --x', "bundle exec rspec spec/a_spec.rb", "test a = b", "Foo --bar baz",
        "tsc --noEmit && npm test",
    ],
)  # fmt: skip
def test_real_commands_are_never_called_prose(line: str) -> None:
    assert is_command(line)
    assert read(line) == ([line], [])


@each_row(
    "line",
    [
        "Open the page and check it looks right", "npm run build succeeds", "npm test passes", "make sure it works",
        "tsc --noEmit passes with no errors", "curl localhost:3000 returns 200", "Verify src/x.ts exists", "Manual",
        "docker-compose up -d postgres starts successfully", "Confirm --help works", "manual", "tests pass",
        "all green", "looks right", "visual check", "npm test läuft durch", "npm test 通过", "ページを開いて確認する",
        "Öffne die Seite und prüfe, ob sie richtig aussieht", "MISSING — Wave 0 must create tests/x.py",
        "All checklist items checked.", "Run test suite", "After 24 hours:", "find the bug", "test that login works",
        'Build output contains "BUILD SUCCEEDED", no errors', "Docker builds fine", "app/page.tsx exists",
        "The file src/a.py --flag is there", "verify the page", "Page loads", "it works",
        "Проверить что страница открывается",
    ],
)  # fmt: skip
def test_prose_is_an_error_with_a_suggestion(line: str) -> None:
    assert not is_command(line)
    assert read(line) == ([], [("error", "prose-verify", 1)])


def test_the_suggestion_is_the_command_that_was_meant() -> None:
    verify = VerifyParser("task-01")
    verify.read("npm run build succeeds without errors", 1)
    assert "`npm run build`" in verify.problems[0].hint


@each_row("code", ["isReady", ".env.local", "src/x.ts", "export", "@google/genai", "npm", 'href="/x"', "KEY="])
def test_a_name_quoted_in_a_sentence_is_no_command(code: str) -> None:
    assert not is_clearly_command(code)


@each_row(
    ("content", "commands"),
    [
        ("npm run build\npytest -q a.py", ["npm run build", "pytest -q a.py"]),
        ("# first\n$ pytest -q\n\n$ ruff check .", ["pytest -q", "ruff check ."]),
        ("`pytest -q a.py`", ["pytest -q a.py"]),
        ("```bash\npytest -q a.py\n```", ["pytest -q a.py"]),
        ("\n    ~~~\n    pytest -q a.py\n    ~~~\n", ["pytest -q a.py"]),
        ("- pytest -q a.py\n- ruff check .", ["pytest -q a.py", "ruff check ."]),
        ("<automated>test -f a</automated>\n<automated>grep -q x y</automated>", ["test -f a", "grep -q x y"]),
        ("test -f a &amp;&amp; b -x &lt; c &gt; &quot;d&quot;", ['test -f a && b -x < c > "d"']),
        ("<!-- the quick one -->\npytest -q a.py", ["pytest -q a.py"]),
        ('grep -q "<!-- x -->" a.html', ['grep -q "<!-- x -->" a.html']),
        ("npm run build\n  && npm test -- A", ["npm run build && npm test -- A"]),
        ("cd web\nnpm test -- A", ["set -e\ncd web\nnpm test -- A"]),
        ("A=1\nmake x", ["set -e\nA=1\nmake x"]),
        ("pytest \\\n  -q a.py\nruff check .", ["set -e\npytest \\\n  -q a.py\nruff check ."]),
        ("for f in a b; do\n  test -f $f\ndone", ["set -e\nfor f in a b; do\n  test -f $f\ndone"]),
        ("f() {\n  pytest -q\n}\nf", ["set -e\nf() {\n  pytest -q\n}\nf"]),
        ("\n    python - <<'E'\n    # why\n\n    if 1:\n        pass\n    - a\n    E\n",
         ["set -e\npython - <<'E'\n# why\n\nif 1:\n    pass\n- a\nE"]),
        ('node -e "\nconst a = 1;\n\n// it\'s\n"', ['set -e\nnode -e "\nconst a = 1;\n\n// it\'s\n"']),
    ],
)  # fmt: skip
def test_commands_as_people_lay_them_out(content: str, commands: list[str]) -> None:
    assert read(content) == (commands, [])


@each_row(
    ("content", "commands"),
    [
        ("`npm run build` succeeds", ["npm run build"]),
        ("Run `pytest -q tests/a.py`", ["pytest -q tests/a.py"]),
        ("Run pytest -q tests/a.py", ["pytest -q tests/a.py"]),
        ('All tables are there: psql $D -c "x"', ['psql $D -c "x"']),
        ("- `dart analyze lib` clean\n- `x.json` is there", ["dart analyze lib"]),
        ("```bash\npytest -q a.py\n```\n\nMust exit 0.", ["pytest -q a.py"]),
        ("Check the file:\n`test -f x`", ["test -f x"]),
        ("grep -q '&lt;' a.html", ["grep -q '&lt;' a.html"]),
        ("<automated>test -f a</automated>\n<manual>look at it</manual>", ["test -f a"]),
    ],
)
def test_what_is_not_run_is_a_warning(content: str, commands: list[str]) -> None:
    found, told = read(content)
    assert found == commands
    assert told
    assert all(severity == "warning" for severity, _, _ in told)


def test_a_command_that_is_meant_to_find_nothing_is_an_error() -> None:
    assert read("`grep -r TODO src` returns nothing") == ([], [("error", "inverted-verify", 1)])
    assert read("`tsc --noEmit` returns no errors")[0] == ["tsc --noEmit"]


def test_an_essay_that_quotes_a_command_is_not_run() -> None:
    said = "word " * 60
    assert read(f"Run `pytest -q` and then {said}") == ([], [("error", "prose-verify", 1)])


@pytest.mark.parametrize("content", ["a -x\n" * 201, "x" * 20_001])
def test_a_verify_that_is_a_program_belongs_in_a_file(content: str) -> None:
    assert read(content)[1] == [("error", "verify-too-long", 1)]


def test_lines_are_counted_through_tags_and_fences() -> None:
    assert read("\n<automated>\n\n```bash\nOpen the page\n```\n</automated>")[1] == [("error", "prose-verify", 5)]


@pytest.mark.parametrize(
    ("content", "passes"),
    [
        ("test -f there &&\n  test -f there\ntest -f there", True),
        ("test -f gone &&\n  test -f there\ntest -f there", False),
        ("cd .\ntest -f gone && true\ntest -f there", False),
        ("for f in gone there; do\n  test -f $f\ndone", False),
        ("cat <<E | grep -q gone && test -f there\nthere\nE\ntest -f there", False),
        ("cat <<E | grep -q there && test -f there\nthere\nE\ntest -f there", True),
    ],
)
def test_no_line_of_a_script_fails_unheard(tmp_path: Path, content: str, passes: bool) -> None:
    (tmp_path / "there").write_text("x")
    [script] = read(content)[0]
    assert script.startswith("set -e\n")
    assert (subprocess.run(["/bin/sh", "-c", script], cwd=tmp_path).returncode == 0) is passes


def test_lines_that_can_only_succeed_do_not_count_beside_others() -> None:
    verify = VerifyParser("task-01")
    verify.read("echo start\npytest -q a.py", 1)
    assert verify.select_conclusive() == ("pytest -q a.py",)
    verify = VerifyParser("task-01")
    verify.read("echo start", 1)
    assert verify.select_conclusive() == ("echo start",)

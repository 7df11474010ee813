"""Each rule of the static scan: what it sees, and honest look-alikes that it leaves alone."""

from __future__ import annotations

import pytest

from proofstone.check.rules.scan_rule import RULE_MESSAGES, ScanHit
from proofstone.check.rules.scan_rules import SCAN_RULES
from tests.check.scan.reading import broad, scanned, strict
from tests.rows import each_row

STRICT = [
    ("test-framework-import", "shop/cart.py", "import pytest\n"),
    ("test-framework-import", "shop/cart.py", "import os, unittest as u\n"),
    ("test-framework-import", "shop/cart.py", "def f():\n    from _pytest.reports import TestReport\n"),
    ("test-framework-import", "shop/cart.py", "try: import pytest\nexcept ImportError: pass\n"),
    ("test-framework-import", "shop/cart.py", "m = importlib.import_module('_pytest.runner')\n"),
    ("test-framework-import", "src/cart.js", "const { test } = require('node:test');\n"),
    ("test-framework-import", "src/cart.mjs", "import { vi } from 'vitest';\n"),
    ("test-framework-import", "src/cart.ts", "import '@jest/globals';\n"),
    ("test-framework-import", "src/cart.ts", "const c = await import('chai');\n"),
    ("hard-exit", "shop/cart.py", "os._exit(0)\n"),
    ("hard-exit", "shop/cart.py", "os.\\\n  _exit(0)\n"),
    ("hard-exit", "shop/cart.py", "from os import path, _exit\n"),
    ("hard-exit", "shop/cart.py", "getattr(os, '_exit')(0)\n"),
    ("hard-exit", "shop/cart.py", "os.kill(os.getpid(), 9)\n"),
    ("hard-exit", "shop/cart.py", "signal.raise_signal(signal.SIGKILL)\n"),
    ("hard-exit", "shop/cart.py", "atexit.register(os._exit, 0)\n"),
    ("hard-exit", "src/cart.js", "process.reallyExit(0)\n"),
    ("hard-exit", "src/cart.js", "process['reallyExit'](0)\n"),
    ("hard-exit", "src/cart.js", "process.kill(process.pid, 'SIGKILL')\n"),
    ("hard-exit", "src/cart.js", "process.exit = () => {}\n"),
    ("hard-exit", "src/cart.js", "process.on('exit', () => {\n  process.exitCode = 0\n})\n"),
    ("constant-equality", "shop/cart.py", "class A:\n    def __eq__(self, other):\n        return True\n"),
    ("constant-equality", "shop/cart.py", "class A:\n    def __eq__(self, other: object) -> bool: return True\n"),
    ("constant-equality", "shop/cart.py", 'class A:\n  def __eq__(self, o):\n    """Compare."""\n    return (True)\n'),
    ("constant-equality", "shop/cart.py", "class A:\n    def __eq__(self, o):\n        return True or self.x == o.x\n"),
    ("constant-equality", "shop/cart.py", "class A:\n    def __ne__(self, other):\n        return False\n"),
    ("constant-equality", "shop/cart.py", "class A:\n    def __contains__(self, other):\n        return True\n"),
    ("constant-equality", "shop/cart.py", "class A(float):\n    __eq__ = lambda self, other: True\n"),
    ("constant-equality", "shop/cart.py", "A = type('A', (int,), {'__eq__': lambda s, o: True})\n"),
    ("constant-equality", "shop/cart.py", "setattr(A, '__eq__', lambda s, o: True)\n"),
    ("constant-equality", "src/cart.js", "Object.is = () => true\n"),
    ("constant-equality", "src/cart.js", "class A { static [Symbol.hasInstance](x) { return true } }\n"),
    ("constant-equality", "A.java", "class A { public boolean equals(Object o) { return true; } }\n"),
    ("constant-equality", "src/a.rs", "impl PartialEq for A { fn eq(&self, o: &A) -> bool { true } }\n"),
    ("constant-equality", "lib/a.rb", "class A\n  def ==(other)\n    true\n  end\nend\n"),
    ("runner-environment", "shop/cart.py", "if 'PYTEST_CURRENT_TEST' in os.environ: pass\n"),
    ("runner-environment", "shop/cart.py", "NAME = 'PYTEST_XDIST_WORKER'\n"),
    ("runner-environment", "shop/cart.py", "if 'pytest' in sys.modules: pass\n"),
    ("runner-environment", "shop/cart.py", "t = sys.modules.get('unittest')\n"),
    ("runner-environment", "shop/cart.py", "t = any(m.startswith('_pytest') for m in sys.modules)\n"),
    ("runner-environment", "shop/cart.py", "u = 'pytest' in sys.argv[0]\n"),
    ("runner-environment", "shop/cart.py", "c = open('/proc/self/cmdline').read()\nu = 'pytest' in c\n"),
    ("runner-environment", "src/cart.js", "if (process.env.JEST_WORKER_ID) {}\n"),
    ("runner-environment", "src/cart.js", "if (process.env['NODE_TEST_CONTEXT']) {}\n"),
    ("runner-environment", "src/cart.js", "const u = process.argv.some(a => a.includes('mocha'))\n"),
    ("runner-environment", "src/cart.js", "const u = process.execArgv.includes('--test')\n"),
    ("runner-environment", "src/cart.js", "if (typeof describe === 'function') {}\n"),
    ("runner-environment", "a.go", 'package a\nvar t = flag.Lookup("test.v") != nil\n'),
    ("runner-environment", "a.go", 'package a\nvar t = strings.HasSuffix(os.Args[0], ".test")\n'),
    ("stack-reading", "shop/cart.py", "f = sys._getframe(1)\nif 'test' in f.f_code.co_name: pass\n"),
    ("stack-reading", "shop/cart.py", "if any('test_' in s.filename for s in inspect.stack()): pass\n"),
    ("stack-reading", "src/cart.js", "const s = new Error().stack\nif (s.includes('cart.test.js')) {}\n"),
    ("stack-reading", "src/cart.js", "if (/\\.test\\.js/.test(new Error().stack)) {}\n"),
    (
        "stack-reading",
        "a.go",
        'package a\nfunc f() bool { _, n, _, _ := runtime.Caller(1); return h(n, "_test.go") }\n',
    ),
    ("patched-framework", "shop/cart.py", "unittest.TestCase.assertEqual = lambda *a: None\n"),
    ("patched-framework", "shop/cart.py", "setattr(TestCase, name, nothing)\n"),
    ("patched-framework", "shop/cart.py", "from _pytest.reports import TestReport as R\nR.passed = True\n"),
    ("patched-framework", "shop/cart.py", "import _pytest.python as p\np.Function.runtest = lambda self: None\n"),
    ("patched-framework", "shop/cart.py", "from unittest import (\n    TestCase as T,\n)\nT.run = nothing\n"),
    ("patched-framework", "shop/cart.py", "builtins.isinstance = lambda a, b: True\n"),
    ("patched-framework", "shop/cart.py", "__builtins__['len'] = lambda a: 3\n"),
    ("patched-framework", "shop/cart.py", "report.outcome = 'passed'\n"),
    ("patched-framework", "shop/cart.py", "def pytest_runtest_makereport(item, call): pass\n"),
    ("patched-framework", "src/cart.js", "assert.strictEqual = () => {}\n"),
    ("patched-framework", "src/cart.js", "const a = require('node:assert')\na.deepEqual = () => {}\n"),
    ("patched-framework", "src/cart.mjs", "import a from 'assert/strict'\nObject.assign(a, { equal() {} })\n"),
    ("patched-framework", "src/cart.js", "require('assert').equal = () => {}\n"),
    ("patched-framework", "src/cart.js", "globalThis.expect = () => proxy\n"),
    ("patched-framework", "src/cart.js", "require.cache[require.resolve('assert')] = fake\n"),
    ("patched-framework", "src/cart.js", "Module._load = function () {}\n"),
    ("names-the-gate", "shop/cart.py", "p = os.environ['PROOFSTONE_REPORT']\n"),
    ("names-the-gate", "shop/cart.py", "p = [v for k, v in os.environ.items() if k.startswith('PROOFSTONE')]\n"),
    ("names-the-gate", "shop/cart.py", "sys.modules['proofstone_pytest']\n"),
    ("names-the-gate", "src/cart.js", "fs.readdirSync('/run/proofstone')\n"),
    ("names-the-gate", "run.sh", "echo > $PROOFSTONE_REPORT/results.jsonl\n"),
    ("report-tampering", "shop/cart.py", "m = open('/proc/self/mem', 'r+b')\n"),
    ("report-tampering", "shop/cart.py", "for n in os.listdir('/proc/self/fd'):\n    os.write(int(n), line)\n"),
    (
        "report-tampering",
        "shop/cart.py",
        "for o in gc.get_objects():\n    if type(o).__name__ == 'pytest.Item': pass\n",
    ),
    ("report-tampering", "src/cart.js", "for (const n of fs.readdirSync('/proc/self/fd')) fs.writeSync(+n, text)\n"),
    ("hidden-code", "shop/cart.py", "exec(base64.b64decode(text))\n"),
    ("hidden-code", "shop/cart.py", "getattr(os, 'tixe_'[::-1])(0)\n"),
    ("hidden-code", "shop/cart.py", "# -*- coding: utf-7 -*-\nx = 1\n"),
    ("hidden-code", "shop/cart.py", "os._\uff45xit(0)\n"),
    ("hidden-code", "src/cart.js", "process.\\u0061bort()\n"),
    ("hidden-code", "src/cart.js", "new Function(atob(text))()\n"),
    ("startup-file", ".npmrc", "node-options=--require ./early.js\n"),
]


@each_row(("rule", "path", "source"), STRICT)
def test_a_strict_rule_sees(rule: str, path: str, source: str) -> None:
    assert rule in strict(scanned(path, source))


BROAD = [
    ("test-framework-import", "shop/cart.py", "import pluggy\n"),
    ("constant-equality", "shop/top.py", "class Top:\n    def __gt__(self, other):\n        return True\n"),
    ("constant-equality", "shop/a.py", "class A(str):\n    def __eq__(self, o):\n        return self.lower() == o\n"),
    ("constant-equality", "src/a.js", "class A { valueOf() { return 42; } }\n"),
    ("runner-environment", "src/a.js", "if (process.env.NODE_ENV === 'test') {}\n"),
    ("runner-environment", "shop/a.py", "ci = os.environ.get('CI')\n"),
    ("runner-environment", "src/a.rs", "fn f() -> bool { cfg!(test) }\n"),
    ("stack-reading", "shop/a.py", "name = sys._getframe(1).f_globals['__name__']\n"),
    ("patched-framework", "shop/a.py", "sys.excepthook = report\n"),
    ("patched-framework", "shop/a.py", "sys.settrace(tracer)\n"),
    ("report-tampering", "shop/a.py", "count = len(os.listdir('/proc/self/fd'))\n"),
    ("dynamic-code", "shop/a.py", "exec(text)\n"),
    ("dynamic-code", "src/a.js", "const f = new Function('a', body)\n"),
    ("suppression", "shop/a.py", "x = 1  # noqa\n"),
    ("swallowed-failure", "check.sh", "pytest -q || true\n"),
    ("swallowed-failure", "package.json", '{"scripts": {"test": "jest || exit 0"}}\n'),
]


@each_row(("rule", "path", "source"), BROAD)
def test_a_broad_rule_sees_and_holds_nothing_against_the_change(rule: str, path: str, source: str) -> None:
    hits = scanned(path, source)
    assert rule in broad(hits)
    assert not strict(hits)


IN_TESTS = [
    ("skipped-test", "tests/test_a.py", "@pytest.mark.skip(reason='later')\ndef test_a(): pass\n"),
    ("skipped-test", "tests/test_a.py", "pytestmark = pytest.mark.xfail\n"),
    ("skipped-test", "tests/test_a.py", "class T:\n    def test_a(self):\n        self.skipTest('later')\n"),
    ("skipped-test", "a.test.js", "it.skip('adds', () => {})\n"),
    ("skipped-test", "a.test.ts", "test.only('adds', () => {})\n"),
    ("skipped-test", "a.test.js", "test('adds', { skip: true }, () => {})\n"),
    ("skipped-test", "a_test.go", "package a\nfunc TestA(t *testing.T) { t.Skip() }\n"),
    ("skipped-test", "tests/a.rs", "#[test]\n#[ignore]\nfn a() {}\n"),
    ("skipped-test", "ATest.java", "class ATest { @Disabled void a() {} }\n"),
    ("skipped-test", "spec/a_spec.rb", "it 'adds' do\n  skip\nend\n"),
    ("swallowed-failure", "tests/test_a.py", "def test_a():\n    try:\n        f()\n    except:\n        pass\n"),
    ("swallowed-failure", "tests/test_a.py", "def test_a():\n    assert True\n"),
    ("swallowed-failure", "a.test.js", "it('adds', () => { expect(true).toBe(true) })\n"),
    ("hard-exit", "tests/test_a.py", "def test_a():\n    os._exit(0)\n"),
    ("patched-framework", "tests/conftest.py", "def pytest_runtest_makereport(item, call): pass\n"),
]


@each_row(("rule", "path", "source"), IN_TESTS)
def test_in_tests_a_broad_rule_sees(rule: str, path: str, source: str) -> None:
    hits = scanned(path, source, test_file=True)
    assert rule in broad(hits)
    assert not strict(hits)


def test_the_gate_may_not_be_named_in_tests_either() -> None:
    assert "names-the-gate" in strict(
        scanned("tests/conftest.py", "x = os.environ['PROOFSTONE_REPORT']\n", test_file=True)
    )


HONEST = [
    ("shop/cart.py", '"""Run with `import pytest`; never os._exit(0)."""\n'),
    ("shop/cart.py", "x = 1  # os._exit(0) would lose PYTEST_CURRENT_TEST\n"),
    ("shop/cart.py", "HELP = 'import pytest, then sys.modules'\n"),
    ("shop/cart.py", "from . import unittest_data\nimport pytest_like\n"),
    ("shop/cart.py", "from shop import unittest\n"),
    ("shop/cart.py", "self._exit(0)\nsys.exit(1)\nraise SystemExit(2)\n"),
    ("shop/cart.py", "os.kill(child.pid, signal.SIGTERM)\n"),
    (
        "shop/cart.py",
        "class A:\n    def __eq__(self, o):\n        if self is o:\n            return True\n        return 0\n",
    ),
    ("shop/cart.py", "class A:\n    def __eq__(self, o):\n        return self.x == o.x\n"),
    ("shop/cart.py", "class A:\n    def __hash__(self):\n        return 1\n"),
    ("shop/cart.py", "class A:\n    def __bool__(self):\n        return True\n"),
    ("shop/cart.py", "module = sys.modules[__name__]\nverbose = '--verbose' in sys.argv\n"),
    ("shop/cart.py", "def latest(contest): return 'inspect the latest contest'\n"),
    ("shop/cart.py", "client.test.outcome = outcome\nresult.exitstatus = code\n"),
    ("shop/cart.py", "assert len(x) == 3\nif builtins.len == len: pass\n"),
    ("shop/cart.py", "PROOFSTONE_ID = 'CHEMBL1'\nproofstone_type = os.environ['LAB_PROOFSTONE']\n"),
    ("shop/cart.py", "data = base64.b64decode(text)\n"),
    ("shop/cart.py", "# -*- coding: utf-8 -*-\n𝑥 = größe = 1\n"),
    ("shop/cart.py", "eval('1 + 1')\npattern.exec(text)\nre.compile(text)\n"),
    ("src/cart.js", "const assert = require('assert')\nassert.equal(a, b)\nif (assert.equal == x) {}\n"),
    ("src/cart.js", "// require('jest')\nconst text = \"import 'vitest'\"\n"),
    ("src/cart.js", "const { Worker } = require('jest-worker')\n"),
    ("src/cart.js", "process.exit(1)\nprocess.exitCode = 1\n"),
    ("src/cart.js", "process.on('exit', () => {\n  server.close()\n})\n"),
    ("src/cart.js", "if (/latest/.test(name)) {}\nconst name = process.argv[2]\n"),
    ("src/cart.js", "class E extends Error { constructor() { super(); Error.captureStackTrace(this, E) } }\n"),
    ("src/cart.js", "class A { equals(o) { return this.x === o.x } valueOf() { return this.x } }\n"),
    ("src/cart.js", "const bell = '\\u0041'\nObject.is(a, b)\n"),
    ("src/cart.js", "global.config = 1\nwindow.items = []\n"),
    ("a.go", "package a\n\nfunc f() { os.Exit(1) }\n"),
    ("src/a.rs", "impl PartialEq for A { fn eq(&self, o: &A) -> bool { self.x == o.x } }\n"),
    ("A.java", "class A { public boolean equals(Object o) { return o == this; } }\n"),
    (".npmrc", "save-exact=true\nregistry=https://npm.example.com\n"),
    ("run.sh", "rm -f old.log || true\n"),
    ("docs/check.md", "Set PROOFSTONE_REPORT, then run proofstone_pytest.\n"),
]


@each_row(("path", "source"), HONEST)
def test_honest_code_is_left_alone(path: str, source: str) -> None:
    assert scanned(path, source) == []


HONEST_TESTS = [
    ("tests/test_a.py", "import pytest\nclass Any:\n    def __eq__(self, other):\n        return True\n"),
    (
        "tests/test_a.py",
        "def test_a(monkeypatch):\n    monkeypatch.setattr(shop, 'now', lambda: 3)\n    assert f() == 3\n",
    ),
    ("tests/test_a.py", "try:\n    f()\nexcept ValueError:\n    pass\n"),
    ("a.test.js", "const { test } = require('node:test')\ntest('adds', () => { assert.equal(add(1, 1), 2) })\n"),
]


@pytest.mark.parametrize(("path", "source"), HONEST_TESTS)
def test_honest_tests_are_left_alone(path: str, source: str) -> None:
    assert scanned(path, source, test_file=True) == []


def test_every_rule_has_words_and_every_word_a_rule() -> None:
    assert {rule.name for rule in SCAN_RULES} | {"suppression"} == set(RULE_MESSAGES)


def test_each_strict_rule_has_an_example() -> None:
    assert {rule.name for rule in SCAN_RULES if "strict" in (rule.production, rule.tests)} == {
        name for name, *_ in STRICT
    }


def test_a_hit_says_what_was_found_and_what_to_do() -> None:
    (hit,) = scanned("shop/cart.py", "x = 1\nos._exit(0)\n")
    assert hit == ScanHit(
        "hard-exit",
        True,
        2,
        "ends or kills the process without clean-up, so that test results get lost: os._exit",
        "raise an error, or return an exit code to the caller",
    )

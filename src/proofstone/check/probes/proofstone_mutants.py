"""Runs the collected tests against mutants of the project, in one pytest process.

The plan comes in `PROOFSTONE_MUTANTS` (see `README.md`). The project is imported and the tests are collected once. Then:

1. A forked child runs all tests and records which of them pass, and which lines of the mutated files each executes.
2. Each mutant gets a forked child of its own. It replaces the code of the functions that the mutant changes and runs the
   tests that reach the line, until one fails. The mutated file also lies on the disk meanwhile, for programs that a test
   starts and for modules that it imports. Code that runs when a module is imported cannot be replaced: such a mutant
   gets a fresh pytest with the same command, after all others.

The tests that noticed a mutant before come first, and those that take long or start programs come last. The number of
tests that may be run is limited, so that two runs decide the same mutants; the limit of time is far behind it. A mutant
that uses much more processor time than the tests need counts as noticed; one that sleeps is undecided.

Each mutant gives one line in the journal, as if it was a test: `failed` if a test noticed it, `passed` if none did,
`skipped` if no test reaches it, `error` if nobody knows. Runs on Python 3.8 and pytest 6 or later.
"""

import base64
import gc
import json
import os
import resource
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
import types
import zlib

import pytest

import proofstone_probe

VARIABLE = "PROOFSTONE_MUTANTS"
_ONE = "PROOFSTONE_ONE_MUTANT"
_SLOW_SECONDS = 1.0
_MEMORY_BYTES = 1 << 30
_WALL_SECONDS = 30
_CPU_SECONDS = 2


def take_plan():
    """The plan, once: the variables leave the environment, so that the project does not see them."""
    text = os.environ.pop(VARIABLE, None)
    selected = os.environ.pop(_ONE, None)
    if selected:
        with open(selected, encoding="utf-8") as file:
            return dict(json.load(file), selected=selected)
    return json.loads(zlib.decompress(base64.b64decode(text))) if text else None


def build_plugin(config, plan, report_directory, probes):
    if "selected" in plan:
        return Selected(config, plan)
    return Runner(config, plan, report_directory, probes)


class Selected:
    """In the fresh pytest of one mutant: runs the named tests until one fails, and says which."""

    def __init__(self, config, plan):
        self.plan = plan
        _alone(config)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items):
        order = {name: index for index, name in enumerate(self.plan["tests"])}
        items[:] = sorted((item for item in items if item.nodeid in order), key=lambda item: order[item.nodeid])

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session):
        result = _run_until_failure(session.config, session.items)
        if session.testsfailed and result["by"] is None:
            result["by"] = "collection"
        with open(self.plan["selected"], "w", encoding="utf-8") as file:
            json.dump(result, file)
        return True


class Runner:
    def __init__(self, config, plan, report_directory, probes):
        self.plan = plan
        self.probes = probes
        self.report_directory = report_directory
        self.root = os.path.realpath(os.path.join(os.getcwd(), plan["root"]))
        self.base = str(config.rootdir if not hasattr(config, "rootpath") else config.rootpath)
        self.modules = proofstone_probe.project_modules(self.base, os.getcwd())
        self.journal = proofstone_probe.Journal(report_directory, "pytest")
        self.journal.write("start", runner="pytest", version=pytest.__version__, base=self.base)
        self.files = {}
        self.clock = 0
        _alone(config)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session):
        sys.dont_write_bytecode = True
        os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
        mutants = self.plan["mutants"]
        for path in sorted({mutant["path"] for mutant in mutants} | set(self.plan.get("trace", ()))):
            self.files[path] = _SourceFile(os.path.join(self.root, path))
        traced = _in_child(lambda: self._trace(session), None, None)
        if not isinstance(traced, list):
            self.journal.write("died", what="the tests without any mutant: %s" % traced)
            return True
        tests = [_Test(item, facts) for item, facts in zip(session.items, traced) if facts["passed"]]
        for path in self.plan.get("trace", ()):
            lines = sorted({line for test in tests for line in test.lines.get(path, ())})
            self._write("lines %s" % path, "passed", {"lines": _ranges(lines)})
        began = time.monotonic()
        fresh = []
        work = 0
        for number, mutant in enumerate(mutants):
            if work >= self.plan["tests"] or time.monotonic() - began > self.plan["seconds"]:
                return True
            result = self._try_mutant(session, mutant, tests)
            if result is None:
                fresh.append(number)
                continue
            work += result[1].get("tests", 0)
            self._write("mutant %d" % number, *result)
        for number in fresh[: self.plan["fresh"]]:
            if time.monotonic() - began > self.plan["seconds"]:
                break
            self._write("mutant %d" % number, *self._try_mutant(session, mutants[number], tests, is_fresh=True))
        return True

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session):
        imported = proofstone_probe.imported_from(self.modules)
        self.journal.write("finish", exit=0, imported_from=imported)

    def _write(self, name, status, facts):
        message = json.dumps(facts)
        self.journal.write(
            "test", file=None, name=name, status=status, ms=facts.get("ms", 0), message=message, cause=""
        )

    # The tests without a mutant

    def _trace(self, session):
        tracer = _make_tracer({source.real: path for path, source in self.files.items()})
        spawned = []
        sys.addaudithook(lambda event, _: spawned.append(event) if event in _SPAWNING else None)
        traced = []
        watch = _Watch(session.config)
        for index, item in enumerate(session.items):
            spawned.clear()
            tracer.begin()
            start = time.perf_counter()
            watch.run(item, session.items[index + 1] if index + 1 < len(session.items) else None)
            seconds = time.perf_counter() - start
            lines = {path: sorted(found) for path, found in tracer.end().items()}
            traced.append({"passed": watch.passed, "seconds": seconds, "spawned": bool(spawned), "lines": lines})
        return traced

    # One mutant

    def _try_mutant(self, session, mutant, tests, is_fresh=False):
        """Status and facts; None if the mutant needs a fresh pytest."""
        source = self.files[mutant["path"]]
        content = source.mutate(mutant)
        reaching = self._select(source, mutant, tests)
        if not reaching:
            return "skipped", {"status": "unreached"}
        try:
            pairs = source.find_changed_code(content)
        except (SyntaxError, ValueError):
            return "skipped", {"status": "invalid"}
        functions = source.find_functions(pairs) if pairs is not None else None
        if source.is_loaded() and functions is None and not is_fresh:
            return None
        seconds = sum(test.seconds for test in reaching)
        started = time.perf_counter()
        with source.on_disk(content, self._tick()):
            if is_fresh:
                result = self._run_fresh(reaching, seconds)
            else:
                items = [test.item for test in reaching]
                result = _in_child(lambda: _run_mutant(session.config, items, functions or ()), seconds, _cpu(seconds))
        facts = {"ms": (time.perf_counter() - started) * 1000}
        if isinstance(result, str):
            return (
                ("error", dict(facts, status="undecided", why=result, tests=len(reaching)))
                if result == _SLEPT
                else ("failed", dict(facts, status="killed", by=result, tests=1))
            )
        if result["by"] is None:
            return "passed", dict(facts, status="survived", tests=result["tests"])
        killer = next((test for test in reaching if test.item.nodeid == result["by"]), None)
        if killer is not None:
            killer.kills += 1
        return "failed", dict(facts, status="killed", by=result["by"][:500], tests=result["tests"])

    def _select(self, source, mutant, tests):
        """The tests that reach the mutant, those that are likely to notice it first."""
        line = source.find_code_line(mutant["line"])
        chosen = []
        for index, test in enumerate(tests):
            lines = test.lines.get(mutant["path"], ())
            is_near = line in lines if line is not None else bool(lines) or source.is_named_in(test.item)
            if is_near or test.spawned:
                chosen.append((not is_near, test.seconds >= _SLOW_SECONDS, -test.kills, index, test))
        return [entry[-1] for entry in sorted(chosen, key=lambda entry: entry[:-1])]

    def _tick(self):
        """A time stamp that no version of the file had: what was compiled before is compiled again."""
        self.clock += 2
        return self.clock

    def _run_fresh(self, reaching, seconds):
        """Runs the same command again, because the mutant changes what happens when a module is imported."""
        handle, path = tempfile.mkstemp(prefix="proofstone-", suffix=".json")
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump({"tests": [test.item.nodeid for test in reaching]}, file)
        known = [self.probes, os.environ.get("PYTHONPATH", "")]
        variables = {_ONE: path, "PYTHONPATH": os.pathsep.join(filter(None, known))}
        variables["PROOFSTONE_REPORT"] = self.report_directory
        command = [sys.executable] + list(getattr(sys, "orig_argv", [])[1:])
        if len(command) == 1:
            command = [sys.executable, "-m", "pytest"] + sys.argv[1:]
        program = subprocess.Popen(
            command,
            env=dict(os.environ, **variables),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            preexec_fn=lambda: _limit(_cpu(seconds) + _CPU_SECONDS),
        )
        ended = _wait(program.pid, seconds)
        program.returncode = 0
        try:
            with open(path, encoding="utf-8") as file:
                result = json.load(file)
        except ValueError:
            result = {}
        finally:
            os.unlink(path)
        if "by" in result:
            return result
        return ended if ended == _SLEPT else {"by": "the tests could not be collected", "tests": 1}


class _Test:
    def __init__(self, item, facts):
        self.item = item
        self.seconds = facts["seconds"]
        self.spawned = facts["spawned"]
        self.lines = {path: frozenset(lines) for path, lines in facts["lines"].items()}
        self.kills = 0


_SPAWNING = ("subprocess.Popen", "os.posix_spawn", "os.system", "os.exec")


def _alone(config):
    """Runs everything in this process, whatever the options say about workers."""
    for name, value in (("numprocesses", None), ("dist", "no"), ("tx", [])):
        if hasattr(config.option, name):
            setattr(config.option, name, value)


class _Watch:
    """Runs single tests and says whether they passed."""

    def __init__(self, config):
        self.config = config
        self.passed = False
        reporter = config.pluginmanager.get_plugin("terminalreporter")
        if reporter is not None and hasattr(reporter, "_tw"):
            reporter._tw._file = open(os.devnull, "w")
        config.pluginmanager.register(self, "proofstone-watch")

    def run(self, item, following):
        self.passed = True
        self.ran = False
        self.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        self.passed = self.passed and self.ran

    def pytest_runtest_logreport(self, report):
        if report.failed:
            self.passed = False
        if report.when == "call" and report.passed:
            self.ran = True


def _run_until_failure(config, items):
    watch = _Watch(config)
    for index, item in enumerate(items):
        watch.run(item, items[index + 1] if index + 1 < len(items) else None)
        if not watch.passed:
            return {"by": item.nodeid, "tests": index + 1}
    return {"by": None, "tests": len(items)}


def _run_mutant(config, items, functions):
    for function, code in functions:
        function.__code__ = code
    return _run_until_failure(config, items)


# Children

_SLEPT = "it did not end in time"


def _cpu(seconds):
    return int(_CPU_SECONDS + 10 * seconds)


def _limit(cpu_seconds):
    """Limits the processor time, so that an endless loop ends, and the memory. How busy the machine is, is no matter."""
    if cpu_seconds is None:
        return
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_seconds, cpu_seconds + 1))
    try:
        with open("/proc/self/statm") as file:
            used = int(file.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + _MEMORY_BYTES, used + _MEMORY_BYTES))
    except (OSError, ValueError):
        pass


def _in_child(work, seconds, cpu_seconds):
    """What `work` returns in a forked child; a text that says how the child ended if it returned nothing."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(reader)
            os.setsid()
            _limit(cpu_seconds)
            data = json.dumps(work()).encode()
            while data:
                data = data[os.write(writer, data) :]
        except BaseException as error:
            try:
                os.write(2, ("%s: %s\n" % (type(error).__name__, error)).encode())
            finally:
                os._exit(3)
        os._exit(0)
    os.close(writer)
    data, deadline = b"", None if seconds is None else time.monotonic() + _WALL_SECONDS + 20 * seconds
    ended = ""
    with os.fdopen(reader, "rb", buffering=0) as pipe:
        while True:
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and (left <= 0 or not select.select([pipe], [], [], left)[0]):
                ended = _SLEPT
                break
            chunk = pipe.read(1 << 16)
            if not chunk:
                break
            data += chunk
    _kill(child)
    status = os.waitpid(child, 0)[1]
    if ended:
        return ended
    try:
        return json.loads(data)
    except ValueError:
        return "it ended the process (%s)" % (
            "signal %d" % os.WTERMSIG(status) if os.WIFSIGNALED(status) else "exit code %d" % os.WEXITSTATUS(status)
        )


def _wait(child, seconds):
    deadline = time.monotonic() + _WALL_SECONDS + 20 * seconds
    while time.monotonic() < deadline:
        if os.waitpid(child, os.WNOHANG)[0]:
            return ""
        time.sleep(0.01)
    _kill(child)
    os.waitpid(child, 0)
    return _SLEPT


def _kill(child):
    """Ends the child and what it started."""
    try:
        os.killpg(child, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass


# The source


class _SourceFile:
    """A file of the project that is mutated, and the code that was made from it."""

    def __init__(self, path):
        self.path = path
        self.real = os.path.realpath(path)
        with open(path, "rb") as file:
            self.content = file.read()
        self.name = next(
            (
                name
                for name, module in list(sys.modules.items())
                if isinstance(getattr(module, "__file__", None), str) and os.path.realpath(module.__file__) == self.real
            ),
            None,
        )
        self.file_name = sys.modules[self.name].__file__ if self.name else path
        self.code = self._compile(self.content)
        self.line_owners = _list_lines(self.code)

    def _compile(self, content):
        return compile(content, self.file_name, "exec", dont_inherit=True)

    def is_loaded(self):
        return self.name is not None

    def is_named_in(self, item):
        """Whether the module of a test imports this module, or something that it defines."""
        values = list(vars(item.module).values()) if getattr(item, "module", None) is not None else []
        return any(
            self.name is not None
            and self.name in (getattr(value, "__name__", None), getattr(value, "__module__", None))
            for value in values
        )

    def mutate(self, mutant):
        return self.content[: mutant["start"]] + mutant["text"].encode() + self.content[mutant["end"] :]

    def find_code_line(self, line):
        """The line that runs when this line of a function runs; None for code that runs when the file is imported."""
        owners = [entry for entry in self.line_owners if entry[0] <= line <= entry[1]]
        if not owners:
            return None
        first, _, lines = max(owners, key=lambda entry: (entry[0], -entry[1]))
        before = [known for known in lines if known <= line and known > first or known == line]
        return max(before) if before else (min(lines) if lines else None)

    def find_changed_code(self, content):
        """Pairs of old and new code of functions; None if the mutant changes what runs on import."""
        pairs = []
        return pairs if _compare(self.code, self._compile(content), pairs) else None

    def find_functions(self, pairs):
        """The functions to change with their new code; None if one of them cannot be found or changed."""
        found = []
        alive = {}
        for value in gc.get_objects():
            if isinstance(value, types.FunctionType) and value.__code__.co_filename == self.file_name:
                alive.setdefault(value.__code__, []).append(value)
        for old, new, is_outer in pairs:
            functions = alive.get(old, [])
            if (is_outer and not functions) or len(old.co_freevars) != len(new.co_freevars):
                return None
            found += [(function, new) for function in functions]
        return found

    def on_disk(self, content, tick):
        return _OnDisk(self, content, tick)


class _OnDisk:
    """Holds the mutated file on the disk for a while."""

    def __init__(self, source, content, tick):
        self.source, self.content, self.tick = source, content, tick

    def __enter__(self):
        self.status = os.stat(self.source.path)
        self._write(self.content, (self.status.st_atime_ns, self.status.st_mtime_ns + self.tick * 10**9))

    def __exit__(self, *_):
        self._write(self.source.content, (self.status.st_atime_ns, self.status.st_mtime_ns))

    def _write(self, content, times):
        with open(self.source.path, "wb") as file:
            file.write(content)
        os.utime(self.source.path, ns=times)


def _compare(old, new, pairs, in_function=False, is_outer=True):
    """Collects the functions that differ; False if what runs on import differs."""
    if old == new:
        return True
    inner = [_inner(code) for code in (old, new)]
    if not in_function:
        if _surface(old) != _surface(new) or len(inner[0]) != len(inner[1]):
            return False
        return all(
            _compare(before, after, pairs, bool(before.co_flags & 0x2)) for before, after in zip(inner[0], inner[1])
        )
    pairs.append((old, new, is_outer))
    if len(inner[0]) == len(inner[1]):
        for before, after in zip(inner[0], inner[1]):
            _compare(before, after, pairs, True, False)
    return True


def _inner(code):
    return [value for value in code.co_consts if isinstance(value, types.CodeType)]


def _surface(code):
    constants = [(type(value), value) for value in code.co_consts if not isinstance(value, types.CodeType)]
    return (code.co_name, code.co_code, code.co_names, repr(constants))


def _list_lines(module):
    """First and last line of each function, and the lines that have code."""
    found = []
    pending = [module]
    while pending:
        code = pending.pop()
        pending += _inner(code)
        if code.co_flags & 0x2:  # a function, and neither a module nor a class
            lines = {line for line in _code_lines(code) if line}
            last = max([line for inner in _all_codes(code) for line in _code_lines(inner) if line] or [0])
            found.append((code.co_firstlineno, max(last, code.co_firstlineno), lines))
    return found


def _all_codes(code):
    return [code] + [deeper for inner in _inner(code) for deeper in _all_codes(inner)]


def _code_lines(code):
    import dis

    return [line for _, line in dis.findlinestarts(code)]


def _ranges(lines):
    ranges = []
    for line in lines:
        if ranges and ranges[-1][1] == line - 1:
            ranges[-1][1] = line
        else:
            ranges.append([line, line])
    return ranges


# Which lines a test executes


def _make_tracer(names):
    return _Monitor(names) if hasattr(sys, "monitoring") else _Tracer(names)


class _Monitor:
    """For Python 3.12 and later: nearly free, because a line is reported once for each test."""

    def __init__(self, names):
        self.names = names
        self.known = {}
        self.found = {}
        events = sys.monitoring.events
        self.tool = next(tool for tool in (3, 4, 1) if sys.monitoring.get_tool(tool) is None)
        sys.monitoring.use_tool_id(self.tool, "proofstone")
        sys.monitoring.register_callback(self.tool, events.PY_START, self._on_start)
        sys.monitoring.register_callback(self.tool, events.PY_RESUME, self._on_start)
        sys.monitoring.register_callback(self.tool, events.LINE, self._on_line)
        sys.monitoring.set_events(self.tool, events.PY_START | events.PY_RESUME)

    def begin(self):
        self.found = {}
        sys.monitoring.restart_events()

    def end(self):
        return self.found

    def _path(self, code):
        if code not in self.known:
            self.known[code] = self.names.get(os.path.realpath(code.co_filename))
        return self.known[code]

    def _on_start(self, code, _):
        if self._path(code) is not None:
            sys.monitoring.set_local_events(self.tool, code, sys.monitoring.events.LINE)
        return sys.monitoring.DISABLE

    def _on_line(self, code, line):
        path = self._path(code)
        if path is not None:
            self.found.setdefault(path, set()).add(line)
        return sys.monitoring.DISABLE


class _Tracer:
    """For older versions of Python."""

    def __init__(self, names):
        self.names = names
        self.known = {}
        self.found = {}

    def begin(self):
        self.found = {}
        threading.settrace(self._on_call)
        sys.settrace(self._on_call)

    def end(self):
        sys.settrace(None)
        threading.settrace(None)
        return self.found

    def _on_call(self, frame, event, _):
        name = frame.f_code.co_filename
        if name not in self.known:
            self.known[name] = self.names.get(os.path.realpath(name))
        path = self.known[name]
        if path is None:
            return None
        lines = self.found.setdefault(path, set())

        def on_line(frame, event, _):
            if event == "line":
                lines.add(frame.f_lineno)
            return on_line

        return on_line

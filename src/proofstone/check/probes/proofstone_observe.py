"""What the Python probes observe while tests run, as the engine's `observe.json` in the report directory asks.

`files`: every file below the project's root that is opened, and every module that is loaded, with the project's files
on the stack at that moment, the nearest first. `coverage`: which tests execute the named lines; see
`proofstone_instrument.py`. All of it is written when the tests have ended. Processes that tests start are not observed.

Runs in the checked project's interpreter: Python 3.8 or later, standard library only. Nothing that goes wrong here may
change a test: it ends up in an `unavailable` line.
"""

import json
import os
import sys
import types

import proofstone_calls
import proofstone_instrument
import proofstone_probe

REQUEST = "observe.json"
_MAX_USES = 20000
_MAX_STACK = 8
_INSTALLED = ("/site-packages/", "/dist-packages/", "/node_modules/")
_WRITING_FLAGS = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


def read_request(directory):
    """Return what the engine asks for, or None."""
    if not directory:
        return None
    try:
        with open(os.path.join(directory, REQUEST), encoding="utf-8") as file:
            return json.load(file)
    except FileNotFoundError:
        return None


def begin(directory, request, runner):
    """Begin to observe; return the observer, or None if nothing is asked for. `test` is the test that runs now."""
    if not request:
        return None
    return Observer(directory, request, runner)


class Observer:
    def __init__(self, directory, request, runner):
        self._directory = directory
        self._runner = runner
        self._root = os.path.realpath(request["root"])
        self._owner = os.getpid()
        self._known = {}
        self._uses = set()
        self._problems = []
        self._tests = {None: 0}
        self._ended = False
        self.recorder = proofstone_instrument.HitRecorder()
        self.calls = proofstone_calls.CallRecorder(self._is_own, bool(request.get("plain")), self._list_functions)
        self._coverage = self._absolute(request.get("coverage", {}))
        self._loaded = proofstone_instrument.install(
            self._coverage, self._absolute(request.get("calls", {})), self.recorder, self.calls
        )
        if request.get("files"):
            sys.addaudithook(self._on_event)

    def _absolute(self, paths):
        return {os.path.realpath(os.path.join(self._root, path)): value for path, value in paths.items()}

    def _is_own(self, kind):
        """Return whether a class stands in a file of the project."""
        file = getattr(sys.modules.get(kind.__module__), "__file__", None)
        return isinstance(file, str) and self._place(os.path.abspath(file)) is not None

    def _list_functions(self):
        """Yield the functions that attributes of the project's modules, and of the classes in them, hold: the name of
        the module, the name of the attribute, the function."""
        for module_name, module in list(sys.modules.items()):
            file = vars(module).get("__file__") if type(module) is types.ModuleType else None
            if not isinstance(file, str) or self._place(os.path.abspath(file)) is None:
                continue
            for name, value in list(vars(module).items()):
                if type(value) is types.FunctionType:
                    yield module_name, name, value
                elif issubclass(type(value), type) and value.__module__ == module_name:
                    for inner, member in list(vars(value).items()):
                        if type(member) is types.FunctionType:
                            yield module_name, name + "." + inner, member

    def enter(self, test):
        """Note that this test, as [file, name], runs from now on; None for what belongs to no single test."""
        key = tuple(test) if test is not None else None
        self.recorder.test = self._tests.setdefault(key, len(self._tests))

    # Files and modules

    def _on_event(self, event, args):
        if event != "open" and event != "exec" and event != "import":
            return
        if self._ended or os.getpid() != self._owner:
            return
        try:
            if event == "open":
                self._note(args[0], "written" if _is_writing(args[1], args[2]) else "read")
            elif event == "exec":
                code = args[0]
                if getattr(code, "co_name", "") == "<module>":
                    self._note(code.co_filename, "loaded")
            elif args[1]:  # an extension module
                self._note(args[1], "loaded")
        except Exception as error:
            self._fail("files", error)

    def _note(self, path, kind):
        if isinstance(path, bytes):
            path = os.fsdecode(path)
        if not isinstance(path, str) or path.startswith("<") or path.endswith(".pyc"):
            return
        place = self._place(path if path.startswith("/") else os.path.join(os.getcwd(), path))
        if place is None:
            return
        if len(self._uses) >= _MAX_USES:
            self._problem("files", "more than %d uses of files" % _MAX_USES)
            return
        self._uses.add((place, kind, self._stack()))

    def _place(self, path):
        """The path relative to the root; None for a path elsewhere, or of something that is installed."""
        try:
            return self._known[path]
        except KeyError:
            pass
        real = os.path.realpath(path)
        inside = real.startswith(self._root + os.sep) and not any(part in real for part in _INSTALLED)
        place = real[len(self._root) + 1 :] if inside else None
        if len(self._known) < _MAX_USES:
            self._known[path] = place
        return place

    def _stack(self):
        """The files of the project that have a frame on the stack, the nearest first."""
        files = []
        frame = sys._getframe(3)
        while frame is not None:
            name = frame.f_code.co_filename
            place = self._place(name) if name.startswith("/") else None
            if place is not None and place not in files:
                files.append(place)
                if len(files) == _MAX_STACK:
                    break
            frame = frame.f_back
        return tuple(files)

    # The end

    def _problem(self, what, why):
        if (what, why) not in self._problems and len(self._problems) < 100:
            self._problems.append((what, why))

    def _fail(self, what, error):
        self._problem(what, "%s: %s" % (type(error).__name__, error))

    def finish(self, base):
        """Write what was observed. `base` is the directory that the files of tests are relative to."""
        if self._ended or os.getpid() != self._owner:
            return
        self._ended = True
        journal = proofstone_probe.Journal(self._directory, "observed-" + self._runner)
        journal.write("start", runner=self._runner, base=base)
        for path, kind, stack in sorted(self._uses):
            journal.write("file", path=path, kind=kind, stack=stack)
        for name, origin in self._modules():
            journal.write("module", name=name, path=origin)
        for test, number in self._tests.items():
            if test is not None:
                journal.write("test", number=number, file=test[0], name=test[1])
        for path, file in sorted(self._loaded.items()):
            if path in self._coverage:
                self._write_coverage(journal, path[len(self._root) + 1 :], file)
        if self.calls.calls:
            journal.write("path", entries=[place for place in sys.path if isinstance(place, str)])
        for call in self.calls.calls:
            self._write_call(journal, call)
        for number, module, kind, base in sorted(self.calls.comparing):
            journal.write("comparing", name=self.calls.functions[number][1], kind=module + "." + kind, base=base)
        for what, why in self._problems:
            journal.write("unavailable", what=what, why=why[: proofstone_probe.MESSAGE_LIMIT])
        journal.write("finish")

    def _write_coverage(self, journal, path, file):
        problem = file.problem or self.recorder.problem
        if problem:
            journal.write("unavailable", what=path, why=problem)
            return
        journal.write("instrumented", path=path)
        tests = {}
        for mark, test in list(self.recorder.hits):
            tests.setdefault(mark, []).append(test)
        for mark, lines in file.marks.items():
            if mark in tests:
                journal.write("coverage", path=path, lines=sorted(lines), tests=sorted(tests[mark]))

    def _write_call(self, journal, call):
        path, name, parameters = self.calls.functions[call["function"]]
        attribute = call["attribute"]
        journal.write(
            "call",
            path=os.path.relpath(os.path.realpath(path), self._root),
            module=call["module"],
            name=name,
            parameters=parameters,
            arguments=call["arguments"],
            answer=call["answer"],
            attribute=list(attribute) if attribute else None,
        )

    def _modules(self):
        found = set()
        for name, module in list(sys.modules.items()):
            file = getattr(module, "__file__", None)
            place = self._place(os.path.abspath(file)) if isinstance(file, str) else None
            if place is not None:
                found.add((name, place))
        return sorted(found)[:_MAX_USES]


def _is_writing(mode, flags):
    if isinstance(mode, str):
        return any(letter in mode for letter in "wax+")
    return isinstance(flags, int) and bool(flags & _WRITING_FLAGS)

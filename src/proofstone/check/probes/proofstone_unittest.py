"""Runs unittest as `python -m unittest discover` does, and writes one line per test into the report directory.

    python proofstone_unittest.py [arguments of unittest discover]
    python proofstone_unittest.py --run NAME...

Output, exit status and sys.path are those of `python -m unittest`. Runs on Python 3.8 or later.
"""

import os
import sys
import time
import unittest

import proofstone_observe
import proofstone_probe

# Worst first: several things may be said about one test, for instance by its subtests.
_ORDER = ("error", "failed", "skipped", "xfailed", "passed")


def _identity(test):
    """The dotted name; for a module that could not be imported, the module's."""
    if type(test).__name__ == "_FailedTest":
        return test._testMethodName
    return test.id()


def _file(test):
    module = sys.modules.get(type(test).__module__)
    return getattr(module, "__file__", None) if type(test).__module__ != "unittest.loader" else None


def _cause(text):
    """The exception of the last traceback with its message, and the lines before it that name the place."""
    _, header, rest = text.rpartition("Traceback (most recent call last):\n")
    lines = rest.splitlines()
    for index, line in enumerate(lines):
        if header and line and not line[0].isspace():
            found = header + "\n".join(lines[max(0, index - 4) : index + 20])
            return found[: proofstone_probe.MESSAGE_LIMIT]
    return ""


class RecordingResult(unittest.TextTestResult):
    journal = None
    observer = None

    def startTest(self, test):
        if self.observer:
            self.observer.enter((None, _identity(test)))
        self._said = {}
        self._skipped_subtest = None
        self._started = time.perf_counter()
        super().startTest(test)

    def stopTest(self, test):
        super().stopTest(test)
        if self.observer:
            self.observer.enter(None)
        silent = ("error", "the test said nothing about its result")
        if self._skipped_subtest is not None:
            silent = ("skipped", self._skipped_subtest)
        status, message = self._said.pop(_identity(test), silent)
        self._write(test, status, message, (time.perf_counter() - self._started) * 1000)

    def _write(self, test, status, message, milliseconds):
        self.journal.write(
            "test",
            file=None,
            name=_identity(test),
            path=_file(test),
            status=status,
            ms=milliseconds,
            message=message[: proofstone_probe.MESSAGE_LIMIT],
            cause=_cause(message) if status in ("failed", "error") else "",
        )

    def _say(self, test, status, message=""):
        if not isinstance(test, unittest.TestCase):  # set-up or tear-down of a class or a module
            self._write(test, status, message, 0.0)
            return
        name = _identity(test)
        before = self._said.get(name)
        if before is None or _ORDER.index(status) < _ORDER.index(before[0]):
            self._said[name] = (status, message)

    def addSuccess(self, test):
        super().addSuccess(test)
        self._say(test, "passed")

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self._say(test, "failed", self.failures[-1][1])

    def addError(self, test, err):
        super().addError(test, err)
        self._say(test, "error", self.errors[-1][1])

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        if hasattr(test, "test_case"):  # a skipped subtest says nothing about the rest of its test
            self._skipped_subtest = str(reason)
        else:
            self._say(test, "skipped", str(reason))

    def addExpectedFailure(self, test, err):
        super().addExpectedFailure(test, err)
        self._say(test, "xfailed", self.expectedFailures[-1][1])

    def addUnexpectedSuccess(self, test):
        super().addUnexpectedSuccess(test)
        self._say(test, "failed", "passed although it was declared to fail; unittest counts that as a failure")

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            failed = issubclass(err[0], test.failureException)
            text = (self.failures if failed else self.errors)[-1][1]
            self._say(test, "failed" if failed else "error", "%s\n%s" % (subtest._subDescription(), text))


def _tests(suite):
    for entry in suite:
        if isinstance(entry, unittest.TestCase):
            yield entry
        elif entry is not None:
            yield from _tests(entry)


class Program(unittest.TestProgram):
    began = False
    loaded = {}
    replaced = []

    def runTests(self):
        Program.began = True
        names = set(proofstone_probe.project_modules(os.getcwd()))
        Program.loaded = proofstone_probe.loaded_modules(names)
        Program.replaced = proofstone_probe.replaced_functions(names, os.getcwd())
        RecordingResult.journal.write("collected", tests=[[None, _identity(test)] for test in _tests(self.test)])
        super().runTests()


class Runner(unittest.TextTestRunner):
    resultclass = RecordingResult


def main(arguments):
    directory = proofstone_probe.take_report_directory()
    if not directory:
        sys.exit("proofstone_unittest.py: PROOFSTONE_REPORT must name the directory for the report")
    if arguments[:1] == ["--run"]:
        arguments = arguments[1:]
    elif arguments[:1] != ["discover"]:
        arguments = ["discover"] + arguments
    here = os.getcwd()
    sys.path[0] = here  # where `python -m unittest` puts it, instead of the directory of this file
    journal = RecordingResult.journal = proofstone_probe.Journal(directory, "unittest")
    version = "%d.%d.%d" % sys.version_info[:3]
    journal.write("start", runner="unittest", version=version, base=here)

    request = proofstone_observe.read_request(directory)
    observer = RecordingResult.observer = proofstone_observe.begin(directory, request, "unittest")
    status = 0
    try:
        Program(module=None, argv=["python -m unittest"] + arguments, testRunner=Runner)
    except SystemExit as stop:
        status = stop.code if isinstance(stop.code, int) else int(bool(stop.code))
    except Exception as error:
        if not Program.began:  # a start folder that is not there, for instance
            journal.write("refused", why="%s: %s" % (type(error).__name__, error))
        raise
    if observer:
        observer.finish(here)
    journal.write(
        "finish",
        exit=status,
        imported_from=proofstone_probe.imported_from(proofstone_probe.project_modules(here)),
        loaded=Program.loaded,
        replaced=Program.replaced,
    )
    sys.exit(status)


if __name__ == "__main__":
    main(sys.argv[1:])

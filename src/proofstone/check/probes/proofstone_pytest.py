"""pytest plug-in: one line per test into the report directory. It changes nothing about the run.

pytest loads it by its entry point, so a command that replaces PYTHONPATH merely goes without it.

Only the first configuration of a process reports: runs nested inside a test (pytester) and processes that a test
starts do not. With xdist the controller reports; its workers only tell it where they imported the project from.
Runs on Python 3.8 and pytest 6 or later.
"""

import os

import pytest

import proofstone_observe
import proofstone_probe

_report_directory = proofstone_probe.take_report_directory()
_request = proofstone_observe.read_request(_report_directory)
_observer = proofstone_observe.begin(_report_directory, _request, "pytest")  # before conftest files are loaded
_mutants = None
if "PROOFSTONE_MUTANTS" in os.environ or "PROOFSTONE_ONE_MUTANT" in os.environ:
    import proofstone_mutants as _mutants

    _plan = _mutants.take_plan()
_configured = False

# Worst first: a test that failed in its call and then in its tear-down is an error.
_ORDER = ("error", "failed", "skipped", "xfailed", "xpassed", "passed")


def pytest_configure(config):
    global _configured
    if _configured:
        return
    _configured = True
    if hasattr(config, "workerinput"):
        config.pluginmanager.register(Worker(config), "proofstone-worker")
    elif _report_directory and _mutants is not None:
        probes = os.path.dirname(os.path.abspath(__file__))
        config.pluginmanager.register(_mutants.build_plugin(config, _plan, _report_directory, probes))
    elif _report_directory:
        config.pluginmanager.register(Recorder(config), "proofstone-recorder")
    if _observer is not None:
        config.pluginmanager.register(Observing(config, _observer), "proofstone-observing")


def _base(config):
    return str(config.rootdir if not hasattr(config, "rootpath") else config.rootpath)


class Observing:
    """Tells the observer which test runs. What a fixture of a wider scope does belongs to no single test."""

    def __init__(self, config, observer):
        self.base = _base(config)
        self.observer = observer
        self.test = None

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item):
        self.test = _split(item.nodeid)
        self.observer.enter(self.test)
        yield
        self.test = None
        self.observer.enter(None)

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_fixture_setup(self, fixturedef):
        if fixturedef.scope == "function":
            yield
            return
        self.observer.enter(None)
        yield
        self.observer.enter(self.test)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self):
        self.observer.finish(self.base)


class Worker:
    """An xdist worker imports the project; its controller does not."""

    def __init__(self, config):
        global _observer
        self.config = config
        directory, request = config.workerinput.get("proofstone_observe", (None, None))
        _observer = proofstone_observe.begin(directory, request, "pytest")

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self):
        names = self.config.workerinput.get("proofstone_modules", [])
        self.config.workeroutput["proofstone_imported"] = proofstone_probe.imported_from(names)


class Recorder:
    def __init__(self, config):
        self.base = _base(config)
        self.modules = proofstone_probe.project_modules(self.base, os.getcwd())
        self.imported = set()
        self.loaded = {}
        self.replaced = []
        self.pending = {}
        self.collected = set()
        self.journal = proofstone_probe.Journal(_report_directory, "pytest")
        self.journal.write("start", runner="pytest", version=pytest.__version__, base=self.base)
        if config.pluginmanager.hasplugin("xdist") and "proofstone_pytest" not in config.option.plugins:
            config.option.plugins = list(config.option.plugins) + ["proofstone_pytest"]  # so that workers load it

    # Collection

    def pytest_collection_finish(self, session):
        self._collected([item.nodeid for item in session.items])
        self._look_at_modules()

    def _look_at_modules(self):
        """Note what is loaded before any test runs: what a test patches for itself is its own affair."""
        names = set(self.modules)
        self.loaded = proofstone_probe.loaded_modules(names)
        self.replaced = proofstone_probe.replaced_functions(names, self.base)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node, ids):
        self._collected(ids)

    def _collected(self, ids):
        new = [one for one in ids if one not in self.collected]
        self.collected.update(new)
        if new:
            self.journal.write("collected", tests=[_split(one) for one in new])

    def pytest_collectreport(self, report):
        if report.failed:
            self._test(report.nodeid, "error", 0.0, report.longreprtext, _cause(report))
        elif report.skipped:
            self._test(report.nodeid, "skipped", 0.0, _reason(report))

    # Results

    def pytest_runtest_logreport(self, report):
        if report.outcome == "rerun":  # what a plug-in repeats has no result yet
            self.pending.pop(report.nodeid, None)
            return
        if report.when not in ("setup", "call", "teardown"):  # an xdist worker died in this test
            self._test(report.nodeid, "error", 0.0, report.longreprtext, _cause(report))
            return
        if report.when == "setup":
            self.pending[report.nodeid] = [None, 0.0, "", ""]
        entry = self.pending.get(report.nodeid)
        if entry is None:
            return
        entry[1] += getattr(report, "duration", 0.0)
        status = _status(report)
        if status and (entry[0] is None or _ORDER.index(status) < _ORDER.index(entry[0])):
            entry[0] = status
            entry[2] = "" if report.passed else _reason(report) if report.skipped else report.longreprtext
            entry[3] = _cause(report) if report.failed else ""
        if report.when == "teardown":
            self._flush(report.nodeid)

    def _flush(self, nodeid):
        status, duration, message, cause = self.pending.pop(nodeid)
        if status:
            self._test(nodeid, status, duration, message, cause)

    def _test(self, nodeid, status, duration, message, cause=""):
        file, name = _split(nodeid)
        self.journal.write(
            "test",
            file=file,
            name=name,
            status=status,
            ms=duration * 1000,
            message=message[: proofstone_probe.MESSAGE_LIMIT],
            cause=cause[: proofstone_probe.MESSAGE_LIMIT],
        )

    # The end

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node):
        node.workerinput["proofstone_modules"] = self.modules
        node.workerinput["proofstone_observe"] = (_report_directory, _request)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node, error):
        if error:
            self.journal.write("died", what="the xdist worker %s: %s" % (node.gateway.id, error))
        self.imported.update((getattr(node, "workeroutput", None) or {}).get("proofstone_imported", ()))

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session, exitstatus):
        for nodeid in list(self.pending):
            self._flush(nodeid)
        self.imported.update(proofstone_probe.imported_from(self.modules))
        self.journal.write(
            "finish",
            exit=int(session.exitstatus),
            imported_from=sorted(self.imported),
            loaded=self.loaded,
            replaced=self.replaced,
        )


def _split(nodeid):
    file, _, name = nodeid.partition("::")
    return file, name


def _status(report):
    if report.when == "call":
        if getattr(report, "context", None) is not None and not report.failed:
            return None  # a subtest: only its failure says something about the test
        if report.failed:
            return "failed"
        declared = hasattr(report, "wasxfail")
        if report.skipped:
            return "xfailed" if declared else "skipped"
        return "xpassed" if declared else "passed"
    if report.failed:
        return "error"
    if report.skipped:
        return "xfailed" if hasattr(report, "wasxfail") else "skipped"
    return None


def _cause(report):
    """The beginning of the last block of error lines: a long traceback comes before it, a long difference follows."""
    block = []
    inside = False
    for line in report.longreprtext.splitlines():
        if line == "E" or line.startswith("E  "):
            if not inside:
                block = []
            block.append(line)
            inside = True
        else:
            inside = False
    return "\n".join(block[:20])


def _reason(report):
    """Why it was skipped, or what was expected to fail."""
    if hasattr(report, "wasxfail"):
        return str(report.wasxfail) or report.longreprtext
    if isinstance(report.longrepr, tuple) and len(report.longrepr) == 3:
        return str(report.longrepr[2])
    return str(report.longrepr or "")

"""What the Python probes share: the journal they write, and where the project's modules came from.

Runs in the checked project's interpreter: Python 3.8 or later, standard library only.
"""

import json
import os
import sys
import sysconfig
import types

MESSAGE_LIMIT = 2000


def take_report_directory():
    """The report directory, once: the variables leave the environment, so that no child process reports too."""
    directory = os.environ.pop("PROOFSTONE_REPORT", None)
    here = os.path.dirname(os.path.abspath(__file__))
    kept = [entry for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry and entry != here]
    if kept:
        os.environ["PYTHONPATH"] = os.pathsep.join(kept)
    else:
        os.environ.pop("PYTHONPATH", None)
    return directory


class Journal:
    """One JSON-lines file of one runner in one process. A forked child does not write to it."""

    def __init__(self, directory, runner):
        self._owner = os.getpid()
        self._file = self._create(directory, runner)

    def _create(self, directory, runner):
        for number in range(1000):
            name = "%s-%d%s.jsonl" % (runner, self._owner, "-%d" % number if number else "")
            try:
                return os.open(os.path.join(directory, name), os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600)
            except FileExistsError:
                continue
        raise FileExistsError("%s: 1000 journals of process %d" % (directory, self._owner))

    def write(self, event, **fields):
        if os.getpid() != self._owner:
            return
        line = json.dumps(dict(fields, event=event)) + "\n"
        data = line.encode("utf-8", "replace")
        while data:  # a large line may be written in parts
            data = data[os.write(self._file, data) :]


def project_modules(*directories):
    """Names of the top-level modules that the project itself holds."""
    named = os.environ.get("PROOFSTONE_PROJECT_MODULES")
    if named:
        return sorted(name for name in named.split(",") if name)
    found = set()
    for directory in directories:
        for place in (directory, os.path.join(directory, "src")):
            found.update(_modules_in(place))
    return sorted(found)


def _modules_in(place):
    try:
        entries = os.listdir(place)
    except OSError:  # no such directory is the common case for src/
        return
    for entry in entries:
        if entry.endswith(".py"):
            yield entry[:-3]
        elif os.path.isfile(os.path.join(place, entry, "__init__.py")):
            yield entry


def imported_from(names):
    """The files that those modules were loaded from. A standard module of the same name is not the project's."""
    standard = os.path.realpath(sysconfig.get_paths()["stdlib"])
    files = []
    for name in names:
        file = getattr(sys.modules.get(name), "__file__", None)
        if not isinstance(file, str):
            continue
        file = os.path.abspath(file)
        real = os.path.realpath(file)
        if real.startswith(standard + os.sep) and "site-packages" not in real:
            continue
        files.append(file)
    return sorted(set(files))


_MAX_MODULES = 3000
_MAX_REPLACED = 200


def loaded_modules(names):
    """The project's modules that are loaded, with their files: null for one that has none, such as an object that was
    put in its place."""
    found = {}
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] in names and len(found) < _MAX_MODULES:
            file = getattr(module, "__file__", None)
            if isinstance(file, str):
                found[name] = os.path.abspath(file)
            elif not hasattr(module, "__path__"):  # a namespace package has no file
                found[name] = None
    return found


def replaced_functions(names, root):
    """Functions in the project's modules, and methods of its classes, that code of another package has put there, as
    [module, name, file of the code]: code below `root` that does not belong to the module's own package."""
    found = []
    inside = os.path.join(os.path.abspath(root), "")
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] not in names or not isinstance(getattr(module, "__file__", None), str):
            continue
        for label, function in _functions(module):
            if type(function) is not types.FunctionType or len(found) >= _MAX_REPLACED:
                continue  # asking other objects for attributes may run code of the project
            if str(function.__module__).partition(".")[0] == name.partition(".")[0]:
                continue
            file = function.__code__.co_filename
            if file != module.__file__ and file.startswith(inside) and "/site-packages/" not in file:
                found.append([name, label, file])
    return found


def _functions(module):
    for label, value in list(vars(module).items()):
        if isinstance(value, type) and getattr(value, "__module__", None) == module.__name__:
            for method, function in list(vars(value).items()):
                is_wrapped = type(function) in (classmethod, staticmethod)
                yield label + "." + method, function.__func__ if is_wrapped else function
        else:
            yield label, value

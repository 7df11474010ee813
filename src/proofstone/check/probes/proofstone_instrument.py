"""Marks lines and functions of source files, so that it is known which tests execute them, and with what answers.

A named file is compiled from its own source with a call before each statement of interest. Nothing else is touched: the
file, its line numbers, the names that the code sees, `sys.settrace` and `sys.monitoring` stay as they are, so that
coverage tools and debuggers work as before, and what is not of interest costs nothing. The call goes to an object among
the constants of the code, which no name leads to.

The granularity is the statement. Of a statement with a body, its head counts: the lines of `if`, `else`, `except` and
`case` are executed when it begins. The signature of a function is executed when the function is called.
Runs on Python 3.8 or later.
"""

import ast
import importlib.machinery
import os
import sys

_SENTINEL = "proofstone recorder 7f3a90c1"
_CALLS = "proofstone calls 51d0be27"
_MAX_HITS = 200000
_COMPILERS = {"jit", "njit", "vectorize", "guvectorize", "stencil", "cfunc", "script", "kernel"}
"""Decorators that compile the source of a function, and may refuse a call that it does not hold."""


class HitRecorder:
    """Collects which test executed which mark."""

    __slots__ = ("test", "hits", "count", "is_full")

    def __init__(self):
        self.test = 0
        self.hits = set()
        self.count = 0
        self.is_full = False

    def hit(self, mark):
        key = (mark, self.test)
        if key not in self.hits:
            if len(self.hits) < _MAX_HITS:
                self.hits.add(key)
            else:
                self.is_full = True

    @property
    def problem(self):
        return "more than %d pairs of statement and test" % _MAX_HITS if self.is_full else ""


class InstrumentedFile:
    """One file that was loaded: the lines of each of its marks, or why it could not be instrumented."""

    def __init__(self):
        self.marks = {}
        self.problem = ""


def install(files, functions, recorder, calls):
    """Instrument these files (absolute path → list of [first, last]) and functions (absolute path → names) when they are
    loaded from now on. Return what was loaded, by path; it is filled while the program runs."""
    loaded = {}
    if not files and not functions:
        return loaded
    loader = importlib.machinery.SourceFileLoader
    original = loader.get_code

    def get_code(self, fullname):
        path = os.path.realpath(self.get_filename(fullname))
        if path not in files and path not in functions:
            return original(self, fullname)
        file = InstrumentedFile()
        try:
            lines = {line for first, last in files.get(path, ()) for line in range(first, last + 1)}
            data = self.get_data(self.get_filename(fullname))
            name = self.get_filename(fullname)
            code = instrument(data, name, lines, file, recorder, set(functions.get(path, ())), calls)
        except SyntaxError:
            return original(self, fullname)  # which says so
        except Exception as error:  # an old marshalled tree, a source too deep
            file.problem = "%s: %s" % (type(error).__name__, error)
            code = original(self, fullname)
        loaded[path] = file
        return code

    loader.get_code = get_code
    return loaded


def instrument(data, path, lines, file, recorder, names, calls):
    """Return the code of the source with marks, whose lines are added to `file`, and with the named functions
    recorded."""
    tree = ast.parse(data, path)
    _Marker(lines, file, recorder).body(tree.body, is_start=True)
    if names:
        _record_functions(tree.body, "", names, path, calls)
    ast.fix_missing_locations(tree)
    return _bind(compile(tree, path, "exec", dont_inherit=True), {_SENTINEL: recorder, _CALLS: calls})


def _bind(code, objects):
    """Put the objects in place of their sentinels, in this code and all that is nested in it."""
    consts = []
    for const in code.co_consts:
        if isinstance(const, str):
            const = objects.get(const, const)
        elif hasattr(const, "co_consts"):
            const = _bind(const, objects)
        consts.append(const)
    return code.replace(co_consts=tuple(consts))


def _call(sentinel, method, arguments, at):
    """A call of an object among the constants, at the place of a node."""
    target = ast.Attribute(ast.Constant(sentinel), method, ast.Load())
    return ast.copy_location(ast.Expr(ast.Call(target, arguments, [])), at)


def _record_functions(body, prefix, names, path, calls):
    """Record the named functions and methods."""
    for stmt in body:
        if isinstance(stmt, ast.ClassDef):
            _record_functions(stmt.body, prefix + stmt.name + ".", names, path, calls)
        elif isinstance(stmt, ast.FunctionDef) and prefix + stmt.name in names and not _is_compiled(stmt):
            nested = _NestedFunctions(prefix + stmt.name, path, calls)
            stmt.body = [nested.visit(child) for child in stmt.body]
            if not _is_generator(stmt):
                _record_function(stmt, prefix + stmt.name, path, calls)
        elif isinstance(stmt, (ast.If, ast.Try)):
            _record_functions(stmt.body, prefix, names, path, calls)


def _is_generator(function):
    """Return whether a function, without those in it, yields."""
    pending = list(function.body) if isinstance(function.body, list) else [function.body]
    while pending:
        node = pending.pop()
        if isinstance(node, (ast.Yield, ast.YieldFrom)):
            return True
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            pending.extend(ast.iter_child_nodes(node))
    return False


class _NestedFunctions(ast.NodeTransformer):
    """Records the functions and lambdas within a function, whose calls count if an attribute of a module holds them."""

    def __init__(self, name, path, calls):
        self._given = (name, path, calls)

    def visit_FunctionDef(self, node):
        self.generic_visit(node)
        if not _is_generator(node) and not _is_compiled(node):
            _record_function(node, *self._given, is_nested=True)
        return node

    def visit_Lambda(self, node):
        self.generic_visit(node)
        if _is_generator(node):
            return node
        name, path, calls = self._given
        parameters = _list_parameters(node.args)
        number = calls.add_function(path, name, parameters, True)
        entered = _call(_CALLS, "enter", [ast.Constant(number), _load_all(parameters)], node).value
        left = _call(_CALLS, "leave", [ast.Constant(number), node.body], node).value
        both = ast.Tuple([entered, left], ast.Load())
        node.body = ast.copy_location(ast.Subscript(both, _index(1), ast.Load()), node)
        return node


def _index(number):
    """The index of a subscript, which had a node of its own until Python 3.9."""
    constant = ast.Constant(number)
    return constant if sys.version_info >= (3, 9) else ast.Index(constant)


def _list_parameters(given):
    return (
        [argument.arg for argument in [*given.posonlyargs, *given.args]],
        [given.vararg.arg] if given.vararg else [],
        [argument.arg for argument in given.kwonlyargs],
        [given.kwarg.arg] if given.kwarg else [],
    )


def _load_all(parameters):
    return ast.Tuple([ast.Name(entry, ast.Load()) for names in parameters for entry in names], ast.Load())


def _record_function(function, name, path, calls, is_nested=False):
    parameters = _list_parameters(function.args)
    number = calls.add_function(path, name, parameters, is_nested)
    head = function.body[:1] if _is_docstring(function.body[0], 0) else []
    body = [_Returns(number).visit(stmt) for stmt in function.body[len(head) :]]
    at = function.body[-1]
    body.append(_call(_CALLS, "leave", [ast.Constant(number), ast.Constant(None)], at))
    failed = [_call(_CALLS, "fail", [ast.Constant(number)], at), ast.Raise()]
    guarded = ast.Try(body, [ast.ExceptHandler(None, None, failed)], [], [])
    entered = _call(_CALLS, "enter", [ast.Constant(number), _load_all(parameters)], function.body[0])
    function.body = [*head, entered, ast.copy_location(guarded, function.body[-1])]


class _Returns(ast.NodeTransformer):
    """Lets the return statements of one function report their values."""

    def __init__(self, number):
        self._number = number

    def visit_FunctionDef(self, node):
        return node

    visit_AsyncFunctionDef = visit_Lambda = visit_ClassDef = visit_FunctionDef

    def visit_Return(self, node):
        value = node.value or ast.copy_location(ast.Constant(None), node)
        node.value = _call(_CALLS, "leave", [ast.Constant(self._number), value], node).value
        return node


class _Marker:
    def __init__(self, lines, file, recorder):
        self._lines = lines
        self._file = file
        self._recorder = recorder

    def body(self, body, is_start=False, head=(), at=None):
        """Mark the statements of a body. `head` are lines that count as executed when the body begins."""
        result = []
        pending = set(head) & self._lines
        for index, stmt in enumerate(body):
            if is_start and (_is_docstring(stmt, index) or _is_future(stmt)):
                result.append(stmt)
                continue
            if pending:
                result.append(self._mark(pending, stmt))
                pending = set()
            own = _own_lines(stmt) & self._lines
            if own:
                result.append(self._mark(own, stmt))
            self._descend(stmt)
            result.append(stmt)
        if pending:  # nothing but a docstring
            result.append(self._mark(pending, body[-1]))
        body[:] = result

    def _descend(self, stmt):
        if isinstance(stmt, (ast.FunctionDef, ast.AsyncFunctionDef)):
            if _is_compiled(stmt):
                if self._lines.intersection(range(stmt.lineno, stmt.end_lineno + 1)):
                    self._file.problem = "a decorator compiles %s from its source" % stmt.name
                return
            self.body(stmt.body, is_start=True, head=range(stmt.lineno, _first_line(stmt.body[0])))
        elif isinstance(stmt, ast.ClassDef):
            self.body(stmt.body, is_start=True)
        else:
            for field in ("body", "orelse", "finalbody"):
                if isinstance(getattr(stmt, field, None), list):
                    self.body(getattr(stmt, field))
            for part in (*getattr(stmt, "handlers", ()), *getattr(stmt, "cases", ())):
                self.body(part.body)

    def _mark(self, lines, stmt):
        self._recorder.count += 1
        mark = self._recorder.count
        self._file.marks[mark] = lines
        return _call(_SENTINEL, "hit", [ast.Constant(mark)], stmt)


def _first_line(stmt):
    return min([stmt.lineno] + [decorator.lineno for decorator in getattr(stmt, "decorator_list", ())])


def _children(stmt):
    for field in ("body", "orelse", "finalbody"):
        for child in getattr(stmt, field, None) or ():
            yield child
    for part in (*getattr(stmt, "handlers", ()), *getattr(stmt, "cases", ())):
        for child in part.body:
            yield child


def _own_lines(stmt):
    """The lines of a statement without those of the statements in it; of a function, those of its decorators."""
    if isinstance(stmt, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return set(range(_first_line(stmt), stmt.lineno))
    lines = set(range(_first_line(stmt), stmt.end_lineno + 1))
    for child in _children(stmt):
        lines.difference_update(range(_first_line(child), child.end_lineno + 1))
    lines.add(stmt.lineno)
    return lines


def _is_docstring(stmt, index):
    return (
        index == 0
        and isinstance(stmt, ast.Expr)
        and isinstance(stmt.value, ast.Constant)
        and isinstance(stmt.value.value, str)
    )


def _is_future(stmt):
    return isinstance(stmt, ast.ImportFrom) and stmt.module == "__future__"


def _is_compiled(function):
    for decorator in function.decorator_list:
        target = decorator.func if isinstance(decorator, ast.Call) else decorator
        name = target.attr if isinstance(target, ast.Attribute) else getattr(target, "id", "")
        if name in _COMPILERS:
            return True
    return False

"""The reference of the public API, from its own signatures and docstrings."""

from __future__ import annotations

import inspect

import proofstone

HEAD = """# Python API

Generated from the functions' own docstrings by `make docs`; do not edit.

Everything that you can import from `proofstone` is listed here. Every other module is private and may change between
releases.

```python
from proofstone import check_change

report = check_change(".", verify=["python -m unittest"])
for line in report.checks:
    print(line.name, line.verdict)
print(report.outcome, report.confidence)
```

{doc}

## Functions

"""


def api_reference() -> str:
    """Return the page: each function with its signature and docstring, then the models and errors."""
    functions = [name for name in proofstone.__all__ if inspect.isfunction(getattr(proofstone, name))]
    classes = [name for name in proofstone.__all__ if inspect.isclass(getattr(proofstone, name))]
    module_doc = inspect.cleandoc(inspect.getmodule(proofstone.check_change).__doc__ or "")
    parts = [HEAD.format(doc=module_doc.partition("\n\n")[2])]
    parts += [_function(name) for name in functions]
    parts.append("## Models and errors\n\n| name | |\n|---|---|\n")
    parts += [f"| `{name}` | {_first_sentence(getattr(proofstone, name))} |\n" for name in classes]
    return "".join(parts)


def _function(name: str) -> str:
    function = getattr(proofstone, name)
    doc = inspect.getdoc(function) or ""
    summary, _, arguments = doc.partition("\n\nArgs:\n")
    lines = [f"### {name}\n", f"```text\n{_signature(name, function)}\n```\n", f"{summary}\n"]
    if arguments:
        rows = [line.strip().partition(": ") for line in arguments.splitlines()]
        lines.append("\n".join(["| argument | |", "|---|---|", *(f"| `{key}` | {text} |" for key, _, text in rows)]))
        lines.append("")
    return "\n".join(lines) + "\n"


def _signature(name: str, function: object) -> str:
    signature = inspect.signature(function)  # type: ignore[arg-type]
    parameters, has_star = [], False
    for parameter in signature.parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and not has_star:
            parameters.append("*")
            has_star = True
        default = "" if parameter.default is parameter.empty else f" = {parameter.default!r}"
        parameters.append(f"{parameter.name}: {parameter.annotation}{default}")
    inner = "".join(f"    {parameter},\n" for parameter in parameters)
    return f"{name}(\n{inner}) -> {signature.return_annotation}"


def _first_sentence(cls: type) -> str:
    doc = inspect.cleandoc(cls.__doc__ or "").replace("\n", " ")
    return doc.partition(". ")[0].rstrip(".") + "."

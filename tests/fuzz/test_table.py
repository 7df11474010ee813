"""The table of readers is whole: no module decodes outside text without being named in it."""

from __future__ import annotations

import ast
import importlib.util
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final

import proofstone
from proofstone.agents.backends.programs.known import PRESETS
from proofstone.agents.roles.registry import ROLES
from proofstone.check.models import ReportFormat
from tests.fuzz.readers import READERS

SOURCE: Final = Path(proofstone.__file__).parent
DECODERS: Final = {
    "JSONDecoder", "loads", "from_json", "model_validate_json", "validate_json", "YAML", "yaml_reader", "ParserCreate",
    "fromstring", "XMLParser", "literal_eval", "HTMLParser", "RawConfigParser", "ConfigParser", "read_string",
    "run_records", "run_cached_records", "b64decode", "decompress",
}  # fmt: skip
"""Names of calls that turn a text of others into values; `run_records` and `run_cached_records` are git's output."""
QUALIFIED: Final = {("ast", "parse"), ("shlex", "split"), ("shlex", "shlex"), ("json", "load"), ("tomllib", "load")}
_WORDS: Final = re.compile("|".join((*DECODERS, r"ast\.parse", r"shlex\.s", r"json\.load", r"tomllib\.load")))
EXEMPT: Final[Mapping[str, str]] = {
    "proofstone.app.init": "reads the record that it wrote into git's own folder, and refuses another",
    "proofstone.cli.init": "asks git only whether it lists any record",
    "proofstone.app.check": "reads the report of Proofstone's own check, by the hash that the ledger holds",
    "proofstone.common.parsing": "makes the reader that others use",
    "proofstone.agents.script_writer": "writes YAML",
    "proofstone.agents.roles.requests": "writes YAML",
    "proofstone.export.schemas": "reads schemas that are part of the package",
    "proofstone.prove.axes": "reads the axes of composed tricks that are part of the package",
    "proofstone.prove.compose": "reads the axes of composed tricks that are part of the package",
    "proofstone.prove.catalogue": "reads the catalogue that is part of the package",
    "proofstone.prove.trial": "reads the report of Proofstone's own check",
    "proofstone.prove.walls": "reads the report of Proofstone's own check, and what its own attempts print",
    "proofstone.agents.tools.grep": "reads what its own search process prints",
    "proofstone.agents.tools.searcher": "reads what the process that started it writes",
    "proofstone.pipeline.merged_tree": "reads JSON that SQLite makes of rows",
    "proofstone.sandbox.probe": "reads what it keeps for itself, and tries again if it cannot",
    "proofstone.sandbox.login_guard": "reads its own picture of the folders that it guards, and refuses another",
    "proofstone.ledger.daemon_setup": "reads what root wrote for the daemon, and refuses another's file",
    "proofstone.app.agents": "splits a command of the settings; one that cannot be split is left to the shell",
    "proofstone.agents.backends.programs.discovery": "splits a command of the settings, and refuses one that it cannot",
    "proofstone.git.store": "reads lists that it made itself, and splits commands of git's configuration",
    "proofstone.git.objects": "reads what git lists of an index that Proofstone has just made",
    "proofstone.agents.tools.comparison": "takes what git check-attr says by threes, as whole names",
    "proofstone.gate.preflight": "takes whole records as paths",
    "proofstone.git.session_work": "takes what git lists of work trees by its keys, and leaves out what has none",
    "proofstone.check.held_out": "splits a command of the person; one that cannot be split is left to the shell",
    "proofstone.app.pipeline": "takes whole records as paths",
    "proofstone.app.project_tools": "takes whole records as paths",
}
"""Modules that decode nothing of others', or that refuse whatever they cannot read, with the reason."""


def test_every_module_that_decodes_has_a_reader() -> None:
    named = {module for reader in READERS.values() for module in reader.modules}
    found = {module: calls for module, calls in _decoding().items() if module not in named and module not in EXEMPT}
    assert found == {}, "add a reader to tests/fuzz/readers, or a reason to EXEMPT"


def test_what_the_table_names_is_there() -> None:
    named = {module for reader in READERS.values() for module in reader.modules}
    assert [module for module in named | set(EXEMPT) if importlib.util.find_spec(module) is None] == []
    assert [module for module in EXEMPT if module not in _decoding()] == [], "these decode nothing any more"


def test_every_report_role_and_program_has_a_reader() -> None:
    formats = {f"report-{one.value}" for one in ReportFormat if one is not ReportFormat.EXIT_CODE}
    answers = {f"answer-{role.output.__name__}" for role in ROLES.values()}
    streams = {f"stream-{name}" for name, preset in PRESETS.items() if preset.stream is not None}
    assert formats | answers | streams <= set(READERS)


@cache
def _decoding() -> Mapping[str, list[str]]:
    """Return the modules of the product with the calls in them that decode."""
    found = {}
    for file in sorted(SOURCE.rglob("*.py")):
        parts = file.relative_to(SOURCE).with_suffix("").parts
        text = file.read_text("utf-8")
        if parts[0] == "testing" or "probes" in parts or not _WORDS.search(text):
            continue  # what tests stand on; what runs in the project's own interpreter; what decodes nothing
        calls = sorted({name for node in ast.walk(ast.parse(text)) if (name := _decoder(node))})
        if calls:
            found[".".join(("proofstone", *(part for part in parts if part != "__init__")))] = calls
    return found


def _decoder(node: ast.AST) -> str:
    """Return the name of the decoder that a node calls or derives from, or nothing."""
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id=module), attr=name)) if (module, name) in QUALIFIED:
            return f"{module}.{name}"
        case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name)) if name in DECODERS:
            return name
        case ast.Attribute(value=ast.Name(id="tomllib" | "json"), attr="loads"):
            return "loads"
        case ast.ClassDef(bases=bases):
            return next((base.id for base in bases if isinstance(base, ast.Name) and base.id in DECODERS), "")
    return ""

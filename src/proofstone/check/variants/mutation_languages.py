"""How each language is mutated, as data: the nodes of its grammar, the operators, and what is left alone.

Left alone is what tests rightly do not look at: logging, messages of errors, type hints, docstrings, representations
for debugging, and what runs only when a file is started as a program.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

_COMPARISONS: Final = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
_BOUNDARIES: Final = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}
_ARITHMETIC: Final = {
    "+": "-",
    "-": "+",
    "*": "/",
    "/": "*",
    "%": "*",
    "<<": ">>",
    ">>": "<<",
    "&": "|",
    "|": "&",
    "+=": "-=",
    "-=": "+=",
    "*=": "/=",
    "/=": "*=",
    "++": "--",
    "--": "++",
}
_BOOLEANS: Final = {"&&": "||", "||": "&&"}


@dataclass(frozen=True)
class MutationLanguage:
    """How one language is mutated."""

    operations: frozenset[str]
    """Nodes with an operator between or beside their operands."""
    conditions: Mapping[str, str]
    """Statements and expressions with a condition: type of the node → field, or the token before the condition."""
    negation: tuple[bytes, bytes]
    """What is put before and after a condition to negate it."""
    not_token: str
    containers: frozenset[str]
    """Nodes whose children are statements."""
    removable: frozenset[str]
    """Statements that can be taken away, and the rest still runs."""
    removed: bytes
    """What stands in the place of a statement that was taken away."""
    returns: frozenset[str]
    empty_result: bytes
    """What is returned instead; empty if the language has no such value for every type."""
    numbers: frozenset[str]
    strings: frozenset[str]
    truths: Mapping[str, str]
    silent: frozenset[str]
    """Nodes that nothing is changed in."""
    raising: frozenset[str]
    """Nodes that raise. Their texts are messages."""
    functions: frozenset[str]
    expression_bodies: frozenset[str] = frozenset()
    """Functions whose body may be an expression, which is their result."""
    silent_functions: frozenset[str] = frozenset()
    comparisons: Mapping[str, str] = field(default_factory=lambda: _COMPARISONS)
    boundaries: Mapping[str, str] = field(default_factory=lambda: _BOUNDARIES)
    arithmetic: Mapping[str, str] = field(default_factory=lambda: _ARITHMETIC)
    booleans: Mapping[str, str] = field(default_factory=lambda: _BOOLEANS)


LOGGING_CALL: Final = re.compile(
    r"(?:\w+(?:\([^()]*\))?\.)*_?(?:log|getlogger\([^()]*\)|logs|logger|logging|slog|console|warnings|tracing)\.\w+|(?:\w+\.)*log_\w+"
    r"|(?:trace|debug|info|warn|error|println|eprintln|print|eprint)!",
    re.IGNORECASE,
)
"""Calls that only tell a person something."""
MESSAGE_CALL: Final = re.compile(
    r"(?:\w+\.)*(?i:print|echo|secho|println|printf|fail|panic|errorf|add_argument|Option|Argument|Field|bail|anyhow)!?"
    r"|\w*(?:Error|Exception|Warning)",
)
"""Calls whose texts are messages for a person."""
MESSAGE_ARGUMENTS: Final = frozenset({"help", "description", "message", "msg", "title", "metavar", "doc", "label"})
DEBUG_GUARD: Final = re.compile(r"""TYPE_CHECKING|typing\.TYPE_CHECKING|__name__\s*==\s*['"]__main__['"]""")
"""Conditions of blocks that tests do not run."""
UNFINISHED: Final = re.compile(r"raise\s+NotImplementedError\b|raise\s*$")
"""Statements that mark what a subclass has to write, and handlers that pass an error on."""

_PYTHON: Final = MutationLanguage(
    operations=frozenset({"comparison_operator", "boolean_operator", "binary_operator", "augmented_assignment"}),
    conditions={
        "if_statement": "condition",
        "elif_clause": "condition",
        "while_statement": "condition",
        "conditional_expression": "if",
        "if_clause": "if",
    },
    negation=(b"not (", b")"),
    not_token="not",  # noqa: S106  a keyword of the language
    containers=frozenset({"block", "module", "expression_statement"}),
    removable=frozenset(
        {"call", "await", "augmented_assignment", "assignment", "raise_statement", "delete_statement", "yield"}
    ),
    removed=b"pass",
    returns=frozenset({"return_statement"}),
    empty_result=b"None",
    numbers=frozenset({"integer", "float"}),
    strings=frozenset({"string"}),
    truths={"true": "False", "false": "True"},
    silent=frozenset(
        {
            "comment",
            "type",
            "import_statement",
            "import_from_statement",
            "future_import_statement",
            "decorator",
            "assert_statement",
            "global_statement",
            "nonlocal_statement",
            "type_alias_statement",
        }
    ),
    raising=frozenset({"raise_statement"}),
    functions=frozenset({"function_definition"}),
    expression_bodies=frozenset({"lambda"}),
    silent_functions=frozenset({"__repr__"}),
    comparisons={**_COMPARISONS, "in": "not in", "not in": "in", "is": "is not", "is not": "is"},
    arithmetic={**_ARITHMETIC, "//": "*", "**": "*", "//=": "*=", "**=": "*="},
    booleans={"and": "or", "or": "and"},
)
_JAVASCRIPT: Final = MutationLanguage(
    operations=frozenset({"binary_expression", "augmented_assignment_expression", "update_expression"}),
    conditions={
        "if_statement": "condition",
        "while_statement": "condition",
        "do_statement": "condition",
        "ternary_expression": "condition",
    },
    negation=(b"!(", b")"),
    not_token="!",  # noqa: S106  an operator of the language
    containers=frozenset({"statement_block", "program"}),
    removable=frozenset({"expression_statement", "throw_statement"}),
    removed=b";",
    returns=frozenset({"return_statement"}),
    empty_result=b"undefined",
    numbers=frozenset({"number"}),
    strings=frozenset({"string"}),
    truths={"true": "false", "false": "true"},
    silent=frozenset(
        {
            "comment",
            "type_annotation",
            "type_arguments",
            "type_parameters",
            "interface_declaration",
            "type_alias_declaration",
            "ambient_declaration",
            "import_statement",
            "decorator",
        }
    ),
    raising=frozenset({"throw_statement"}),
    functions=frozenset({"function_declaration", "method_definition"}),
    expression_bodies=frozenset({"arrow_function"}),
    silent_functions=frozenset({"inspect"}),
    comparisons={**_COMPARISONS, "===": "!==", "!==": "==="},
    arithmetic={**_ARITHMETIC, "**": "*"},
    booleans={**_BOOLEANS, "??": "&&"},
)

MUTATION_LANGUAGES: Final[Mapping[str, MutationLanguage]] = {
    "python": _PYTHON,
    **dict.fromkeys(("javascript", "typescript", "tsx"), _JAVASCRIPT),
    "go": MutationLanguage(
        operations=frozenset({"binary_expression", "assignment_statement", "inc_statement", "dec_statement"}),
        conditions={"if_statement": "condition", "for_statement": "condition"},
        negation=(b"!(", b")"),
        not_token="!",  # noqa: S106  an operator of the language
        containers=frozenset({"statement_list"}),
        removable=frozenset({"expression_statement", "assignment_statement", "inc_statement", "dec_statement"}),
        removed=b"",
        returns=frozenset({"return_statement"}),
        empty_result=b"",
        numbers=frozenset({"int_literal", "float_literal"}),
        strings=frozenset({"interpreted_string_literal"}),
        truths={"true": "false", "false": "true"},
        silent=frozenset({"comment", "package_clause", "import_declaration", "parameter_list", "type_declaration"}),
        raising=frozenset(),
        functions=frozenset({"function_declaration", "method_declaration"}),
        silent_functions=frozenset({"GoString"}),
    ),
    "rust": MutationLanguage(
        operations=frozenset({"binary_expression", "compound_assignment_expr"}),
        conditions={"if_expression": "condition", "while_expression": "condition"},
        negation=(b"!(", b")"),
        not_token="!",  # noqa: S106  an operator of the language
        containers=frozenset({"block"}),
        removable=frozenset({"expression_statement"}),
        removed=b"",
        returns=frozenset({"return_expression"}),
        empty_result=b"Default::default()",
        numbers=frozenset({"integer_literal", "float_literal"}),
        strings=frozenset({"string_literal"}),
        truths={"true": "false", "false": "true"},
        silent=frozenset(
            {"line_comment", "block_comment", "use_declaration", "attribute_item", "inner_attribute_item", "parameters"}
        ),
        raising=frozenset(),
        functions=frozenset({"function_item"}),
    ),
    "java": MutationLanguage(
        operations=frozenset({"binary_expression", "assignment_expression", "update_expression"}),
        conditions={
            "if_statement": "condition",
            "while_statement": "condition",
            "do_statement": "condition",
            "ternary_expression": "condition",
        },
        negation=(b"!(", b")"),
        not_token="!",  # noqa: S106  an operator of the language
        containers=frozenset({"block", "constructor_body"}),
        removable=frozenset({"expression_statement"}),
        removed=b";",
        returns=frozenset({"return_statement"}),
        empty_result=b"",
        numbers=frozenset({"decimal_integer_literal", "decimal_floating_point_literal"}),
        strings=frozenset({"string_literal"}),
        truths={"true": "false", "false": "true"},
        silent=frozenset(
            {
                "line_comment",
                "block_comment",
                "import_declaration",
                "package_declaration",
                "annotation",
                "marker_annotation",
                "formal_parameters",
                "assert_statement",
            }
        ),
        raising=frozenset({"throw_statement"}),
        functions=frozenset({"method_declaration"}),
        silent_functions=frozenset({"toString", "hashCode"}),
    ),
}

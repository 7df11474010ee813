"""Carry out the tool calls of an agent, within the limits of its role. Every call gets a result.

`BudgetedTools` limits how often a researcher of the plan gate may use its tools; `agents.rules.tool_budgets` says how
often. It is enforced at the call, whatever the agent was told or says. A call that was carried out counts, even if it
found nothing. A call that was refused does not count.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from functools import cache
from typing import Final, Protocol, TypeVar, get_args

from pydantic import JsonValue, ValidationError

from proofstone.agents.models import RefusalRule, ToolCall, ToolResult, ToolSpec
from proofstone.agents.roles.models.plan_gate import Mode
from proofstone.agents.rules.tool_budgets import KINDS, BudgetKind, ToolBudget, tools_of, why_no_search
from proofstone.agents.rules.tool_rules import FailedError, RefusedError, in_words, invalid, shortened, shown, unlisted
from proofstone.agents.tools import files as reading
from proofstone.agents.tools import files as writing
from proofstone.agents.tools import services as memory
from proofstone.agents.tools import services as web
from proofstone.agents.tools.grep import grep
from proofstone.agents.tools.history import History, ask
from proofstone.agents.tools.models import (
    ARGUMENTS,
    RUN_SECONDS,
    Delete,
    Edit,
    GitDiff,
    GitLog,
    GitShow,
    Glob,
    Grep,
    List,
    MemorySearch,
    Read,
    Run,
    SearchReason,
    Symbols,
    Tool,
    WebFetch,
    WebSearch,
    Write,
)
from proofstone.agents.tools.services import run
from proofstone.agents.tools.symbols import symbols
from proofstone.agents.tools.tool_context import Deadline, Ground
from proofstone.agents.tools.tree import Tree
from proofstone.common.models import Contract

_MAX_NAME_CHARS: Final = 200
_MAX_SECONDS: Final = 30.0
"""Seconds that any tool but `run` may take."""

_Arguments = TypeVar("_Arguments", bound=Contract)
_Handler = Callable[[Ground, Contract, Deadline], str]


class Tools(Protocol):
    """The tools that an agent can call: a toolbox, or a wrapper that adds a rule."""

    @property
    def specs(self) -> tuple[ToolSpec, ...]: ...

    def call(self, call: ToolCall, seconds: float | None = None) -> ToolResult: ...

    def within(self, scope: tuple[str, ...]) -> Tools:
        """Return the same tools with another scope of files that may be changed."""
        ...


class Toolbox:
    """Carries out the tool calls of one agent."""

    def __init__(self, ground: Ground, allowed: Collection[Tool]) -> None:
        """Offer the allowed tools, except those that the ground cannot serve: commands without a sandbox, the web
        without a provider."""
        self._ground = ground
        self._allowed = allowed
        self._tools = {tool.value: tool for tool in Tool if tool in allowed and _is_available(ground, tool)}
        self.specs: tuple[ToolSpec, ...] = tuple(map(spec, self._tools.values()))

    def within(self, scope: tuple[str, ...]) -> Toolbox:
        return Toolbox(replace(self._ground, scope=scope), self._allowed)

    def call(self, call: ToolCall, seconds: float | None = None) -> ToolResult:
        """Carry out a call. `seconds` is what is left of the dispatch; no call takes longer."""
        try:
            text = self._run_tool(call, seconds)
        except RefusedError as refused:
            return self._build_result(call, refused.text, refused=refused)
        except FailedError as failed:
            return self._build_result(call, failed.text, ok=False)
        except FileNotFoundError:
            missing = f"There is no {_render_path(call)}. Use `list` or `glob` to see what there is."
            return self._build_result(call, missing, ok=False)
        except OSError as error:  # the file that the agent named cannot be read or written
            return self._build_result(call, f"{_render_path(call)}: {error.strerror}.", ok=False)
        return self._build_result(call, text)

    def _build_result(
        self, call: ToolCall, text: str, *, ok: bool = True, refused: RefusedError | None = None
    ) -> ToolResult:
        """Return the result for the agent and the ledger, without the user's secrets."""
        return _build_result(call, self._ground.mask.text(text), ok=ok, refused=refused)

    def _run_tool(self, call: ToolCall, seconds: float | None) -> str:
        tool = self._tools.get(call.name)
        if tool is None:
            raise unlisted(call.name, self._tools)
        arguments = _validate_arguments(tool, call)
        limit = RUN_SECONDS if tool is Tool.RUN else _MAX_SECONDS
        deadline = Deadline(limit if seconds is None else min(limit, seconds), self._ground.cancel)
        if deadline.over:
            raise FailedError("There is no time left for this call.")
        return _HANDLERS[tool](self._ground, arguments, deadline)


@cache
def spec(tool: Tool) -> ToolSpec:
    """Return the description of a tool for an agent."""
    schema = ARGUMENTS[tool].model_json_schema()
    schema["properties"] = {name: _remove_title(field) for name, field in schema["properties"].items()}
    description = " ".join(str(schema.pop("description")).split())
    return ToolSpec(name=tool.value, description=description, parameters=_remove_title(schema))


def _remove_title(schema: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """Remove the title, which only repeats the name."""
    return {key: value for key, value in schema.items() if key != "title"}


def _is_available(ground: Ground, tool: Tool) -> bool:
    match tool:
        case Tool.GIT_LOG | Tool.GIT_SHOW | Tool.GIT_DIFF:
            return ground.git is not None and ground.commit is not None
        case Tool.RUN:
            return ground.run is not None
        case Tool.MEMORY_SEARCH:
            return ground.memory is not None
        case Tool.WEB_SEARCH:
            return ground.web is not None and ground.web.search is not None
        case Tool.WEB_FETCH:
            return ground.web is not None and ground.web.fetch is not None
        case _:
            return True


def _validate_arguments(tool: Tool, call: ToolCall) -> Contract:
    if call.malformed:
        raise invalid(tool, f"The arguments could not be read: {shortened(call.malformed, 500)}")
    try:
        return ARGUMENTS[tool].model_validate(dict(call.arguments))
    except ValidationError as error:
        raise invalid(tool, in_words(error)) from error


def _render_path(call: ToolCall) -> str:
    path = call.arguments.get("path")
    return shown(path) if isinstance(path, str) and path else "such file"


def _build_result(call: ToolCall, text: str, *, ok: bool = True, refused: RefusedError | None = None) -> ToolResult:
    rule = refused.rule if refused else None
    return ToolResult(
        call_id=call.id, name=call.name[:_MAX_NAME_CHARS], text=text, ok=ok and rule is None, refused=rule
    )


def _build_handler(kind: type[_Arguments], function: Callable[[Ground, _Arguments, Deadline], str]) -> _Handler:
    """Wrap a tool for the table of handlers. Its arguments have been validated as the kind that it takes."""

    def handle(ground: Ground, arguments: Contract, deadline: Deadline) -> str:
        if not isinstance(arguments, kind):
            raise AssertionError(f"{kind.__name__} was validated")
        return function(ground, arguments, deadline)

    return handle


def _build_tree_handler(kind: type[_Arguments], function: Callable[[Tree, _Arguments, Deadline], str]) -> _Handler:
    return _build_handler(kind, lambda ground, arguments, deadline: function(Tree(ground), arguments, deadline))


def _build_history_handler(kind: type[_Arguments], function: Callable[[History, _Arguments], str]) -> _Handler:
    return _build_handler(
        kind, lambda ground, arguments, deadline: ask(ground, deadline, lambda history: function(history, arguments))
    )


_HANDLERS: Final[dict[Tool, _Handler]] = {
    Tool.READ: _build_tree_handler(Read, reading.read),
    Tool.LIST: _build_tree_handler(List, reading.list_folder),
    Tool.GLOB: _build_tree_handler(Glob, reading.glob),
    Tool.GREP: _build_tree_handler(Grep, grep),
    Tool.GIT_LOG: _build_history_handler(GitLog, History.log),
    Tool.GIT_SHOW: _build_history_handler(GitShow, History.show),
    Tool.GIT_DIFF: _build_history_handler(GitDiff, History.diff),
    Tool.SYMBOLS: _build_tree_handler(Symbols, symbols),
    Tool.WRITE: _build_tree_handler(Write, writing.write),
    Tool.EDIT: _build_tree_handler(Edit, writing.edit),
    Tool.DELETE: _build_tree_handler(Delete, writing.delete),
    Tool.RUN: _build_handler(Run, run),
    Tool.MEMORY_SEARCH: _build_handler(MemorySearch, memory.search),
    Tool.WEB_SEARCH: _build_handler(WebSearch, web.web_search),
    Tool.WEB_FETCH: _build_handler(WebFetch, web.fetch),
}


_REASONS: Final = frozenset(get_args(SearchReason))


class ToolCounts:
    """The tools used in one iteration, by all modes, which work in parallel."""

    def __init__(self, budget: ToolBudget) -> None:
        self._budget = budget
        self._lock = threading.Lock()
        self._used: Counter[tuple[Mode, BudgetKind]] = Counter()

    def take(self, mode: Mode, kind: BudgetKind) -> str:
        """Count one more use. If none is left, return why not, as a message to the agent."""
        with self._lock:
            limit, combined = self._budget.limit(mode, kind), self._budget.combined(kind)
            if self._used[mode, kind] >= limit:
                return _render_exhausted(kind, f"you had {limit}" if limit else "you have none in this mode")
            if sum(used for (_, used_kind), used in self._used.items() if used_kind is kind) >= combined:
                return _render_exhausted(kind, f"all modes together had {combined}")
            self._used[mode, kind] += 1
            return ""

    def give_back(self, mode: Mode, kind: BudgetKind) -> None:
        """Undo `take`: the use was refused."""
        with self._lock:
            self._used[mode, kind] -= 1

    def seen(self, mode: Mode, results: Iterable[ToolResult]) -> None:
        """Count the results that an earlier process recorded: a resumed run gets no fresh budget."""
        for result in results:
            if result.refused is None and not result.repeated and (kind := _find_budget_kind(result.name)):
                with self._lock:
                    self._used[mode, kind] += 1


class BudgetedTools:
    """Limit the tools of one mode to its budget. Implements `Tools`."""

    def __init__(self, tools: Tools, mode: Mode, counts: ToolCounts) -> None:
        self._tools = tools
        self._mode = mode
        self._counts = counts

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """The tools, without those that could not be used even once."""
        unusable = KINDS.keys() - tools_of(self._mode)
        return tuple(spec for spec in self._tools.specs if spec.name not in unusable)

    def within(self, scope: tuple[str, ...]) -> BudgetedTools:
        return BudgetedTools(self._tools.within(scope), self._mode, self._counts)

    def call(self, call: ToolCall, seconds: float | None = None) -> ToolResult:
        kind = _find_budget_kind(call.name)
        if kind is None or not self._offers(call.name):
            return self._tools.call(call, seconds)  # the tool is not counted, or is refused there
        if why := self._find_search_refusal(call) or self._counts.take(self._mode, kind):
            return ToolResult(call_id=call.id, name=call.name, text=why, ok=False, refused=RefusalRule.BUDGET)
        result = self._tools.call(call, seconds)
        if result.refused is not None:
            self._counts.give_back(self._mode, kind)
        return result

    def _offers(self, name: str) -> bool:
        return any(spec.name == name for spec in self._tools.specs)

    def _find_search_refusal(self, call: ToolCall) -> str:
        """Return why a search is refused for its reason, else an empty text. The tool itself reports an invalid
        reason."""
        reason = call.arguments.get("reason")
        if call.name != Tool.WEB_SEARCH or not isinstance(reason, str) or reason not in _REASONS:
            return ""
        return why_no_search(self._mode, reason)


def _find_budget_kind(name: str) -> BudgetKind | None:
    return KINDS[Tool(name)] if name in KINDS else None


def _render_exhausted(kind: BudgetKind, budget: str) -> str:
    return (
        f"No more {kind} calls: {budget} for this iteration. "
        "Answer with what you know, and say what you could not check."
    )

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

from pydantic import ValidationError

from proofstone.agents.models import RefusalRule, ToolCall, ToolResult, ToolSpec
from proofstone.agents.roles.models.plan_gate import ResearchMode
from proofstone.agents.rules.schemas import compact_schema
from proofstone.agents.rules.tool_budgets import TOOL_KINDS, BudgetKind, ToolBudget, explain_search_refusal, find_tools
from proofstone.agents.rules.tool_rules import (
    ToolFailedError,
    ToolRefusedError,
    format_path,
    format_validation_error,
    invalid_arguments_error,
    shorten_text,
    unlisted_tool_error,
)
from proofstone.agents.tools import files, services
from proofstone.agents.tools.grep import grep
from proofstone.agents.tools.history import History, query_history
from proofstone.agents.tools.models import (
    ARGUMENTS,
    MAX_RUN_SECONDS,
    DeleteArguments,
    DisputeArguments,
    EditArguments,
    GitDiffArguments,
    GitLogArguments,
    GitShowArguments,
    GlobArguments,
    GrepArguments,
    ListArguments,
    MemorySearchArguments,
    ReadArguments,
    RunArguments,
    SearchReason,
    SymbolsArguments,
    Tool,
    WebFetchArguments,
    WebSearchArguments,
    WriteArguments,
)
from proofstone.agents.tools.services import run_command
from proofstone.agents.tools.symbols import show_symbols
from proofstone.agents.tools.tool_context import ToolContext, ToolDeadline
from proofstone.agents.tools.tree import FileTree
from proofstone.common.models import FrozenModel

_MAX_NAME_CHARS: Final = 200
_MAX_SECONDS: Final = 30.0
"""Seconds that any tool but `run` may take."""

_Arguments = TypeVar("_Arguments", bound=FrozenModel)
_Handler = Callable[[ToolContext, FrozenModel, ToolDeadline], str]


class Tools(Protocol):
    """The tools that an agent can call: a toolbox, or a wrapper that adds a rule."""

    @property
    def specs(self) -> tuple[ToolSpec, ...]: ...

    def call(self, call: ToolCall, seconds: float | None = None) -> ToolResult: ...

    def with_scope(self, scope: tuple[str, ...]) -> Tools:
        """Return the same tools with another scope of files that may be changed."""
        ...


class Toolbox:
    """Carries out the tool calls of one agent."""

    def __init__(self, ground: ToolContext, allowed: Collection[Tool]) -> None:
        """Offer the allowed tools, except those that the ground cannot serve: commands without a sandbox, the web
        without a provider."""
        self._ground = ground
        self._allowed = allowed
        self._tools = {tool.value: tool for tool in Tool if tool in allowed and _is_available(ground, tool)}
        self.specs: tuple[ToolSpec, ...] = tuple(map(build_spec, self._tools.values()))

    def with_scope(self, scope: tuple[str, ...]) -> Toolbox:
        return Toolbox(replace(self._ground, scope=scope), self._allowed)

    def call(self, call: ToolCall, seconds: float | None = None) -> ToolResult:
        """Carry out a call. `seconds` is what is left of the dispatch; no call takes longer."""
        try:
            text = self._run_tool(call, seconds)
        except ToolRefusedError as refused:
            return self._build_result(call, refused.text, refused=refused)
        except ToolFailedError as failed:
            return self._build_result(call, failed.text, ok=False)
        except FileNotFoundError:
            missing = f"There is no {_render_path(call)}. Use `list` or `glob` to see what there is."
            return self._build_result(call, missing, ok=False)
        except OSError as error:  # the file that the agent named cannot be read or written
            return self._build_result(call, f"{_render_path(call)}: {error.strerror}.", ok=False)
        return self._build_result(call, text)

    def _build_result(
        self, call: ToolCall, text: str, *, ok: bool = True, refused: ToolRefusedError | None = None
    ) -> ToolResult:
        """Return the result for the agent and the ledger, without the user's secrets."""
        return _build_result(call, self._ground.mask.mask_text(text), ok=ok, refused=refused)

    def _run_tool(self, call: ToolCall, seconds: float | None) -> str:
        tool = self._tools.get(call.name)
        if tool is None:
            raise unlisted_tool_error(call.name, self._tools)
        arguments = _validate_arguments(tool, call)
        limit = MAX_RUN_SECONDS if tool is Tool.RUN else _MAX_SECONDS
        deadline = ToolDeadline(limit if seconds is None else min(limit, seconds), self._ground.cancel)
        if deadline.is_over:
            raise ToolFailedError("There is no time left for this call.")
        return _HANDLERS[tool](self._ground, arguments, deadline)


@cache
def build_spec(tool: Tool) -> ToolSpec:
    """Return the description of a tool for an agent."""
    schema = ARGUMENTS[tool].model_json_schema()
    description = " ".join(str(schema["description"]).split())
    return ToolSpec(name=tool.value, description=description, parameters=compact_schema(schema))


def _is_available(ground: ToolContext, tool: Tool) -> bool:
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
        case Tool.DISPUTE:
            return ground.disputes is not None
        case _:
            return True


def _validate_arguments(tool: Tool, call: ToolCall) -> FrozenModel:
    if call.malformed:
        raise invalid_arguments_error(tool, f"The arguments could not be read: {shorten_text(call.malformed, 500)}")
    try:
        return ARGUMENTS[tool].model_validate(dict(call.arguments))
    except ValidationError as error:
        raise invalid_arguments_error(tool, format_validation_error(error)) from error


def _render_path(call: ToolCall) -> str:
    path = call.arguments.get("path")
    return format_path(path) if isinstance(path, str) and path else "such file"


def _build_result(call: ToolCall, text: str, *, ok: bool = True, refused: ToolRefusedError | None = None) -> ToolResult:
    rule = refused.rule if refused else None
    return ToolResult(
        call_id=call.id, name=call.name[:_MAX_NAME_CHARS], text=text, ok=ok and rule is None, refused=rule
    )


def _build_handler(
    kind: type[_Arguments], function: Callable[[ToolContext, _Arguments, ToolDeadline], str]
) -> _Handler:
    """Wrap a tool for the table of handlers. Its arguments have been validated as the kind that it takes."""

    def handle(ground: ToolContext, arguments: FrozenModel, deadline: ToolDeadline) -> str:
        if not isinstance(arguments, kind):
            raise AssertionError(f"{kind.__name__} was validated")
        return function(ground, arguments, deadline)

    return handle


def _build_tree_handler(
    kind: type[_Arguments], function: Callable[[FileTree, _Arguments, ToolDeadline], str]
) -> _Handler:
    return _build_handler(kind, lambda ground, arguments, deadline: function(FileTree(ground), arguments, deadline))


def _build_history_handler(kind: type[_Arguments], function: Callable[[History, _Arguments], str]) -> _Handler:
    return _build_handler(
        kind,
        lambda ground, arguments, deadline: query_history(
            ground, deadline, lambda history: function(history, arguments)
        ),
    )


_HANDLERS: Final[dict[Tool, _Handler]] = {
    Tool.READ: _build_tree_handler(ReadArguments, files.read_file),
    Tool.LIST: _build_tree_handler(ListArguments, files.list_folder),
    Tool.GLOB: _build_tree_handler(GlobArguments, files.find_files),
    Tool.GREP: _build_tree_handler(GrepArguments, grep),
    Tool.GIT_LOG: _build_history_handler(GitLogArguments, History.log),
    Tool.GIT_SHOW: _build_history_handler(GitShowArguments, History.show),
    Tool.GIT_DIFF: _build_history_handler(GitDiffArguments, History.diff),
    Tool.SYMBOLS: _build_tree_handler(SymbolsArguments, show_symbols),
    Tool.WRITE: _build_tree_handler(WriteArguments, files.write_file),
    Tool.EDIT: _build_tree_handler(EditArguments, files.edit_file),
    Tool.DELETE: _build_tree_handler(DeleteArguments, files.delete_file),
    Tool.RUN: _build_handler(RunArguments, run_command),
    Tool.MEMORY_SEARCH: _build_handler(MemorySearchArguments, services.search_memory),
    Tool.WEB_SEARCH: _build_handler(WebSearchArguments, services.search_web),
    Tool.WEB_FETCH: _build_handler(WebFetchArguments, services.fetch_page),
    Tool.DISPUTE: _build_handler(DisputeArguments, services.record_dispute),
}


_REASONS: Final = frozenset(get_args(SearchReason))


class ToolCounts:
    """The tools used in one iteration, by all modes, which work in parallel."""

    def __init__(self, budget: ToolBudget) -> None:
        self._budget = budget
        self._lock = threading.Lock()
        self._used: Counter[tuple[ResearchMode, BudgetKind]] = Counter()

    def take(self, mode: ResearchMode, kind: BudgetKind) -> str:
        """Count one more use. If none is left, return why not, as a message to the agent."""
        with self._lock:
            limit, combined = self._budget.limit(mode, kind), self._budget.combined_limit(kind)
            if self._used[mode, kind] >= limit:
                return _render_exhausted(kind, f"you had {limit}" if limit else "you have none in this mode")
            if sum(used for (_, used_kind), used in self._used.items() if used_kind is kind) >= combined:
                return _render_exhausted(kind, f"all modes together had {combined}")
            self._used[mode, kind] += 1
            return ""

    def give_back(self, mode: ResearchMode, kind: BudgetKind) -> None:
        """Undo `take`: the use was refused."""
        with self._lock:
            self._used[mode, kind] -= 1

    def count_recorded(self, mode: ResearchMode, results: Iterable[ToolResult]) -> None:
        """Count the results that an earlier process recorded: a resumed run gets no fresh budget."""
        for result in results:
            if result.refused is None and not result.repeated and (kind := _find_budget_kind(result.name)):
                with self._lock:
                    self._used[mode, kind] += 1


class BudgetedTools:
    """Limit the tools of one mode to its budget. Implements `Tools`."""

    def __init__(self, tools: Tools, mode: ResearchMode, counts: ToolCounts) -> None:
        self._tools = tools
        self._mode = mode
        self._counts = counts

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """The tools, without those that could not be used even once."""
        unusable = TOOL_KINDS.keys() - find_tools(self._mode)
        return tuple(spec for spec in self._tools.specs if spec.name not in unusable)

    def with_scope(self, scope: tuple[str, ...]) -> BudgetedTools:
        return BudgetedTools(self._tools.with_scope(scope), self._mode, self._counts)

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
        return explain_search_refusal(self._mode, reason)


def _find_budget_kind(name: str) -> BudgetKind | None:
    return TOOL_KINDS[Tool(name)] if name in TOOL_KINDS else None


def _render_exhausted(kind: BudgetKind, budget: str) -> str:
    return (
        f"No more {kind} calls: {budget} for this iteration. "
        "Answer with what you know, and say what you could not check."
    )

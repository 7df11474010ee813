"""An agent's tools, held to what its role may do. Whatever an agent asks for, it gets a result.

A researcher's tools at the plan gate, each to be used so often and no more. Held at the call, whatever the agent was
told or says; how often is `agents.rules.tool_budgets`.

What counts is a call that was carried out, also one that came to nothing. A call that was refused does not, whoever
refused it.
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

_NAME: Final = 200
_SECONDS: Final = 30.0
"""What any tool but `run` may take."""

_Arguments = TypeVar("_Arguments", bound=Contract)
_Way = Callable[[Ground, Contract, Deadline], str]


class Tools(Protocol):
    """What an agent can call: a toolbox, or one with a rule of its own around it."""

    @property
    def specs(self) -> tuple[ToolSpec, ...]: ...

    def call(self, call: ToolCall, seconds: float | None = None) -> ToolResult: ...

    def within(self, scope: tuple[str, ...]) -> Tools:
        """The same tools, where other files may be changed."""
        ...


class Toolbox:
    def __init__(self, ground: Ground, allowed: Collection[Tool]) -> None:
        """What the ground cannot serve (commands without a sandbox, the web without a provider) the agent is not
        given."""
        self._ground = ground
        self._allowed = allowed
        self._tools = {tool.value: tool for tool in Tool if tool in allowed and _served(ground, tool)}
        self.specs: tuple[ToolSpec, ...] = tuple(map(spec, self._tools.values()))

    def within(self, scope: tuple[str, ...]) -> Toolbox:
        return Toolbox(replace(self._ground, scope=scope), self._allowed)

    def call(self, call: ToolCall, seconds: float | None = None) -> ToolResult:
        """`seconds`: what is left of the dispatch; no call takes longer."""
        try:
            text = self._carried_out(call, seconds)
        except RefusedError as refused:
            return self._result(call, refused.text, refused=refused)
        except FailedError as failed:
            return self._result(call, failed.text, ok=False)
        except FileNotFoundError:
            return self._result(call, f"There is no {_named(call)}. `list` and `glob` show what there is.", ok=False)
        except OSError as error:  # what the agent named cannot be read or written
            return self._result(call, f"{_named(call)}: {error.strerror}.", ok=False)
        return self._result(call, text)

    def _result(self, call: ToolCall, text: str, *, ok: bool = True, refused: RefusedError | None = None) -> ToolResult:
        """The result as the agent and the ledger get it: without the person's secrets."""
        return _result(call, self._ground.mask.text(text), ok=ok, refused=refused)

    def _carried_out(self, call: ToolCall, seconds: float | None) -> str:
        tool = self._tools.get(call.name)
        if tool is None:
            raise unlisted(call.name, self._tools)
        arguments = _validated(tool, call)
        longest = RUN_SECONDS if tool is Tool.RUN else _SECONDS
        deadline = Deadline(longest if seconds is None else min(longest, seconds), self._ground.cancel)
        if deadline.over:
            raise FailedError("There is no time left for this call.")
        return _WAYS[tool](self._ground, arguments, deadline)


@cache
def spec(tool: Tool) -> ToolSpec:
    """What an agent is told of a tool."""
    schema = ARGUMENTS[tool].model_json_schema()
    schema["properties"] = {name: _untitled(field) for name, field in schema["properties"].items()}
    told = " ".join(str(schema.pop("description")).split())
    return ToolSpec(name=tool.value, description=told, parameters=_untitled(schema))


def _untitled(schema: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """Titles repeat the names."""
    return {key: value for key, value in schema.items() if key != "title"}


def _served(ground: Ground, tool: Tool) -> bool:
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


def _validated(tool: Tool, call: ToolCall) -> Contract:
    if call.malformed:
        raise invalid(tool, f"They could not be read: {shortened(call.malformed, 500)}")
    try:
        return ARGUMENTS[tool].model_validate(dict(call.arguments))
    except ValidationError as error:
        raise invalid(tool, in_words(error)) from error


def _named(call: ToolCall) -> str:
    path = call.arguments.get("path")
    return shown(path) if isinstance(path, str) and path else "such file"


def _result(call: ToolCall, text: str, *, ok: bool = True, refused: RefusedError | None = None) -> ToolResult:
    rule = refused.rule if refused else None
    return ToolResult(call_id=call.id, name=call.name[:_NAME], text=text, ok=ok and rule is None, refused=rule)


def _way(kind: type[_Arguments], do: Callable[[Ground, _Arguments, Deadline], str]) -> _Way:
    """A tool as one of many: its arguments are of the kind that it was made for."""

    def carry_out(ground: Ground, arguments: Contract, deadline: Deadline) -> str:
        if not isinstance(arguments, kind):
            raise AssertionError(f"{kind.__name__} was validated")
        return do(ground, arguments, deadline)

    return carry_out


def _in_tree(kind: type[_Arguments], do: Callable[[Tree, _Arguments, Deadline], str]) -> _Way:
    return _way(kind, lambda ground, arguments, deadline: do(Tree(ground), arguments, deadline))


def _of_history(kind: type[_Arguments], do: Callable[[History, _Arguments], str]) -> _Way:
    return _way(kind, lambda ground, arguments, deadline: ask(ground, deadline, lambda history: do(history, arguments)))


_WAYS: Final[dict[Tool, _Way]] = {
    Tool.READ: _in_tree(Read, reading.read),
    Tool.LIST: _in_tree(List, reading.list_folder),
    Tool.GLOB: _in_tree(Glob, reading.glob),
    Tool.GREP: _in_tree(Grep, grep),
    Tool.GIT_LOG: _of_history(GitLog, History.log),
    Tool.GIT_SHOW: _of_history(GitShow, History.show),
    Tool.GIT_DIFF: _of_history(GitDiff, History.diff),
    Tool.SYMBOLS: _in_tree(Symbols, symbols),
    Tool.WRITE: _in_tree(Write, writing.write),
    Tool.EDIT: _in_tree(Edit, writing.edit),
    Tool.DELETE: _in_tree(Delete, writing.delete),
    Tool.RUN: _way(Run, run),
    Tool.MEMORY_SEARCH: _way(MemorySearch, memory.search),
    Tool.WEB_SEARCH: _way(WebSearch, web.web_search),
    Tool.WEB_FETCH: _way(WebFetch, web.fetch),
}


_REASONS: Final = frozenset(get_args(SearchReason))


class ToolCounts:
    """What has been used in one iteration, by all modes; they work beside each other."""

    def __init__(self, budget: ToolBudget) -> None:
        self._budget = budget
        self._lock = threading.Lock()
        self._used: Counter[tuple[Mode, BudgetKind]] = Counter()

    def take(self, mode: Mode, kind: BudgetKind) -> str:
        """One more is used; or, if there is none left, why not, in words for the agent."""
        with self._lock:
            limit, combined = self._budget.limit(mode, kind), self._budget.combined(kind)
            if self._used[mode, kind] >= limit:
                return _spent(kind, f"you had {limit}" if limit else "you have none in this mode")
            if sum(used for (_, what), used in self._used.items() if what is kind) >= combined:
                return _spent(kind, f"all modes together had {combined}")
            self._used[mode, kind] += 1
            return ""

    def give_back(self, mode: Mode, kind: BudgetKind) -> None:
        """What was taken was not used."""
        with self._lock:
            self._used[mode, kind] -= 1

    def seen(self, mode: Mode, results: Iterable[ToolResult]) -> None:
        """What an earlier process has on record: whoever goes on has no fresh budget."""
        for result in results:
            if result.refused is None and not result.repeated and (kind := _kind(result.name)):
                with self._lock:
                    self._used[mode, kind] += 1


class BudgetedTools:
    """Implements `proofstone.agents.tools.toolbox.Tools` around those of one mode."""

    def __init__(self, tools: Tools, mode: Mode, counts: ToolCounts) -> None:
        self._tools = tools
        self._mode = mode
        self._counts = counts

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """Without those that could not be used once."""
        unusable = KINDS.keys() - tools_of(self._mode)
        return tuple(spec for spec in self._tools.specs if spec.name not in unusable)

    def within(self, scope: tuple[str, ...]) -> BudgetedTools:
        return BudgetedTools(self._tools.within(scope), self._mode, self._counts)

    def call(self, call: ToolCall, seconds: float | None = None) -> ToolResult:
        kind = _kind(call.name)
        if kind is None or not self._offers(call.name):
            return self._tools.call(call, seconds)  # nobody counts it, or it is refused there
        if why := self._why_not(call) or self._counts.take(self._mode, kind):
            return ToolResult(call_id=call.id, name=call.name, text=why, ok=False, refused=RefusalRule.BUDGET)
        result = self._tools.call(call, seconds)
        if result.refused is not None:
            self._counts.give_back(self._mode, kind)
        return result

    def _offers(self, name: str) -> bool:
        return any(spec.name == name for spec in self._tools.specs)

    def _why_not(self, call: ToolCall) -> str:
        """Of a search for the wrong reason. What is no reason at all is for the tool itself to say."""
        reason = call.arguments.get("reason")
        if call.name != Tool.WEB_SEARCH or not isinstance(reason, str) or reason not in _REASONS:
            return ""
        return why_no_search(self._mode, reason)


def _kind(name: str) -> BudgetKind | None:
    return KINDS[Tool(name)] if name in KINDS else None


def _spent(kind: BudgetKind, had: str) -> str:
    return (
        f"No more {kind} calls: {had} for this iteration. Answer with what you know, and say what you could not check."
    )

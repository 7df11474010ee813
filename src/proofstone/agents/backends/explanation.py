"""Show what a backend would be sent, part by part, with the number of tokens of each."""

from __future__ import annotations

import json
from dataclasses import dataclass

from proofstone.agents.backends import Backend
from proofstone.agents.backends.api.backend import ApiBackend
from proofstone.agents.backends.transcript import render_entry, render_prompt
from proofstone.agents.models import Conversation, DispatchKey, EngineMessage
from proofstone.agents.roles.role import Role, format_request
from proofstone.agents.rules.token_count import estimate_tokens
from proofstone.agents.tools.toolbox import build_spec
from proofstone.common.models import FrozenModel


@dataclass(frozen=True)
class PromptPart:
    """A part of what is sent."""

    name: str
    text: str

    @property
    def tokens(self) -> int:
        """The estimated number of tokens."""
        return estimate_tokens(self.text)


def build_opening(role: Role, request: FrozenModel) -> Conversation:
    """Return the conversation of a dispatch as it begins."""
    return Conversation(
        occasion=DispatchKey(run_id="explained", role=role.name),
        instructions=role.instructions,
        tools=tuple(build_spec(tool) for tool in sorted(role.tools)),
        output_schema=role.output_schema,
        entries=(EngineMessage(text=format_request(role, request)),),
        edits=role.edits,
    )


def explain_prompt(conversation: Conversation, backend: Backend | None) -> tuple[PromptPart, ...]:
    """Return the parts in the order in which they are sent. A backend that is no model gets one text."""
    if isinstance(backend, ApiBackend):
        return _explain_request(conversation, backend)
    return (PromptPart("prompt", render_prompt(conversation)),)


def _explain_request(conversation: Conversation, backend: ApiBackend) -> tuple[PromptPart, ...]:
    from proofstone.agents.backends.api.session import build_request_parameters  # takes seconds to import

    parameters = build_request_parameters(backend.choice, conversation)
    parts = [PromptPart("instructions", part.content) for part in parameters.instruction_parts or ()]
    if tools := parameters.function_tools:
        lines = [
            json.dumps(
                {"name": tool.name, "description": tool.description, "parameters": tool.parameters_json_schema},
                ensure_ascii=False,
            )
            for tool in tools
        ]
        parts.append(PromptPart(f"{len(tools)} tools", "\n".join(lines)))
    for tool in parameters.output_tools:
        text = json.dumps(tool.parameters_json_schema, ensure_ascii=False)
        parts.append(PromptPart(f"the tool `{tool.name}`, which takes the answer", f"{tool.description}\n{text}"))
    if parameters.output_object is not None:
        text = json.dumps(parameters.output_object.json_schema, ensure_ascii=False)
        parts.append(PromptPart("the schema that the server holds the answer to", text))
    parts += [PromptPart("request", render_entry(entry)) for entry in conversation.entries]
    return tuple(parts)

"""`api:<provider>:<model>`: models that are reached over HTTP, through pydantic-ai's model interface.

pydantic-ai and the SDKs of the providers take seconds to import, so nothing of them is imported here; `session` and
what it stands on are loaded with the first turn.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from proofstone.agents.backends.api.backend import ApiBackend
from proofstone.agents.backends.api.choice import choose
from proofstone.config.providers import ModelSettings, Provider

__all__ = ["ApiBackend", "api_backend"]


def api_backend(
    spec: str,
    providers: Mapping[str, Provider] | None = None,
    models: Mapping[str, ModelSettings] | None = None,
    environ: Mapping[str, str] | None = None,
) -> ApiBackend:
    """Of `api:<provider>:<model>`. Providers and models are the person's, beside those that are built in.

    Raises an InputError if the spec, the provider, its package or its key is not there.
    """
    return ApiBackend(choose(spec, providers or {}, models or {}, os.environ if environ is None else environ))

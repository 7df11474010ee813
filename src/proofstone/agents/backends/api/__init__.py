"""`api:<provider>:<model>`: models that are reached over HTTP, through pydantic-ai's model interface.

pydantic-ai and the providers' SDKs take seconds to import, so nothing of them may be imported before the first turn.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from proofstone.agents.backends.api.backend import ApiBackend
from proofstone.agents.backends.api.model_choice import choose_model
from proofstone.config.probes import ProbeRecord, read_probe_records
from proofstone.config.profiles import Profile
from proofstone.config.providers import STANDARD_PROFILE, ModelSettings, Provider

__all__ = ["ApiBackend", "api_backend"]


def api_backend(
    spec: str,
    providers: Mapping[str, Provider] | None = None,
    models: Mapping[str, ModelSettings] | None = None,
    environ: Mapping[str, str] | None = None,
    probes: Mapping[str, ProbeRecord] | None = None,
    profile: Profile = STANDARD_PROFILE,
) -> ApiBackend:
    """Build the backend of `api:<provider>:<model>`. The user's providers and models are added to the built-in ones.
    `probes` is what was found out about models; by default, what is on record.

    Raise an InputError if the spec is wrong, or the provider, its package or its key is missing.
    """
    known = read_probe_records() if probes is None else probes
    variables = os.environ if environ is None else environ
    return ApiBackend(choose_model(spec, providers or {}, models or {}, variables, known, profile))

"""`docs/configuration.md`: the settings in the words of their own models."""

from __future__ import annotations

import json

from generators.page import cell
from proofstone.config.loader import USER_ONLY_SECTIONS
from proofstone.config.setting_docs import SectionDoc, list_sections
from proofstone.config.user import UserSettings


def configuration() -> str:
    head = """# Configuration

Generated from the settings' own descriptions by `make docs`; do not edit.

Settings stand in `proofstone.toml` in the repository's root, or under `[tool.proofstone]` in `pyproject.toml`: in one
of the
two, never in both. In `pyproject.toml` a section is `[tool.proofstone.check]`. Everything has a default, so that no
file is needed. A key that does not exist, a wrong type or a value out of range is refused with exit code 2, naming
file, line, key and what would be right.

`proofstone config show` prints the settings in force and where each comes from; `proofstone config schema` prints
their JSON
Schema. When a change is checked, the settings of its *base* decide, so that no change can loosen its own checks; a
change that weakens them is a finding. What takes protection from you (a weaker sandbox, network, variables, files and
sockets of your machine) takes effect only if you grant it: see [trust a repository](how-to/trust.md).

```toml
[check]
verify = ["make smoke"]
optional = ["lint:*"]

[environment]
setup = ["npm ci"]
set = { TZ = "UTC" }
```
"""
    persons = """# Your own file

Who serves which role, what may be spent and where providers are reached is also read from a file of your own:
`$PROOFSTONE_CONFIG`, else `$XDG_CONFIG_HOME/proofstone/proofstone.toml`, else `~/.config/proofstone/proofstone.toml`.
What it says under
`[backends]` and `[budget]`, which are written as above, goes before what a repository says, key by key; a line that
names a role goes before a `default`, wherever they stand; and `--backend` and `--budget` go before both.

Providers, models and who looks at the web are set up here only: a repository that could say where a provider is reached
could have your key sent to a server of its own. Keys themselves stand in no file; `key_variable` and `search_key` name
the environment variable.

```toml
[backends]
default = "api:openai:gpt-5"
researcher = ["api:anthropic:claude-haiku-4-5", "api:openai:gpt-5-mini"]   # the second if the first cannot be reached
"reviewer:security" = "api:google:gemini-2.5-pro"

[budget]
usd = 10

[budget.task]
usd = 2

[providers.office]
wire = "openai-chat"
url = "http://models.example/v1"
key_variable = "OFFICE_KEY"

[models."office:*"]
tier = 2

[web]
search = "https://search.example/?format=json&q={query}"
search_key = "SEARCH_KEY"
fetch = "direct"
```
"""
    own = [
        section
        for section in list_sections(UserSettings)
        if section.has_named_entries or section.name in USER_ONLY_SECTIONS
    ]
    return "\n".join([head, *map(_section, list_sections()), persons, *map(_section, own)])


def _section(section: SectionDoc) -> str:
    rows = [
        f"| `{one.key}` | {cell(one.accepts)} | {_default(one.default)} | {cell(one.description)} |"
        for one in section.settings
    ]
    table = "\n".join(["| key | takes | default | |", "|---|---|---|---|", *rows])
    name = f"{section.name}.NAME" if section.has_named_entries else section.name
    return f"## `[{name}]`\n\n{section.description}\n\n{table}\n"


def _default(value: object) -> str:
    return "" if value is None else f"`{json.dumps(value)}`"

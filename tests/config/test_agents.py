"""Who serves which role and what may be spent: what can be written, and who goes before whom."""

from __future__ import annotations

from pathlib import Path

import pytest

from proofstone.common.models import Allowance
from proofstone.config.backends import (
    BackendOrigin,
    BackendSelection,
    BackendSource,
    BudgetSettings,
    choose_backend,
    parse_backend_options,
    to_budget,
)
from proofstone.config.loader import load_settings_text
from proofstone.config.providers import BUILT_IN_PROVIDERS, ProviderProtocol
from proofstone.config.settings import Settings
from proofstone.config.user import UserSettings, choose_agent_backend, find_user_file, load_user_config, merge_budgets
from proofstone.errors import ConfigError, InputError
from tests.rows import each_row

SPECS = (
    "api:openai:gpt-5", "api:ollama:qwen2.5-coder:7b", "cli:claude", "cli:mini-swe-agent:openai/gpt-5.1:x",
    "acp:agent --acp", "cmd:./agent.sh --fast", "human", "script:a.yaml",
)  # fmt: skip


@each_row("spec", SPECS)
def test_a_backend_may_stand_alone_or_in_a_list(spec: str) -> None:
    settings = load_settings_text(
        f'[backends]\ndefault = "{spec}"\n"reviewer:security" = ["{spec}", "human"]\n', "proofstone.toml"
    )
    assert settings.backends.default == (spec,)
    assert settings.backends.reviewer_security == (spec, "human")
    assert settings.backend_specs == {"default": (spec,), "reviewer:security": (spec, "human")}


@each_row("spec", SPECS)
def test_the_gates_own_settings_take_the_same_backends(spec: str) -> None:
    settings = load_settings_text(f'[gate]\nexecutor = "{spec}"\narchitect = "{spec}"\n', "proofstone.toml")
    assert settings.backend_specs == {"executor": (spec,), "architect": (spec,)}


BAD: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "no kind of backend": (
        '[backends]\nplanner = "gpt-5"\n',
        "proofstone.toml:2: backends.planner: ",
        ("'gpt-5' is not valid", "`api:<provider>:<model>`"),
    ),
    "a model without its provider": ('[backends]\nplanner = "api:gpt-5"\n', "proofstone.toml:2: ", ("is not valid",)),
    "a command that is none": ('[backends]\nplanner = "cmd: "\n', "proofstone.toml:2: ", ("is not valid",)),
    "one of a list": (
        '[backends]\nplanner = [\n  "human",\n  "nobody",\n]\n',
        "proofstone.toml:4: backends.planner: ",
        ("'nobody' is not valid",),
    ),
    "a coding agent without a name": (
        '[backends]\nexecutor = "acp:"\n',
        "proofstone.toml:2: backends.executor: ",
        ("'acp:' is not valid", "`cli:<preset>`"),
    ),
    "a model that would be an option of the program's": (
        '[backends]\nexecutor = "cli:qwen:--openai-base-url=http://evil"\n',
        "proofstone.toml:2: backends.executor: ",
        ("'cli:qwen:--openai-base-url=http://evil' is not valid", "`cli:<preset>`"),
    ),
    "the same at the gate": (
        '[gate]\narchitect = "cli:qwen:-m"\n',
        "proofstone.toml:2: gate.architect: ",
        ("'cli:qwen:-m' is not valid", "`cli:<preset>`"),
    ),
    "no role": ('[backends]\nplaner = "human"\n', "proofstone.toml:2: backends.planer: ", ("backends.planner?",)),
    "one role in two sections": (
        '[gate]\nexecutor = "human"\n[backends]\nexecutor = "human"\n',
        "proofstone.toml: gate.executor and backends.executor are the same setting",
        (),
    ),
    "a task's limit of another type": (
        '[budget.task]\ntokens = "many"\n',
        "proofstone.toml:2: budget.task.tokens: ",
        ("a whole number from 0 to",),
    ),
    "money below nothing": ("[budget]\nusd = -1\n", "proofstone.toml:2: budget.usd: ", ("a number from 0 to 1000000",)),
    "money without end": ("[budget]\nusd = inf\n", "proofstone.toml:2: budget.usd: ", ("inf is not valid",)),
    "no kind of limit": (
        "[budget.task]\ntoken = 1\n",
        "proofstone.toml:2: budget.task.token: ",
        ("there are tokens, usd, requests, tool_calls, minutes",),
    ),
    "a limit of no role": (
        "[budget.roles.planer]\nusd = 1\n",
        "proofstone.toml:1: budget.roles.planer: ",
        ("it takes one of executor, architect",),
    ),
    "a role's limit of another type": (
        "[budget.roles.planner]\nusd = true\n",
        "proofstone.toml:2: budget.roles.planner.usd: ",
        ("true is not valid", "a number"),
    ),
    "a provider in a repository": (
        '[check]\n[providers.openai]\nwire = "openai-chat"\nurl = "https://evil.example"\n',
        "proofstone.toml:2: providers: not allowed in a repository's file",
        ("send your key", "your own file"),
    ),
    "a model in a repository": (
        '[models."openai:*"]\ntier = 3\n',
        "proofstone.toml:1: models: not allowed in a repository's",
        (),
    ),
}


@each_row(("text", "start", "says"), BAD.values())
def test_what_is_wrong_in_a_repositorys_file_is_refused(text: str, start: str, says: tuple[str, ...]) -> None:
    with pytest.raises(ConfigError) as caught:
        load_settings_text(text, "proofstone.toml")
    assert caught.value.message.startswith(start)
    for phrase in says:
        assert phrase in caught.value.message


# --- a person's own file ----------------------------------------------------------------------------------------


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "mine.toml"
    monkeypatch.setenv("PROOFSTONE_CONFIG", str(path))
    return path


PERSONAL = """
[backends]
default = "api:mine:large"

[budget]
usd = 3

[providers.mine]
wire = "openai-chat"
url = "http://127.0.0.1:9/v1"
key_variable = "MY_KEY"

[models."mine:*"]
tier = 3
input_usd = 1.5
output_usd = 6
"""


def test_a_persons_file_is_read(file: Path) -> None:
    file.write_text(PERSONAL)
    person = load_user_config()
    assert person.settings.backends.default == ("api:mine:large",)
    assert person.providers["mine"].wire is ProviderProtocol.OPENAI_CHAT
    assert person.providers["openai"] == BUILT_IN_PROVIDERS["openai"]
    assert person.find_model_settings("mine:large").tier == 3
    assert person.find_model_settings("other:large").tier is None


BAD_PERSONAL: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "no wire": ('[providers.x]\nurl = "http://x"\n', ":1: providers.x.wire: is missing", ('"openai-chat"',)),
    "a wire that there is not": (
        '[providers.x]\nwire = "smoke"\nurl = "http://x"\n',
        ":2: providers.x.wire: 'smoke' is not valid",
        ('one of "openai-chat"',),
    ),
    "an address that is none": (
        '[providers.x]\nwire = "anthropic"\nurl = "ftp://x"\n',
        ":3: providers.x.url: ",
        ("an http or https URL",),
    ),
    "a provider without an address": ('[providers.x]\nwire = "google"\n', ":1: providers.x: ", ("needs a `url`",)),
    "a key in the open": (
        '[providers.x]\nwire = "google"\nurl = "http://x"\nkey = "sk-1"\n',
        ":4: providers.x.key: no such setting",
        ("key_variable",),
    ),
    "a tier that there is not": ('[models."a:b"]\ntier = 4\n', ":2: models.a:b.tier: ", ("from 1 to 3",)),
    "a provider that is no table": ("[providers]\nx = 3\n", ":2: providers.x: 3 is not valid", ("a table with wire",)),
    "a section of the repository's": ("[check]\n", ":1: check: no such setting", ("backends, budget, trust",)),
    "half a price": ('[models."a:b"]\ninput_usd = 1\n', ":1: models.a:b: ", ("set both `input_usd`",)),
}


@pytest.mark.parametrize(("text", "start", "says"), BAD_PERSONAL.values(), ids=BAD_PERSONAL)
def test_what_is_wrong_in_a_persons_file_is_refused(file: Path, text: str, start: str, says: tuple[str, ...]) -> None:
    file.write_text(text)
    with pytest.raises(ConfigError) as caught:
        load_user_config()
    assert caught.value.message.startswith(f"{file}{start}")
    for phrase in says:
        assert phrase in caught.value.message


def test_a_file_that_was_named_must_be_there(file: Path) -> None:
    with pytest.raises(ConfigError, match=r"mine\.toml: there is no such file, but PROOFSTONE_CONFIG names it"):
        load_user_config()


def test_a_file_that_cannot_be_read_is_refused(file: Path) -> None:
    file.mkdir()
    with pytest.raises(ConfigError, match="cannot be read: Is a directory"):
        load_user_config()


def test_nobody_needs_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PROOFSTONE_CONFIG", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert load_user_config().settings == UserSettings()


def test_where_a_persons_file_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("PROOFSTONE_CONFIG", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", "relative")
    assert find_user_file() == tmp_path / ".config" / "proofstone" / "proofstone.toml"
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "xdg"))
    assert find_user_file() == tmp_path / "xdg" / "proofstone" / "proofstone.toml"
    monkeypatch.setenv("PROOFSTONE_CONFIG", str(tmp_path / "own.toml"))
    assert find_user_file() == tmp_path / "own.toml"


# --- who goes before whom ---------------------------------------------------------------------------------------

Lines = dict[str, tuple[str, ...]]
A, B, C = ("cmd:a",), ("cmd:b",), ("cmd:c",)
CHOSEN: dict[str, tuple[str, Lines, Lines, Lines, BackendSelection]] = {
    "nobody": ("planner", {}, {}, {}, BackendSelection("planner", (), BackendOrigin.BUILT_IN)),
    "an architect is the rules": (
        "architect",
        {},
        {},
        {},
        BackendSelection("architect", ("rules",), BackendOrigin.BUILT_IN),
    ),
    "the command line before all": (
        "planner",
        {"planner": A},
        {"planner": B},
        {"planner": C},
        BackendSelection("planner", A, BackendOrigin.COMMAND_LINE, "planner"),
    ),
    "the person before the repository": (
        "planner",
        {},
        {"planner": B},
        {"planner": C},
        BackendSelection("planner", B, BackendOrigin.PERSON, "planner"),
    ),
    "a role's own line before any default": (
        "planner",
        {"default": A},
        {"default": B},
        {"planner": C},
        BackendSelection("planner", C, BackendOrigin.REPOSITORY, "planner"),
    ),
    "the strongest default": (
        "planner",
        {},
        {"default": B},
        {"default": C},
        BackendSelection("planner", B, BackendOrigin.PERSON, "default"),
    ),
    "a focus before its role": (
        "reviewer:security",
        {},
        {"reviewer:security": A, "reviewer": B},
        {},
        BackendSelection("reviewer:security", A, BackendOrigin.PERSON, "reviewer:security"),
    ),
    "a place before a focus": (
        "reviewer:security",
        {},
        {"reviewer": B},
        {"reviewer:security": C},
        BackendSelection("reviewer:security", B, BackendOrigin.PERSON, "reviewer"),
    ),
    "a researcher of the plan gate as any other": (
        "researcher:resolve",
        {},
        {"default": A},
        {"researcher": B},
        BackendSelection("researcher:resolve", B, BackendOrigin.REPOSITORY, "researcher"),
    ),
}


@each_row(("agent", "line", "person", "repository", "expected"), CHOSEN.values())
def test_who_serves_a_role(
    agent: str, line: Lines, person: Lines, repository: Lines, expected: BackendSelection
) -> None:
    places = [
        BackendSource(BackendOrigin.COMMAND_LINE, line),
        BackendSource(BackendOrigin.PERSON, person),
        BackendSource(BackendOrigin.REPOSITORY, repository),
    ]
    assert choose_backend(agent, places) == expected


def test_all_that_was_said_is_heard() -> None:
    repository = load_settings_text(
        '[gate]\nexecutor = "cmd:theirs"\n[backends]\nplanner = "cmd:theirs"\n', "proofstone.toml"
    )
    person = UserSettings.model_validate({"backends": {"planner": "cmd:mine"}})
    said = {
        name: choose_agent_backend(name, person, repository, {"knowledge": ("human",)})
        for name in ("executor", "planner")
    }
    assert said["executor"].specs == ("cmd:theirs",)
    assert said["planner"].specs == ("cmd:mine",)
    assert (
        choose_agent_backend("knowledge", person, repository, {"knowledge": ("human",)}).origin
        is BackendOrigin.COMMAND_LINE
    )


PLAN_GATE = ("challenger", "domain_expert", "devils_advocate", "synthesizer")
LOOP = ("perceiver", "agent_validator", "meta_validator")


@each_row("role", (*PLAN_GATE, *LOOP))
def test_who_serves_the_plan_gate_and_the_control_loop_is_set_as_for_every_role(role: str) -> None:
    settings = load_settings_text(
        f'[backends]\n{role} = "human"\n[budget.roles.{role}]\ntokens = 7\n', "proofstone.toml"
    )
    assert settings.backend_specs == {role: ("human",)}
    assert to_budget(settings.budget).roles[role].tokens == 7
    assert parse_backend_options([f"{role}=human", f"{role}=cmd:x"]) == {role: ("human", "cmd:x")}


def test_options_for_one_role_are_its_fallbacks() -> None:
    options = ["reviewer:security=api:openai:gpt-5", "default=human", "reviewer:security=cmd:a=b"]
    assert parse_backend_options(options) == {
        "reviewer:security": ("api:openai:gpt-5", "cmd:a=b"),
        "default": ("human",),
    }


def test_only_an_architect_may_be_the_rules() -> None:
    assert parse_backend_options(["architect=rules"]) == {"architect": ("rules",)}
    with pytest.raises(InputError, match="'rules' is not a backend"):
        parse_backend_options(["planner=rules"])


@each_row(
    ("option", "why"),
    [
        ("human", "there is no `=`"),
        ("wizard=human", "'wizard' is not a role"),
        ("planner=gpt-5", "'gpt-5' is not a backend"),
        ("planner=", "'' is not a backend"),
        ("planner=cli:", "'cli:' is not a backend"),
        ("planner=cli:qwen:--yolo", "'cli:qwen:--yolo' is not a backend"),
    ],
)
def test_an_option_that_says_nothing_is_refused(option: str, why: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_backend_options([option])
    assert caught.value.message.startswith(f"--backend {option}: ")
    assert why in caught.value.message


# --- what may be spent ------------------------------------------------------------------------------------------


def test_budgets_are_on_unless_somebody_says_otherwise() -> None:
    found = to_budget(Settings().budget)
    assert found.run == Allowance(tokens=5_000_000, usd=20.0, requests=2_000, tool_calls=10_000)
    assert found.task == Allowance(tokens=1_500_000, usd=8.0, requests=400, tool_calls=1_000)
    assert found.roles == {}


def test_nothing_is_no_limit() -> None:
    text = "[budget]\nusd = 0\nminutes = 90\n[budget.task]\ntokens = 0\n[budget.roles.planner]\nrequests = 7\n"
    found = to_budget(load_settings_text(text, "proofstone.toml").budget)
    assert (found.run.usd, found.run.minutes, found.task.tokens) == (None, 90.0, None)
    assert found.roles == {"planner": Allowance(requests=7)}


def test_a_persons_limits_go_before_the_repositorys_one_by_one() -> None:
    theirs = "[budget]\nusd = 50\ntokens = 7\n[budget.task]\nusd = 40\n[budget.roles.planner]\nusd = 1\n"
    own = {"usd": 5, "task": {"tokens": 9}, "roles": {"planner": {"requests": 2}, "reviewer": {"usd": 3}}}
    merged = merge_budgets(UserSettings.model_validate({"budget": own}), load_settings_text(theirs, "proofstone.toml"))
    assert merged == BudgetSettings.model_validate(
        {
            "usd": 5,
            "tokens": 7,
            "task": {"usd": 8, "tokens": 9},
            "roles": {"planner": {"usd": 1, "requests": 2}, "reviewer": {"usd": 3}},
        }
    )

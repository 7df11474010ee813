"""Files that may hold secrets are neither shown nor written; their names may be listed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from proofstone.common.secrets import is_secret_path
from tests.agents.tools.desk import Desk
from tests.rows import each_row

SECRET = [
    ".env", ".env.local", ".env.production", "app/.env", ".ENV", "prod.env", ".envrc",
    "server.pem", "server.key", "certs/Server.KEY", "id_rsa", "id_rsa.pub", "id_ed25519", "deploy_ed25519", "a.p12",
    "a.pfx", "a.jks", "release.keystore", "passwords.kdbx",
    ".netrc", "_netrc", ".npmrc", ".pypirc", ".git-credentials", ".htpasswd", ".pgpass", ".dockercfg",
    "credentials", "credentials.json", "aws-credentials.yaml", ".credentials",
    "secrets.yaml", "secrets.json", "secrets.toml", "config/secrets.prod.yml", "my-secret.json", "secrets.enc.yaml",
    "service-account.json", "service_account-prod.json", "client_secret_12.apps.json", "api_keys.json",
    ".aws/credentials", ".aws/config", "home/.ssh/known_hosts", ".ssh/config", ".kube/config", ".gnupg/x",
    ".docker/config.json", "terraform.tfstate", "terraform.tfstate.backup", "prod.tfvars", "prod.auto.tfvars.json",
    "config/master.key", "secrets/database.txt", ".vault-password", ".bash_history",
]  # fmt: skip
NOT_SECRET = [
    ".env.example", ".env.sample", ".env.template", ".env.dist", ".ENV.Example", "credentials.example.json",
    "secrets.template.yaml", "prod.tfvars.example", "environment.yaml", "env.py", "src/credentials.py", "secrets.go",
    "docs/secrets.md", "src/secrets/mod.rs", "keyboard.ts", "key.py", "keys.json", "monkey.txt", "tokens.json",
    "package.json", ".gitignore", "kube/config", "ssh/config.py", "tokenizer.json", "identity.rs", "id_rsa_test.py",
]  # fmt: skip
HIDDEN = "password-12345"


@each_row("path", SECRET)
def test_a_secret_file_is_known_by_its_path(path: str) -> None:
    assert is_secret_path(path) and is_secret_path(path.upper()) and is_secret_path(f"deep/down/{path}")


@each_row("path", NOT_SECRET)
def test_what_only_sounds_like_one_is_none(path: str) -> None:
    assert not is_secret_path(path) and not is_secret_path(f"deep/down/{path}")


@pytest.mark.parametrize("path", SECRET)
def test_no_tool_shows_or_writes_it(desk: Desk, path: str) -> None:
    file = desk.put(path, f"{HIDDEN}\n")
    calls: list[tuple[str, dict[str, Any]]] = [
        ("read", {}),
        ("grep", {"pattern": "password"}),
        ("symbols", {}),
        ("symbols", {"name": "password"}),
        ("write", {"content": "x"}),
        ("edit", {"old": "password", "new": "x"}),
        ("delete", {}),
    ]
    for tool, arguments in calls:
        assert desk.refused(tool, path=path, **arguments) == "secret"
    assert file.read_text() == f"{HIDDEN}\n"
    said = desk.ok("grep", pattern="password")
    assert HIDDEN not in said and said.endswith("[not searched: 1 file that may hold secrets]")
    assert path in desk.ok("glob", pattern="**")


def test_it_is_not_shown_under_another_name(desk: Desk) -> None:
    desk.put(".env", HIDDEN)
    desk.put(".ssh/notes.txt", HIDDEN)
    desk.put("plain.txt", HIDDEN)
    desk.link("harmless.txt", ".env")
    desk.link("folder", ".ssh")
    desk.link("chain.txt", "harmless.txt")
    desk.link("id_rsa", "plain.txt")
    for path in ("harmless.txt", "folder/notes.txt", "chain.txt", "./.env", "id_rsa"):
        assert desk.refused("read", path=path) == "secret"
        assert desk.refused("write", path=path, content="x") == "secret"
    assert (desk.files / ".env").read_text() == HIDDEN


def test_it_is_not_shown_as_the_same_file_by_another_name(desk: Desk) -> None:
    desk.put("node_modules/deep/.env", f"def password_12345(): {HIDDEN}\n")
    desk.put("one.py", "def password(): pass\n")
    (desk.files / "hard.py").hardlink_to(desk.files / "node_modules/deep/.env")
    (desk.files / "two.py").hardlink_to(desk.files / "one.py")
    calls: list[tuple[str, dict[str, Any]]] = [
        ("read", {}),
        ("symbols", {}),
        ("edit", {"old": "password", "new": "x"}),
    ]
    for tool, arguments in calls:
        assert desk.refused(tool, path="hard.py", **arguments) == "secret"
    said = desk.ok("grep", pattern="password")
    assert HIDDEN not in said and "two.py:1" in said and said.endswith("[not searched: 1 file that may hold secrets]")
    assert "skipped because it may hold secrets: hard.py" in desk.ok("symbols", name="password_12345")
    assert desk.ok("read", path="two.py") == "1\tdef password(): pass"


def test_the_person_can_name_further_files(tmp_path: Path) -> None:
    desk = Desk(tmp_path, ground_more={"secret": ("config/private/**", "*.license")})
    for path in ("config/private/a.py", "x.license"):
        desk.put(path, HIDDEN)
        assert desk.refused("read", path=path) == "secret"
    assert HIDDEN not in desk.ok("grep", pattern="password")


def test_the_refusal_says_what_to_do_instead(desk: Desk) -> None:
    desk.put(".env", HIDDEN)
    assert desk.call("read", path=".env").text == (
        ".env may hold secrets: it is neither shown nor changed. "
        "Work without it; if the task cannot be done without it, say so in your answer."
    )

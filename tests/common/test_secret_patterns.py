"""Keys and tokens that are known by their form."""

from __future__ import annotations

from proofstone.common.secrets import find_known_secrets
from tests.rows import each_row

RANDOM = "q7Hk2Lm9Zx4Vb8Nc1Td6Wf3Rg5Yj0PsQaE7uIoKd"
BODY = "MIIEpAIBAAKCAQEA" + RANDOM + "q7Hk2Lm9Zx4V"
HEADER = "-----BEGIN RSA " + "PRIVATE KEY-----"
OPENSSH_START = "b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAMwAAAAtzc2gtZW"
"""The first line of every OpenSSH key without a passphrase: it says nothing, and does not look random."""

KNOWN = {
    "AWS access key": "AKIA" + "Q7WZ5RTYB3OPASDF",
    "GitHub token": "ghp_" + RANDOM[:36],
    "GitLab token": "glpat-" + RANDOM[:20],
    "npm token": "npm_" + RANDOM[:36],
    "Slack token": "xoxb-" + "2384756102-" + RANDOM[:24],
    "Stripe key": "sk_live_" + RANDOM[:24],
    "Google API key": "AIza" + RANDOM[:35],
    "Anthropic key": "sk-ant-api03-" + RANDOM + RANDOM,
    "private key": f"{HEADER}\n{BODY}\n",
}


@each_row(("kind", "text"), KNOWN.items())
def test_a_known_form_is_found_on_its_line(kind: str, text: str) -> None:
    assert [(one.line, one.kind) for one in find_known_secrets(f"first = 1\nvalue = '{text}'\n")] == [(2, kind)]


def test_a_key_in_one_line_of_code_is_found() -> None:
    assert [one.kind for one in find_known_secrets(f'KEY = "{HEADER}\\n{BODY}\\n"')] == ["private key"]
    assert [one.kind for one in find_known_secrets(f'KEY = (\n    b"{HEADER}\\n"\n    b"{BODY}\\n"\n)')] == [
        "private key"
    ]
    openssh = f"{HEADER.replace('RSA', 'OPENSSH')}\n{OPENSSH_START}\n{BODY}\n"
    assert [one.kind for one in find_known_secrets(openssh)] == ["private key"]
    assert [one.kind for one in find_known_secrets("KEY = " + repr(openssh))] == ["private key"]
    encrypted = f"{HEADER}\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00FF\n\n{BODY}\n"
    assert [one.kind for one in find_known_secrets(encrypted)] == ["private key"]


@each_row(
    "text",
    [
        "AKIA" + "IOSFODNN7EXAMPLE",
        "ghp_" + "x" * 36,
        "ghp_" + "abcdef0123" * 4,
        f"{HEADER}",
        f'if line == "{HEADER}":\n    return parse_the_key_from(lines_that_follow_after_it)',
        f"{HEADER}\n{'A' * 64}\n",
        f"{HEADER}\n{OPENSSH_START}\n...\n",
        f"{HEADER}\n{OPENSSH_START}\nand the other lines, with which the form of keys is explained to readers\n",
        "the npm_config_update_notifier_and_more_words_behind_it",
        "sk-learn-is-a-package-with-a-long-name-and-many-more-words",
        "AIza" + "-" * 35,
    ],
)
def test_what_only_looks_like_one_is_not(text: str) -> None:
    assert list(find_known_secrets(text)) == []

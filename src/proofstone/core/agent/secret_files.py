"""Files that are likely to hold secrets: no agent is shown what is in them, and none writes them.

Judged by the path alone, in any case of letters. A name that is only an example of such a file is none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from proofstone.core.globs import matches

_EXAMPLES: Final = re.compile(r".*[._-](?:examples?|sample|template|tmpl|tpl|dist|schema)(?:\.[a-z0-9]+)?")

_DATA: Final = r"(?:ya?ml|json5?|toml|ini|cfg|conf|properties|xml|txt|csv|env|enc|db|gpg)"

_NAMES: Final = re.compile(
    "|".join(
        (
            # variables
            r"\.env(?:[._-].*)?",
            r"\.envrc",
            r".+\.env",
            # keys and certificates with keys
            r".*\.(?:pem|key|p12|pfx|p8|jks|keystore|kdbx|ppk|gpg|pgp|ovpn|age)",
            r"id_(?:rsa|dsa|ecdsa|ed25519)(?:_sk)?(?:[._-].*)?",
            r".*_(?:rsa|dsa|ecdsa|ed25519)",
            # credentials of programs
            r"[._]netrc",
            r"\.(?:npmrc|yarnrc|pypirc|gemrc|dockercfg|git-credentials|htpasswd|pgpass|my\.cnf|s3cfg|boto|vault-token)",
            r"htpasswd",
            r"\.(?:bash|zsh|python|node_repl|psql|mysql)_history",
            # by their own word
            rf"\.?credentials?(?:[._-].*)?(?:\.{_DATA})?",
            rf"(?:.*[._-])?credentials?\.{_DATA}",
            rf"(?:.*[._-])?secrets?(?:[._-].*)?\.{_DATA}",
            r"\.?secrets?",
            rf"(?:.*[._-])?(?:api|access|auth)[._-]?(?:keys?|tokens?)\.{_DATA}",
            r"service[._-]?account.*\.json",
            r"client[._-]?secret.*\.json",
            r"google-services\.json",
            # state of tools that keep secrets in the clear
            r".*\.tfstate(?:\..*)?",
            r".*\.tfvars(?:\.json)?",
            r"kubeconfig(?:[._-].*)?",
            r"master\.key",
            r"\.vault[._-]pass(?:word)?(?:\..*)?",
        )
    )
)

_CODE: Final = re.compile(
    r".+\.(?:py|pyi|js|mjs|cjs|jsx|ts|mts|cts|tsx|go|rs|java|kt|scala|rb|php|c|h|cc|cpp|cs|swift|sh|html|css|md|rst)"
)
"""Source and documentation about such things: `credentials.py`."""

_FOLDERS: Final = frozenset({".aws", ".ssh", ".gnupg", ".azure", ".gcloud"})
_FOLDERS_OF_DATA: Final = frozenset({"secrets", ".secrets"})
"""What lies in them is secret unless it is source."""
_PLACES: Final = (".kube/config", ".docker/config.json", ".config/gcloud", ".config/gh", ".terraform.d")


def is_secret(path: str, more: Iterable[str] = ()) -> bool:
    """`path`: from the project's root. `more`: further patterns, of the person's own."""
    if any(matches(pattern, path) for pattern in more):
        return True
    folded = path.casefold()
    *folders, name = folded.split("/")
    if not _FOLDERS.isdisjoint((*folders, name)) or any(f"/{place}/" in f"/{folded}/" for place in _PLACES):
        return True
    if _EXAMPLES.fullmatch(name) or _CODE.fullmatch(name):
        return False
    return bool(_NAMES.fullmatch(name)) or not _FOLDERS_OF_DATA.isdisjoint(folders)

"""What the programs of a trial see of this machine: its programs, a HOME and a state of their own, no more.

A trick must not reach the person's HOME, and their git configuration must not decide how a trial ends.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from proofstone.adapters.scratch import remove

_KEPT: Final = ("LANG", "LC_ALL", "TZ", "TMPDIR", "PIP_INDEX_URL", "NPM_CONFIG_REGISTRY")
# Version managers look below HOME for their programs; the real one is named to them.
_BELOW_HOME: Final[Mapping[str, str]] = {
    "PYENV_ROOT": ".pyenv",
    "NVM_DIR": ".nvm",
    "VOLTA_HOME": ".volta",
    "ASDF_DATA_DIR": ".asdf",
    "MISE_DATA_DIR": ".local/share/mise",
    "CARGO_HOME": ".cargo",
    "RUSTUP_HOME": ".rustup",
}
_GITCONFIG: Final = """\
[user]
	name = An author
	email = author@example.invalid
[init]
	defaultBranch = main
[commit]
	gpgSign = false
"""
_IMPORT_SECONDS: Final = 60


def variables(search: str, home: Path, state: Path) -> dict[str, str]:
    """The environment of a trial's programs."""
    real = Path(os.environ.get("HOME") or "/")
    found = {name: str(real / below) for name, below in _BELOW_HOME.items() if (real / below).is_dir()}
    kept = {name: os.environ[name] for name in (*_KEPT, *_BELOW_HOME) if name in os.environ}
    own = {
        "PATH": search,
        "HOME": str(home),
        "PROOFSTONE_HOME": str(state),
        "NO_COLOR": "1",
        "GIT_CONFIG_NOSYSTEM": "1",
    }
    return found | kept | own


def fresh_home(home: Path) -> None:
    """HOME as a new author has it: who they are, and nothing else."""
    if home.exists():
        remove(home)
    home.mkdir(mode=0o700, parents=True)
    (home / ".gitconfig").write_text(_GITCONFIG, "utf-8")


def search_path(needs: Iterable[str]) -> str:
    """PATH as the person has it; where it lacks something that stands beside Proofstone's own interpreter, with that
    folder in front: `proofstone prove` works from an environment that nobody has activated."""
    theirs = os.environ.get("PATH", os.defpath)
    beside = os.pathsep.join((str(Path(sys.executable).parent), theirs))
    wanted = sorted(set(needs))
    if not missing(wanted, theirs) or len(missing(wanted, beside)) >= len(missing(wanted, theirs)):
        return theirs
    return beside


def missing(needs: Sequence[str], search: str) -> dict[str, str]:
    """What is not there, each with how to say it."""
    found = {}
    for need in needs:
        kind, _, name = need.rpartition(":")
        if kind == "python" and not _importable(name, search):
            found[need] = f"python3 cannot import {name}"
        elif kind != "python" and shutil.which(need, path=search) is None:
            found[need] = f"{need} is not installed"
    return found


def _importable(module: str, search: str) -> bool:
    python = shutil.which("python3", path=search)
    if python is None:
        return False
    # HOME as in the trials: what lies in the person's own is not there for them.
    asked = [python, "-s", "-c", f"import {module}"]
    env = {"PATH": search, "HOME": os.devnull}
    done = subprocess.run(asked, cwd="/", env=env, capture_output=True, timeout=_IMPORT_SECONDS, check=False)
    return done.returncode == 0

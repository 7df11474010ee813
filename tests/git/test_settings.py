"""Settings that the private git directory takes over from the user: git must read what was written."""

from __future__ import annotations

import subprocess
from pathlib import Path

from proofstone.git.rules import quote_setting

SETTINGS = [
    ("core.autocrlf", "input"),
    ("core.attributesfile", "~/a folder/attributes"),
    ("filter.lfs.process", "git-lfs filter-process"),
    ("filter.lfs.clean", "git-lfs clean -- %f"),
    ("filter.My Filter.v1.0.smudge", 'sh -c "cat; # not a comment" ; true'),
    ('filter.a "b" c\\d].clean', "C:\\tools\\clean.exe\t'%f'"),
    ("filter.x.smudge", "first line\nsecond line\\\n"),
    ("filter.x.required", ""),
    ("filter.x.clean", "  spaces at both ends  "),
    ("lfs.https://example.org/it.git/info/lfs.access", "basic"),
    ("lfs.concurrenttransfers", "8"),
    ("filter.ünïcode.clean", "naïve # ; \r end"),
    ("core.eol", "lf"),
    ("core.eol", "crlf"),
]


def test_git_reads_every_setting_as_it_was_written(tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_bytes("".join(quote_setting(name, value) for name, value in SETTINGS).encode())
    words = ["git", "config", "--file", str(file), "--list", "-z"]
    output = subprocess.run(words, capture_output=True, check=True).stdout.decode()
    assert [tuple(record.split("\n", 1)) for record in output.removesuffix("\0").split("\0")] == SETTINGS

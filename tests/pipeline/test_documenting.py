"""Documents of a run while it goes on, and when it has ended."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from proofstone.pipeline.run_folder import RunFolder


def test_nobody_waits_for_the_disk_until_the_run_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[str] = []
    monkeypatch.setattr(os, "fsync", lambda fd: waited.append(Path(f"/proc/self/fd/{fd}").readlink().name))
    documents = RunFolder(tmp_path)
    documents.write_request("Count what is in the cart")
    documents.write_approvals(())
    (tmp_path / "approvals.yaml").unlink()
    assert (tmp_path / "initial-request.md").is_file()
    assert waited == []
    documents.flush()
    assert waited == ["initial-request.md"], "and what a person took away is nobody's business"
    documents.flush()
    assert len(waited) == 1

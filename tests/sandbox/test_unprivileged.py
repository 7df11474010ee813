"""How a sandbox of root is put together; that it holds is tried by the walls."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from proofstone.sandbox.unprivileged import FIRST_ID, STAGE, find_closed_folders, split_options, stage_spec


def spec(argv: list[str], layers: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    return {"argv": argv, "layers": layers or [], "env": {}}


def test_every_source_is_taken_from_the_stage_and_every_place_stays(tmp_path: Path) -> None:
    tree, tools = tmp_path / "tree", tmp_path / "tools"
    tree.mkdir()
    tools.mkdir()
    argv = ["bwrap", "--ro-bind", "/", "/", "--proc", "/proc", "--tmpfs", "/tmp"]
    argv += ["--bind", str(tree), "/repo", "--ro-bind", str(tools), "/tools", "--ro-bind", str(tools), "/again"]
    argv += ["--chdir", "/repo", "--", "bwrap", "--bind", "a", "b"]
    staged = stage_spec(spec(argv), [tree])
    mounts = {one["source"]: one for one in staged["stage"]["mounts"]}
    assert set(mounts) == {str(tree), str(tools)}
    assert mounts[str(tree)]["own"] and not mounts[str(tools)]["own"]
    options = list(split_options(staged["argv"]))
    assert ("--ro-bind", "/", "/") in options
    assert ("--bind", mounts[str(tree)]["target"], "/repo") in options
    assert ("--ro-bind", mounts[str(tools)]["target"], "/again") in options
    assert options[-1] == ("--", "bwrap", "--bind", "a", "b")
    assert all(Path(one["target"]).is_relative_to(STAGE) for one in mounts.values())
    assert staged["stage"]["first_id"] == FIRST_ID > 65_535


def test_layers_are_mounted_on_the_stage_and_found_there(tmp_path: Path) -> None:
    layer = {"lower": ["/below"], "at": str(tmp_path / "at"), "scratch": str(tmp_path / "top"), "memory": False}
    in_memory = layer | {"at": str(tmp_path / "at-2"), "scratch": str(tmp_path / "top-2"), "memory": True}
    argv = ["bwrap", "--ro-bind", "/", "/", "--bind", f"{tmp_path}/at/inner", "/repo"]
    staged = stage_spec(spec(argv, [layer | {"size_mb": 5}, in_memory | {"size_mb": 5}]), [tmp_path])
    first, second = staged["layers"]
    assert first["at"] == f"{STAGE}/layer-0/at" and second["scratch"] == f"{STAGE}/layer-1/top"
    assert staged["argv"][-3:] == ["--bind", f"{STAGE}/layer-0/at/inner", "/repo"]
    assert {one["source"] for one in staged["stage"]["mounts"]} == {"/below", str(tmp_path / "top")}
    assert not any(one["recursive"] for one in staged["stage"]["mounts"] if one["source"] == "/below")
    assert set(staged["stage"]["folders"]) == {first["at"], second["at"], second["scratch"]}


def test_folders_that_a_stranger_may_not_enter_are_covered_unless_the_command_covers_them(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    inner = closed / "deep" / "tree"
    inner.mkdir(parents=True)
    for folder in (tmp_path, *tmp_path.parents):
        if folder != Path("/") and not folder.stat().st_mode & 0o001:
            closed = folder  # pytest's own folder is closed already; the outermost counts
    (tmp_path / "closed").chmod(0o700)
    assert find_closed_folders([inner]) == [closed]
    argv = ["bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--bind", str(inner), str(inner), "--", "true"]
    assert ("--tmpfs", str(closed)) in split_options(stage_spec(spec(argv), [])["argv"])
    covering = [*argv[:6], "--tmpfs", str(closed.parent), *argv[6:]]
    assert ("--tmpfs", str(closed)) not in split_options(stage_spec(spec(covering), [])["argv"])


def test_a_source_that_may_be_missing_is_left_out() -> None:
    argv = ["bwrap", "--ro-bind", "/", "/", "--bind-try", "/no/such/socket", "/no/such/socket", "--", "true"]
    staged = stage_spec(spec(argv), [])
    assert staged["argv"] == ["bwrap", "--ro-bind", "/", "/", "--", "true"] and not staged["stage"]["mounts"]

"""A release is the same bytes each time, and its bill of materials lists what the locks do."""

from __future__ import annotations

import json
import os
import re
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import Any

from release.build import build_archives, commit_time, export
from release.lock import BUILD, FOLDER, ROOT, RUNTIME, Pin, read_lock, read_project
from release.sbom import bill_of_materials

ARCHIVES = {"proofstone-0.1.0-py3-none-any.whl": "0" * 64}


def test_two_builds_of_a_commit_are_the_same_bytes_wherever_and_whenever(tmp_path: Path) -> None:
    time = commit_time("HEAD")
    built = []
    for name, mode, stamp in (("a", 0o700, 1_000_000_000), ("another", 0o755, 1_700_000_000)):
        source = tmp_path / name / "source"
        export("HEAD", source)
        source.chmod(mode)
        for file in source.rglob("*"):
            os.utime(file, (stamp, stamp))
        built.append(build_archives(Path(sys.executable), source, tmp_path / name / "out", time))
    assert built[0] == built[1]
    sdist, wheel = sorted(built[0], key=lambda name: name.endswith(".whl"))
    with zipfile.ZipFile(tmp_path / "a" / "out" / wheel) as archive:
        names = archive.namelist()
    assert "proofstone/__init__.py" in names and "proofstone/py.typed" in names
    assert not [name for name in names if name.startswith(("tests", "release", "requirements"))]
    with tarfile.open(tmp_path / "a" / "out" / sdist) as archive_of_sources:
        members = {member.name.partition("/")[2] for member in archive_of_sources.getmembers()}
    assert {
        "pyproject.toml",
        "requirements/build.txt",
        "requirements/runtime.txt",
        "src/proofstone/errors.py",
    } <= members


def document() -> dict[str, Any]:
    return bill_of_materials(read_project(), pins(), ARCHIVES, 1_700_000_000)


def pins() -> dict[str, tuple[Pin, ...]]:
    return {lock: read_lock((FOLDER / lock).read_text("utf-8")) for lock in (BUILD, RUNTIME)}


def test_the_bill_of_materials_has_what_the_specification_requires() -> None:
    bill = document()
    assert (bill["bomFormat"], bill["specVersion"], bill["version"]) == ("CycloneDX", "1.6", 1)
    assert re.fullmatch(r"urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", bill["serialNumber"])
    assert bill["metadata"]["timestamp"] == "2023-11-14T22:13:20Z"
    assert bill["metadata"]["component"]["version"] == read_project()["project"]["version"]
    types, scopes = {"application", "library"}, {"required", "optional", "excluded"}
    references = [bill["metadata"]["component"]["bom-ref"]]
    for component in bill["components"]:
        assert component["type"] in types and component["name"] and component["version"]
        assert component["scope"] in scopes
        assert re.fullmatch(r"pkg:pypi/[a-z0-9-]+@[\w.+!-]+", component["purl"])
        for reference in component["externalReferences"]:
            assert reference["type"] == "distribution" and reference["url"]
            assert all(one["alg"] == "SHA-256" and len(one["content"]) == 64 for one in reference["hashes"])
        references.append(component["bom-ref"])
    assert len(references) == len(set(references)), "a reference names one component"
    (own,) = bill["dependencies"]
    assert own["ref"] in references and set(own["dependsOn"]) <= set(references)
    assert {one["aggregate"] for one in bill["compositions"]} <= {"complete", "incomplete", "unknown"}


def test_the_bill_of_materials_lists_every_pin_with_its_hashes_and_is_the_same_each_time() -> None:
    bill = document()
    listed = {
        (component["name"], component["version"]): {
            one["content"] for reference in component["externalReferences"] for one in reference["hashes"]
        }
        for component in bill["components"]
    }
    for pin in (*pins()[BUILD], *pins()[RUNTIME]):
        assert set(pin.hashes) <= listed[pin.name, pin.version]
    assert json.dumps(document()) == json.dumps(bill)
    direct = read_project()["project"]["dependencies"]
    assert len(bill["dependencies"][0]["dependsOn"]) == len(direct)


def test_the_security_page_says_how_to_report_and_how_to_verify() -> None:
    page = (ROOT / "SECURITY.md").read_text("utf-8")
    for words in ("docs/threat-model.md", "SHA256SUMS", "--require-hashes", "make release", "Supported versions"):
        assert words in page

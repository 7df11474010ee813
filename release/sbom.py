"""The list of what a release consists of, in the CycloneDX format, made from the locks.

It is the same for the same release: its time is that of the commit, its number is derived from what it lists.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from release.lock import BUILD, RUNTIME, Pin, inputs

SPECIFICATION: Final = "1.6"
_NUMBERS: Final = uuid.UUID("6f1d6a43-5c1c-5f0e-9a53-1d2f4f1f7f2e")
"""The name space of the serial numbers: any, but always the same."""


def bill_of_materials(
    project: Mapping[str, Any], pins: Mapping[str, Sequence[Pin]], archives: Mapping[str, str], time: int
) -> dict[str, Any]:
    """`pins` by lock; `archives`: the sha256 of each file of the release, by its name; `time`: of the commit."""
    name, version = project["project"]["name"], project["project"]["version"]
    own = _address(name, version)
    direct = {canonicalize_name(Requirement(one).name) for one in inputs(project, RUNTIME)}
    document: dict[str, Any] = {
        "bomFormat": "CycloneDX",
        "specVersion": SPECIFICATION,
        "version": 1,
        "metadata": {
            "timestamp": f"{datetime.fromtimestamp(time, UTC):%Y-%m-%dT%H:%M:%SZ}",
            "component": {
                "type": "application",
                "bom-ref": own,
                "name": name,
                "version": version,
                "description": project["project"]["description"],
                "purl": own,
                "externalReferences": [
                    {"type": "distribution", "url": file, "hashes": [_hash(digest)]}
                    for file, digest in sorted(archives.items())
                ],
            },
        },
        "components": [_component(pin, lock) for lock in (RUNTIME, BUILD) for pin in pins[lock]],
        "dependencies": [
            {
                "ref": own,
                "dependsOn": [_address(pin.name, pin.version) for pin in pins[RUNTIME] if pin.name in direct],
            }
        ],
        # All components are listed; which of them needs which is not, but for those that the project itself names.
        "compositions": [{"aggregate": "complete", "assemblies": [own]}, {"aggregate": "incomplete"}],
    }
    text = json.dumps(document, sort_keys=True)
    return {"$schema": _schema(), "serialNumber": f"urn:uuid:{uuid.uuid5(_NUMBERS, text)}", **document}


def _component(pin: Pin, lock: str) -> dict[str, Any]:
    """What the release is built with is not part of it: its scope is `excluded`."""
    address = _address(pin.name, pin.version)
    component: dict[str, Any] = {
        "type": "library",
        "bom-ref": address if lock == RUNTIME else f"{address}?use=build",
        "name": pin.name,
        "version": pin.version,
        "scope": "excluded" if lock == BUILD else "optional" if pin.marker else "required",
        "purl": address,
        # One entry for each file of this version that the lock admits.
        "externalReferences": [
            {"type": "distribution", "url": address, "hashes": [_hash(digest)]} for digest in pin.hashes
        ],
    }
    if pin.marker:
        component["properties"] = [{"name": "proofstone:marker", "value": pin.marker}]
    return component


def _address(name: str, version: str) -> str:
    return f"pkg:pypi/{canonicalize_name(name)}@{version}"


def _hash(digest: str) -> dict[str, str]:
    return {"alg": "SHA-256", "content": digest}


def _schema() -> str:
    return f"http://cyclonedx.org/schema/bom-{SPECIFICATION}.schema.json"

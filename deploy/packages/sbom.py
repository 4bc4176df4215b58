"""Builds the software bill of materials of the image as CycloneDX JSON, from locked packages and their hashes.

In: the text of a lock file from `uv pip compile --generate-hashes`. Out: a document without times or random
identifiers, so that the same lock gives the same file. The base image of a build has its own bill.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from kuberuntime.objects.meta import JSONObject

SPECIFICATION: Final = "1.6"
OWN: Final = ("kuberuntime", "leaderworkerset")
"""The packages of this repository in the image. The last one depends on the first."""

LICENSE: Final = "Apache-2.0"
PINNED: Final = re.compile(r"^(?P<name>[a-z0-9][a-z0-9.-]*)==(?P<version>\S+)(?: ; (?P<marker>[^\\]+?))? \\$")
HASH: Final = re.compile(r"^ {4}--hash=sha256:(?P<digest>[0-9a-f]{64})(?: \\)?$")
NEEDED_BY: Final = re.compile(r"^ {4}#(?: via)? +(?P<name>[a-z0-9][a-z0-9.-]*)")
ALONE: Final = "    # via"


class LockError(ValueError):
    """A line of the lock file cannot be parsed. The message contains the line."""


@dataclass(slots=True)
class Pin:
    """One package of the lock file, with its version, its file hashes, its dependents and its platform marker."""

    name: str
    version: str
    marker: str
    hashes: list[str]
    needed_by: list[str]

    @property
    def reference(self) -> str:
        """Return the package URL, which also identifies the package in the document."""
        return f"pkg:pypi/{self.name}@{self.version}"


def read(lock: str) -> Sequence[Pin]:
    """Parse a lock file. Every line must be known, except empty lines and comments at the start of a line."""
    pins: list[Pin] = []
    for number, line in enumerate(lock.splitlines(), start=1):
        if line in {"", ALONE} or line.startswith("#"):
            continue
        if match := PINNED.match(line):
            pins.append(Pin(match["name"], match["version"], match["marker"] or "", [], []))
        elif pins and (match := HASH.match(line)):
            pins[-1].hashes.append(match["digest"])
        elif pins and (match := NEEDED_BY.match(line)):
            pins[-1].needed_by.append(match["name"])
        else:
            raise LockError(f"line {number} of the lock file is invalid: {line!r}")
    return pins


def build(lock: str, version: str) -> JSONObject:
    """Build the bill of materials of this version."""
    pins = read(lock)
    references = {pin.name: pin.reference for pin in pins} | {name: _own(name, version) for name in OWN}
    needs: dict[str, list[str]] = {name: [] for name in references}
    for pin in pins:
        for name in pin.needed_by:
            needs[name].append(pin.reference)
    product, runtime = OWN[-1], OWN[0]
    needs[product].append(references[runtime])
    components = [_component(runtime, version, references[runtime]), *map(_pinned, pins)]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": SPECIFICATION,
        "version": 1,
        "metadata": {"component": _component(product, version, references[product]) | {"type": "application"}},
        "components": components,
        "dependencies": _dependencies(references, needs),
    }


def _own(name: str, version: str) -> str:
    return f"pkg:generic/{name}@{version}"


def _component(name: str, version: str, reference: str) -> JSONObject:
    return {
        "type": "library",
        "bom-ref": reference,
        "name": name,
        "version": version,
        "purl": reference,
        "licenses": [{"license": {"id": LICENSE}}],
    }


def _pinned(pin: Pin) -> JSONObject:
    return {
        "type": "library",
        "bom-ref": pin.reference,
        "name": pin.name,
        "version": pin.version,
        "purl": pin.reference,
        # A marker excludes a package on some platforms, or on later Python versions.
        "scope": "optional" if pin.marker else "required",
        "hashes": [{"alg": "SHA-256", "content": digest} for digest in pin.hashes],
    }


def _dependencies(references: Mapping[str, str], needs: Mapping[str, Iterable[str]]) -> list[JSONObject]:
    return [{"ref": references[name], "dependsOn": sorted(needs[name])} for name in sorted(references)]

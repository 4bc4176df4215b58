"""Stores the recorded responses of kube-apiserver and its controllers, in one file for each test module.

`make conformance` plays every test to a living control plane and writes the files again. `make test` compares the embedded
servers with the files, `make test-kubernetes` the living ones, and fails where these say something else than the files.
"""

import lzma
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import msgspec
from tests.conformance.transcript import Entry

from kuberuntime.objects.meta import JSON

FOLDER: Final = Path(__file__).parent / "answers"
RENEW: Final = "make conformance"


class Unrecorded(AssertionError):
    """A test has no recorded response. The message contains the command that records it."""


@dataclass
class Recordings:
    """The recorded responses by module and test, which are read on demand, and the new responses of this run."""

    folder: Path = FOLDER
    kept: dict[str, dict[str, JSON]] = field(default_factory=dict)
    heard: dict[str, dict[str, JSON]] = field(default_factory=dict)

    def of(self, module: str, test: str) -> JSON:
        """Return the recorded responses of a test. Raise `Unrecorded` if there are none."""
        if module not in self.kept:
            path = self._path(module)
            self.kept[module] = msgspec.json.decode(lzma.decompress(path.read_bytes())) if path.exists() else {}
        if test not in self.kept[module]:
            raise Unrecorded(f"{module}: nothing is recorded for {test}: {RENEW}")
        return self.kept[module][test]

    def note(self, module: str, test: str, answers: JSON) -> None:
        """Record the responses of a real server."""
        self.heard.setdefault(module, {})[test] = answers

    def write(self) -> None:
        """Write the responses of this run. They replace the recorded responses of the same tests."""
        self.folder.mkdir(exist_ok=True)
        for module, heard in self.heard.items():
            path = self._path(module)
            former = msgspec.json.decode(lzma.decompress(path.read_bytes())) if path.exists() else {}
            content = msgspec.json.encode({name: (former | heard)[name] for name in sorted(former | heard)})
            path.write_bytes(lzma.compress(content, preset=9))

    def _path(self, module: str) -> Path:
        return self.folder / f"{module}.json.xz"


def packed(entries: Iterable[Entry]) -> JSON:
    """Return a transcript as JSON."""
    return [[entry.request, entry.status, entry.warnings, entry.body] for entry in entries]


def unpacked(answers: JSON) -> list[Entry]:
    """Return the transcript from which `packed` created this value."""
    return [Entry(*answer) for answer in answers]

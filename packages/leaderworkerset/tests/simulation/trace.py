"""Records each write of a simulation with its actor, its time, and its response."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Final

import msgspec

from kuberuntime.client.transport import Request, Response
from kuberuntime.objects import meta
from leaderworkerset.api import labels

LEASE: Final = "/leases"
EVENT: Final = "/events"
SHOWN: Final = 200
"""The number of last entries that are printed when a scenario fails."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A write in the trace.

    `answer` is the status, or the reason why there was none. `digest` stands for both bodies; `body` belongs to the
    answer.
    """

    at: float
    actor: str
    verb: str
    object: str
    answer: str
    digest: str = field(default="", repr=False)
    body: bytes = field(default=b"", repr=False, compare=False)

    def __str__(self) -> str:
        return f"{self.at:10.3f}  {self.actor:<12} {self.verb:<6} {self.object}  {self.answer}{self._details()}"

    def _details(self) -> str:
        """Return additional details: the name of a created object, and the fields that control a rollout."""
        if not self.body or self.is_background:
            return ""
        answered = msgspec.json.decode(self.body)
        if answered.get("kind") in ("Status", None) or not meta.name(answered):
            return ""
        own = {"revision": meta.labels(answered).get(labels.TEMPLATE_REVISION_HASH)}
        if answered["kind"] == "StatefulSet":
            spec = meta.spec(answered)
            partition = ((spec.get("updateStrategy") or {}).get("rollingUpdate") or {}).get("partition")
            own |= {"replicas": spec.get("replicas"), "partition": partition}
        name = meta.name(answered) if self.verb == "POST" else ""
        return "  ".join(
            ["", *filter(None, [name]), *(f"{key} {value}" for key, value in own.items() if value is not None)]
        )

    @property
    def is_background(self) -> bool:
        """Return whether this write is an event or belongs to leader election."""
        return LEASE in self.object or EVENT in self.object


class Trace:
    """All writes, in the order of their responses."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.seed: int | str = 0

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.entries)

    def __str__(self) -> str:
        shown = [entry for entry in self.entries if not entry.is_background]
        left_out = max(len(shown) - SHOWN, 0)
        head = f"seed {self.seed}: {len(self.entries)} writes, digest {self._digest()}"
        head += f", the first {left_out} left out" * bool(left_out)
        return "\n".join([head, *map(str, shown[-SHOWN:])])

    def _digest(self) -> str:
        """Return a hash of all entries and their bodies, to compare two runs."""
        compared = ((one.at, one.actor, one.verb, one.object, one.answer, one.digest) for one in self.entries)
        return blake2b(msgspec.json.encode(tuple(compared)), digest_size=8).hexdigest()

    def record(self, at: float, actor: str, request: Request, answer: Response | str) -> None:
        """Add a write."""
        body, text = (b"", answer) if isinstance(answer, str) else (answer.body, str(answer.status))
        digest = blake2b(request.body + body, digest_size=8).hexdigest()
        self.entries.append(Entry(at, actor, request.method, request.path, text, digest, body))

    def note(self, at: float, actor: str, what: str, about: str = "") -> None:
        """Add an entry that is not a write, such as an action of a user or machine, or a violation."""
        self.entries.append(Entry(at, actor, what, about, ""))

    def of(self, actor: str) -> list[Entry]:
        """Return the writes of one actor, without events and leases."""
        return [entry for entry in self.entries if entry.actor == actor and not entry.is_background]

    def settled_at(self) -> float:
        """Return the time of the last write that is neither an event nor part of leader election."""
        return max((entry.at for entry in self.entries if not entry.is_background), default=0.0)

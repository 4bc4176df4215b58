"""Finds the differences between two values."""

from collections.abc import Iterator
from dataclasses import dataclass

from kuberuntime.objects.meta import JSON

ABSENT = "<absent>"


@dataclass(frozen=True)
class Difference:
    """A difference between the responses to one request."""

    request: str
    path: str
    embedded: JSON
    real: JSON

    @property
    def may_come_from_time(self) -> bool:
        """Return whether the difference may depend on timing, as for the owner order or the resource version."""
        return self.path.endswith(".resourceVersion") or ".managedFields" in self.path

    def __str__(self) -> str:
        return f"{self.request}\n    at {self.path}\n    embedded: {self.embedded!r}\n    real:     {self.real!r}"


def parts(path: str, ours: JSON, theirs: JSON) -> Iterator[tuple[str, JSON, JSON]]:
    """Yield the differences between two values."""
    if isinstance(ours, dict) and isinstance(theirs, dict) and ours.get("kind") == theirs.get("kind"):
        for name in sorted({*ours, *theirs}):
            yield from parts(f"{path}.{name}", ours.get(name, ABSENT), theirs.get(name, ABSENT))
    elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        for index, (left, right) in enumerate(zip(ours, theirs, strict=True)):
            yield from parts(f"{path}[{index}]", left, right)
    elif ours != theirs or type(ours) is not type(theirs):
        yield path, ours, theirs

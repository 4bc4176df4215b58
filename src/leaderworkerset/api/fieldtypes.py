"""The Go types of LeaderWorkerSets (`gotypes.json`), beside those of Kubernetes; revisions and schemas use them."""

from pathlib import Path
from typing import Final

from kuberuntime.objects.gotypes import roundtrip
from kuberuntime.objects.gotypes.declarations import KUBERNETES, GoTypes
from kuberuntime.objects.gotypes.rereading import Reading, reread
from kuberuntime.objects.meta import JSON, JSONObject

TYPES: Final = GoTypes(Path(__file__).with_name("gotypes.json"), KUBERNETES)


def round_trip(struct: str, value: JSON, path: str = "", before: Reading | None = None) -> JSONObject:
    """Return `value` as the Go controller writes it; a wrong type raises a `GoTypeError` that names the field.

    With the reading of a value `before` only what differs from that is read.

    >>> round_trip("NetworkConfig", {"subdomainPolicy": None})
    {'subdomainPolicy': None}
    """
    if before is None:
        return roundtrip.round_trip(TYPES, struct, value, path)
    return reread(TYPES, struct, value, before, path)


def is_written_as(struct: str, value: JSON, written: JSON) -> bool:
    """Return whether the Go controller surely writes `value` as `written`; what it writes is not built for that.

    >>> is_written_as("NetworkConfig", {"subdomainPolicy": "Shared", "unknown": 1}, {"subdomainPolicy": "Shared"})
    True
    """
    return roundtrip.is_written_as(TYPES, struct, value, written)

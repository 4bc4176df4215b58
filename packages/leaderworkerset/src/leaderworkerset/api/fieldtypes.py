"""Provides the Go types of LeaderWorkerSets (`gotypes.json`) and of Kubernetes, for revisions and schemas."""

from pathlib import Path
from typing import Final

from kuberuntime.objects.gotypes import roundtrip
from kuberuntime.objects.gotypes.declarations import KUBERNETES, GoTypes
from kuberuntime.objects.meta import JSON, JSONObject

TYPES: Final = GoTypes(Path(__file__).with_name("gotypes.json"), KUBERNETES)


def round_trip(struct: str, value: JSON, path: str = "") -> JSONObject:
    """Return `value` as written by the Go controller. Raise a `GoTypeError` for a field with an invalid type.

    >>> round_trip("NetworkConfig", {"subdomainPolicy": None})
    {'subdomainPolicy': None}
    """
    return roundtrip.round_trip(TYPES, struct, value, path)

"""Computes the hash suffixes of revision and ReplicaSet names, with characters that do not form words."""

from typing import Final

from kuberuntime.objects.fnv import fnv1
from kuberuntime.objects.gotypes.canonicaljson import canonical_json
from kuberuntime.objects.meta import JSONObject

SAFE_CHARACTERS: Final = "bcdfghjklmnpqrstvwxz2456789"


def template_hash(data: JSONObject, collisions: int) -> str:
    """Hash a template or revision data, and the collision count, with FNV-1. JSON is encoded as in Go."""
    digest = str(fnv1(canonical_json(data) + str(collisions).encode()))
    return "".join(SAFE_CHARACTERS[ord(digit) % len(SAFE_CHARACTERS)] for digit in digest)

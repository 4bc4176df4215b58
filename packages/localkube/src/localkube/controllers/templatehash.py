"""The hashes at the end of names of revisions and ReplicaSets, in characters that form no words."""

from typing import Final

from kuberuntime.objects.fnv import fnv1
from kuberuntime.objects.gotypes.canonicaljson import canonical_json
from kuberuntime.objects.meta import JSONObject

SAFE_CHARACTERS: Final = "bcdfghjklmnpqrstvwxz2456789"


def hash_of(data: JSONObject, collisions: int) -> str:
    """Hash a template, or the data of a revision: FNV-1 of its JSON as Go writes it, and of the collision count."""
    digest = str(fnv1(canonical_json(data) + str(collisions).encode()))
    return "".join(SAFE_CHARACTERS[ord(digit) % len(SAFE_CHARACTERS)] for digit in digest)

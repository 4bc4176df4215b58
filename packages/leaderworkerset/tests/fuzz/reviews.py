"""Generates AdmissionReviews of LeaderWorkerSets and pods from a seed. Most of them are nearly valid."""

from random import Random
from typing import Final

import msgspec
from tests.conformance import objects
from tests.fuzz import junk, specimens

from kuberuntime.objects.meta import JSON, JSONObject
from leaderworkerset.api import labels
from leaderworkerset.api.fieldtypes import TYPES
from leaderworkerset.kinds.managedkinds import MANAGED
from localkube.apiserver.model.kind import Schema
from localkube.apiserver.types import schemas

PATHS: Final = tuple(MANAGED.decisions)
OPERATIONS: Final = ("CREATE", "UPDATE", "UPDATE", "DELETE", "CONNECT", "", 5, None)
LABELS: Final = tuple(
    value for name, value in vars(labels).items() if name.isupper() and isinstance(value, str) and "/" in value
)


def review(random: Random, path: str) -> bytes:
    """Return the bytes of a review for a path."""
    specimen, schema = _subject(random, path)
    old = specimen if random.random() < 0.5 else junk.bent(random, specimen, schema)
    new = junk.bent(random, specimen, schema) if random.random() < 0.8 else specimen
    request: JSONObject = {
        "uid": "u", "operation": random.choice(OPERATIONS[:4]), "object": new, "oldObject": old if random.random() < 0.5 else None,
        "kind": {"group": "", "version": "v1", "kind": "Pod"}, "namespace": "default", "name": "one",
    }  # fmt: skip
    whole: JSON = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    if random.random() < 0.1:
        request["operation"] = random.choice(OPERATIONS)
        whole = junk.bent(random, whole)
    try:
        content = msgspec.json.encode(whole)
    except msgspec.MsgspecError:
        content = b"{"
    return junk.damaged(random, content) if random.random() < 0.05 else content


def _subject(random: Random, path: str) -> tuple[JSONObject, Schema | None]:
    if "pod" not in path:
        obj = random.choice((specimens.FULL_LWS, objects.lws("one")))
        whole = {"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet", **obj}
        return whole, LEADERWORKERSET
    pod = random.choice((specimens.FULL_POD, objects.pod("one-0"), objects.pod("one-0-1")))
    marks = {
        name: random.choice((*junk.TEXTS, "0", "1", "2", "one", "one-0"))
        for name in random.sample(LABELS, random.randrange(len(LABELS)))
    }
    notes = {
        name: random.choice((*junk.TEXTS, "0", "1", "2", "4"))
        for name in random.sample(LABELS, random.randrange(len(LABELS)))
    }
    return {
        **pod,
        "metadata": {**pod["metadata"], "namespace": "default", "labels": marks, "annotations": notes},
    }, schemas.struct_schema("Pod")


LEADERWORKERSET: Final = schemas.struct_schema("LeaderWorkerSet", TYPES)

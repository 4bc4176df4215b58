"""Warns about claims that several ranks share, although the volume can be attached to only one node.

The input is manifests, and the claims in the cluster that they reference. The output is a warning for each such claim
of a LeaderWorkerSet.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import PERSISTENT_VOLUME_CLAIMS
from leaderworkerset.api.resources import LEADERWORKERSETS
from lwsctl.cli.reading.manifests import Document

OF_ONE: Final = {"ReadWriteOnce": "attached to one node at a time", "ReadWriteOncePod": "used by one pod at a time"}
TEMPLATES: Final = ("leaderTemplate", "workerTemplate")


def warn_about_claims(documents: Sequence[Document], stored: Iterable[JSONObject], namespace: str) -> Iterator[str]:
    """Yield a warning for each claim that several ranks mount. `namespace` is the default namespace of objects."""
    claims = {
        _key(claim, namespace): claim
        for claim in (*stored, *_objects_of_kind(documents, PERSISTENT_VOLUME_CLAIMS.kind))
    }
    for document in documents:
        for key, (path, pods) in _claim_uses(document.object, namespace).items():
            modes = meta.spec(claims.get(key, {})).get("accessModes") or ()
            limits = [OF_ONE[mode] for mode in modes if mode in OF_ONE]
            if pods > 1 and len(limits) == len(modes) > 0:
                message = document.message(
                    f"{path}: claim {key.name} is {', '.join(modes)} (its volume is {limits[0]}), but {pods} pods mount it; use ReadWriteMany, ReadOnlyMany or "
                    "volumeClaimTemplates"
                )
                yield f"warning: {message}"


def missing_claims(documents: Sequence[Document], namespace: str) -> set[ObjectKey]:
    """Return the claims that several ranks mount and that the manifests do not contain."""
    own = {_key(claim, namespace) for claim in _objects_of_kind(documents, PERSISTENT_VOLUME_CLAIMS.kind)}
    uses = (_claim_uses(document.object, namespace).items() for document in documents)
    return {key for keys in uses for key, (_, pods) in keys if pods > 1} - own


def _objects_of_kind(documents: Sequence[Document], kind: str) -> Iterator[JSONObject]:
    return (document.object for document in documents if document.object["kind"] == kind)


def _key(obj: JSONObject, namespace: str) -> ObjectKey:
    return ObjectKey(meta.namespace(obj) or namespace, meta.name(obj))


def _claim_uses(obj: JSONObject, namespace: str) -> Mapping[ObjectKey, tuple[str, int]]:
    """Return the first field that references each claim of a LeaderWorkerSet, and the number of its pods."""
    uses: dict[ObjectKey, tuple[str, int]] = {}
    if obj["kind"] != LEADERWORKERSETS.kind:
        return uses
    lwt = meta.spec(obj).get("leaderWorkerTemplate") or {}
    groups, size = meta.spec(obj).get("replicas", 1), lwt.get("size", 1)
    counts = (groups, groups * (size - 1)) if lwt.get("leaderTemplate") else (0, groups * size)
    for template, pods in zip(TEMPLATES, counts, strict=True):
        for index, volume in enumerate(meta.spec(lwt.get(template) or {}).get("volumes") or ()):
            if name := (volume.get("persistentVolumeClaim") or {}).get("claimName"):
                path = f"spec.leaderWorkerTemplate.{template}.spec.volumes[{index}].persistentVolumeClaim.claimName"
                key = ObjectKey(meta.namespace(obj) or namespace, name)
                first, others = uses.get(key, (path, 0))
                uses[key] = first, others + pods
    return uses

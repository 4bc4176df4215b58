"""Warnings about pod templates: keys that only controllers set (ADR 29), and fields that no StatefulSet may have."""

from collections.abc import Iterator
from typing import Final

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api import labels
from leaderworkerset.api.leaderworkerset import LeaderWorkerSet

IGNORED: Final = (("labels", meta.labels, labels.POD_LABELS), ("annotations", meta.annotations, labels.POD_ANNOTATIONS))


def warnings(lws: LeaderWorkerSet) -> Iterator[str]:
    """Yield a warning for each map with keys of a running pod, and for each field that prevents creation of pods."""
    template = lws.spec.leader_worker_template
    for field, pod in (("leaderTemplate", template.leader_template), ("workerTemplate", template.worker_template)):
        if pod is not None:
            yield from _of_template(f"spec.leaderWorkerTemplate.{field}", pod)


def _of_template(path: str, pod: JSONObject) -> Iterator[str]:
    for part, read, keys in IGNORED:
        if ignored := sorted(keys & read(pod).keys()):
            yield f"{path}.metadata.{part}: ignored, since only the controllers set them: {', '.join(ignored)}"
    spec = pod.get("spec") or {}
    if (policy := spec.get("restartPolicy") or "Always") != "Always":
        yield (
            f'{path}.spec.restartPolicy: Unsupported value: "{policy}": StatefulSets support "Always" only, so the pods'
            " cannot be created: remove the field"
        )
    if spec.get("activeDeadlineSeconds") is not None:
        yield (
            f"{path}.spec.activeDeadlineSeconds: Forbidden: StatefulSets do not support the field, so the pods cannot be"
            " created: remove it"
        )

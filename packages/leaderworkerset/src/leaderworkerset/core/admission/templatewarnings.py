"""Warnings about pod templates: labels and annotations that only the controllers set, which are ignored (ADR 29)."""

from collections.abc import Iterator
from typing import Final

from kuberuntime.objects import meta
from leaderworkerset.api import labels
from leaderworkerset.api.leaderworkerset import LeaderWorkerSet

IGNORED: Final = (("labels", meta.labels, labels.POD_LABELS), ("annotations", meta.annotations, labels.POD_ANNOTATIONS))


def ignored_keys(lws: LeaderWorkerSet) -> Iterator[str]:
    """Return a warning for each map of a template that has keys of a running pod."""
    template = lws.spec.leader_worker_template
    for field, pod in (("leaderTemplate", template.leader_template), ("workerTemplate", template.worker_template)):
        for part, read, keys in IGNORED:
            if pod is not None and (ignored := sorted(keys & read(pod).keys())):
                where = f"spec.leaderWorkerTemplate.{field}.metadata.{part}"
                yield f"{where}: ignored, since only the controllers set them: {', '.join(ignored)}"

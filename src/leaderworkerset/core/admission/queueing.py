"""Warnings about LeaderWorkerSets that Kueue manages and would treat unexpectedly (R-KQ-4, R-KQ-62).

Kueue manages objects that carry its queue label. The objects are valid either way, so nothing is refused.
"""

from collections.abc import Iterator
from typing import Final

from kuberuntime.objects import intstr, meta
from leaderworkerset.api import labels
from leaderworkerset.api.leaderworkerset import LeaderWorkerSet
from leaderworkerset.core.admission.leaderworkerset import ROLLING_UPDATE, TEMPLATE

QUEUE_LABEL: Final = f"metadata.labels[{labels.QUEUE_NAME}]"


def warnings(lws: LeaderWorkerSet) -> list[str]:
    """Return the warnings for a LeaderWorkerSet that Kueue manages."""
    return [*_surge(lws), *_queue_of_templates(lws)]


def _surge(lws: LeaderWorkerSet) -> Iterator[str]:
    surge = lws.rolling_update.max_surge
    if lws.labels.get(labels.QUEUE_NAME) and isinstance(surge, str) and intstr.is_percent(surge) and surge != "0%":
        yield (
            f'{ROLLING_UPDATE}.maxSurge: "{surge}": Kueue reads percentages as 0 and never admits the additional groups:'
            " use a number of groups"
        )


def _queue_of_templates(lws: LeaderWorkerSet) -> Iterator[str]:
    if lws.labels.get(labels.QUEUE_NAME):
        return
    template = lws.spec.leader_worker_template
    for field, pod in (("leaderTemplate", template.leader_template), ("workerTemplate", template.worker_template)):
        if pod is not None and meta.labels(pod).get(labels.QUEUE_NAME):
            yield (
                f"{TEMPLATE}.{field}.metadata.labels[{labels.QUEUE_NAME}]: without {QUEUE_LABEL}"
                " Kueue counts leaders as single pods and workers not at all: set the label on the LeaderWorkerSet"
            )

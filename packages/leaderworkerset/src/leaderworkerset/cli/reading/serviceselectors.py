"""Services of manifests whose selector matches no pod of these manifests: traffic to them finds nobody.

Only manifests that bring LeaderWorkerSets and no other kind of workload are judged; those of others are not known here.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api import labels
from leaderworkerset.api.resources import LEADERWORKERSETS
from leaderworkerset.cli.reading.manifests import Document

OTHER_WORKLOADS: Final = frozenset(
    {"DisaggregatedSet", "Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job", "CronJob", "Pod"}
)
SET_BY_CONTROLLERS: Final = frozenset(
    {labels.STATEFULSET_REVISION, "apps.kubernetes.io/pod-index", "statefulset.kubernetes.io/pod-name"}
)


def unselected(documents: Sequence[Document]) -> Iterator[str]:
    """Yield a warning for each Service that selects no rank."""
    objects = [document.object for document in documents]
    sets = [obj for obj in objects if obj["kind"] == LEADERWORKERSETS.kind]
    if not sets or any(obj["kind"] in OTHER_WORKLOADS for obj in objects):
        return
    for obj in objects:
        selector = (obj.get("spec") or {}).get("selector") if obj["kind"] == "Service" else None
        if selector and not any(_meet(obj, one) and selects(selector, one) for one in sets):
            words = ",".join(f"{key}={value}" for key, value in selector.items())
            yield (
                f"warning: Service {meta.name(obj)}: spec.selector {words} matches no pod of these manifests: correct it, "
                "or add these labels to leaderTemplate or workerTemplate"
            )


def selects(selector: Mapping[str, str], lws: JSONObject) -> bool:
    """Return whether a selector matches leaders or workers of a LeaderWorkerSet, if it has any."""
    return any(_matches(selector, own) for own in _labels_of(lws))


def _labels_of(obj: JSONObject) -> Iterator[Mapping[str, str]]:
    """Yield the labels of the leaders, and of the workers."""
    template = meta.spec(obj).get("leaderWorkerTemplate") or {}
    worker = template.get("workerTemplate") or {}
    for pod in (template.get("leaderTemplate") or worker, worker):
        yield meta.labels(pod) | {labels.NAME: meta.name(obj)}


def _meet(service: JSONObject, lws: JSONObject) -> bool:
    """Return whether both may be in one namespace: without one they are applied to the command's namespace."""
    return len({meta.namespace(service), meta.namespace(lws)} - {""}) < 2


def _matches(selector: Mapping[str, str], own: Mapping[str, str]) -> bool:
    return all(own.get(key) == value if key in own else _is_controllers(key) for key, value in selector.items())


def _is_controllers(key: str) -> bool:
    """Return whether a controller gives pods this label, whose value is not known here."""
    return key.startswith(labels.PREFIX) or key in SET_BY_CONTROLLERS

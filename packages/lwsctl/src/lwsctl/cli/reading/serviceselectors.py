"""Warns about Services that have no endpoints, because their selector matches no pods of the manifests.

Only manifests with LeaderWorkerSets and without other workloads are checked, because pods of other workloads are
unknown.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api.resources import LEADERWORKERSETS
from leaderworkerset.decisions.serviceselection import service_selects
from lwsctl.cli.reading.manifests import Document

OTHER_WORKLOADS: Final = frozenset(
    {"DisaggregatedSet", "Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job", "CronJob", "Pod"}
)


def warn_about_services(documents: Sequence[Document]) -> Iterator[str]:
    """Yield a warning for each Service that selects no ranks."""
    objects = [document.object for document in documents]
    sets = [obj for obj in objects if obj["kind"] == LEADERWORKERSETS.kind]
    if not sets or any(obj["kind"] in OTHER_WORKLOADS for obj in objects):
        return
    for document in documents:
        obj = document.object
        selector = (obj.get("spec") or {}).get("selector") if obj["kind"] == "Service" else None
        if selector and not any(_share_namespace(obj, lws) and service_selects(selector, lws) for lws in sets):
            words = ",".join(f"{key}={value}" for key, value in selector.items())
            warning = document.message(
                f"spec.selector {words} does not match any pod of these manifests; correct it, or add the labels to the pod templates"
            )
            yield f"warning: {warning}"


def _share_namespace(service: JSONObject, lws: JSONObject) -> bool:
    """Return whether both objects can be in the same namespace.

    An omitted namespace is the namespace of the command.
    """
    return len({meta.namespace(service), meta.namespace(lws)} - {""}) < 2

"""LeaderWorkerSets with `spec.scheduling`, and their objects as the API server serves them."""

from typing import Any

from tests import builders

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api import labels, leaderworkerset
from leaderworkerset.capabilities.deciding import admit_pod
from leaderworkerset.core.gang import workloads
from leaderworkerset.core.gang.gangs import SCHEDULING, Gangs, served_name
from leaderworkerset.core.policies import levels, workloadnames

GANG = Gangs(default="kubernetes", served=[served_name(kind) for kind in SCHEDULING], is_enabled=True)
WHOLE: JSONObject = {"schedulingPolicy": {"gang": {}}}
REPLICA: JSONObject = {}
ROLES: JSONObject = {"replica": {"leader": WHOLE, "worker": WHOLE}}


def lws(scheduling: JSONObject, **fields: Any) -> JSONObject:
    """Return a LeaderWorkerSet with this field."""
    return builders.leaderworkerset_object(spec=fields.pop("spec", {}) | {"scheduling": scheduling}, **fields)


def workload_of(obj: JSONObject) -> JSONObject:
    """Return the Workload of a LeaderWorkerSet in its created form."""
    decoded = leaderworkerset.decode(obj)
    assert decoded.spec.scheduling is not None
    return stored(workloads.build_workload(obj, decoded, decoded.spec.scheduling))


def stored(obj: JSONObject, **metadata: Any) -> JSONObject:
    """Return an object with the additions of the API server, and further metadata."""
    own = {"uid": f"uid-of-{meta.name(obj)}", "resourceVersion": "1"} | metadata
    return obj | {"metadata": meta.metadata(obj) | own}


def leader(obj: JSONObject, index: int = 0, request: str = "r1", **fields: Any) -> JSONObject:
    """Return a leader after its admission; it is not ready and has no node."""
    decoded = leaderworkerset.decode(obj)
    assert decoded.spec.scheduling is not None
    annotations = {
        labels.SIZE: str(decoded.size),
        labels.WORKLOAD_AWARE_SCHEDULING: levels.active_level(decoded.spec.scheduling).value,
        labels.WORKLOAD_NAME: workloadnames.workload_name(decoded),
    }
    made = builders.leader_pod(obj, index, ready=False, annotations=annotations, **fields)
    return admit_pod(made, GANG, request)


def link_of(pod: JSONObject) -> str:
    """Return the name of the PodGroup that a pod is linked to, empty without one."""
    return str((meta.spec(pod).get("schedulingGroup") or {}).get("podGroupName") or "")

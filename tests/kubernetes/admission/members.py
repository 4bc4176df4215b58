"""Builds pods in the same way as the StatefulSet controller, for LeaderWorkerSets with many fields."""

from typing import Any

from hypothesis import strategies as st
from tests.property.test_generated import specs

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api import labels, leaderworkerset
from leaderworkerset.core.admission.leaderworkerset import default_leaderworkerset
from leaderworkerset.core.gang.volcano import VOLCANO
from leaderworkerset.core.leaderworkerset import statefulsets
from leaderworkerset.core.pod import statefulset
from leaderworkerset.core.policies import gang

NAMESPACE = "members"
TOPOLOGIES = ("rack", "zone")
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"

topologies = st.sampled_from(TOPOLOGIES)


@st.composite
def terms(draw: st.DrawFn) -> JSONObject:
    """Return a user's affinity, which may be empty or use topologies that groups also use."""
    kinds = draw(st.lists(st.sampled_from(["nodeAffinity", "podAffinity", "podAntiAffinity"]), unique=True))
    affinity: JSONObject = {}
    for kind in kinds:
        if kind == "nodeAffinity":
            fields = [{"key": "metadata.name", "operator": "In", "values": ["node-1"]}]
            affinity[kind] = {REQUIRED: {"nodeSelectorTerms": [{"matchFields": fields}]}}
        else:
            own = [{"topologyKey": draw(topologies), "labelSelector": {"matchLabels": {"app": "other"}}}]
            affinity[kind] = draw(st.sampled_from([{}, {REQUIRED: []}, {REQUIRED: own}]))
    return affinity


@st.composite
def environments(draw: st.DrawFn) -> list[JSONObject]:
    """Return a user's environment variables, some of which have reserved names."""
    names = draw(st.lists(st.sampled_from(["TEXT", "PORT", *ENVIRONMENT]), unique=True))
    sources: list[JSONObject] = [
        {"value": "mine"},
        {"value": ""},
        {"valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}},
        {"valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "1"}}},
        {"valueFrom": {"configMapKeyRef": {"name": "settings", "key": "k", "optional": True}}},
    ]
    return [{"name": name} | draw(st.sampled_from(sources)) for name in names]


ENVIRONMENT = (labels.ENV_LEADER_ADDRESS, labels.ENV_GROUP_SIZE, labels.ENV_WORKER_INDEX, labels.ENV_GROUP_INDEX)


@st.composite
def sets(draw: st.DrawFn) -> JSONObject:
    """Return a LeaderWorkerSet with defaults, as it is stored."""
    spec = draw(specs())
    template = spec["leaderWorkerTemplate"]
    template["size"] = size = draw(st.integers(1, 9))
    if size > 1 and draw(st.booleans()):
        fitting = [number for number in range(1, size + 1) if size % number == 0 or (size - 1) % number == 0]
        policy: JSONObject = {"subGroupSize": draw(st.sampled_from(fitting))}
        policy["subGroupPolicyType"] = draw(st.sampled_from(["LeaderWorker", "LeaderExcluded"]))
        template["subGroupPolicy"] = policy
    keeps_tpus = draw(st.integers(1, 6)) == 1
    for part in ("workerTemplate", "leaderTemplate"):
        pod_spec = template.get(part, {}).get("spec", {})
        for container in (*pod_spec.get("containers", ()), *pod_spec.get("initContainers", ())):
            if draw(st.booleans()):
                container["env"] = draw(environments())
            if not keeps_tpus and container.get("resources"):
                container["resources"] = {"limits": {"cpu": "1"}}
        if pod_spec and draw(st.booleans()):
            pod_spec["affinity"] = draw(terms())
    annotations = {
        key: draw(topologies)
        for key in (labels.EXCLUSIVE_TOPOLOGY, labels.SUBGROUP_EXCLUSIVE_TOPOLOGY)
        if draw(st.booleans())
    }
    if draw(st.integers(1, 4)) == 1:
        annotations[labels.GANG_SCHEDULER] = draw(st.sampled_from([gang.NONE, VOLCANO.name]))
    name = draw(st.sampled_from(["web", "a-0", "w-12-3"]))
    metadata: JSONObject = {"name": name, "namespace": NAMESPACE, "uid": f"uid-of-{name}", "annotations": annotations}
    obj = {"apiVersion": leaderworkerset.API_VERSION, "kind": leaderworkerset.KIND, "metadata": metadata, "spec": spec}
    return default_leaderworkerset(obj)


def leader_of(obj: JSONObject, index: int) -> JSONObject:
    """Return the leader with this index, before admission."""
    lws = leaderworkerset.decode(obj)
    template = statefulsets.build_template(lws, "revision")
    return _of(template, owner="StatefulSet", owner_uid=UID, keeper=lws.name, ordinal=index, service=lws.name)


def worker_of(obj: JSONObject, leader: JSONObject, index: int) -> JSONObject:
    """Return a worker of an admitted leader, before admission."""
    lws = leaderworkerset.decode(obj)
    workers = statefulset.build(lws, lws, leader, {})
    spec = workers["spec"]
    keeper = meta.name(workers)
    return _of(
        spec["template"], owner="StatefulSet", owner_uid=UID, keeper=keeper, ordinal=index, service=spec["serviceName"]
    )


UID = "2c1b6d0e-7f9e-4a3c-9f10-0d5b6f0f7a11"


def _of(template: JSONObject, *, owner: str, owner_uid: str, keeper: str, ordinal: int, service: str) -> JSONObject:
    name = f"{keeper}-{ordinal}"
    own = template["metadata"]
    reference = {"apiVersion": "apps/v1", "kind": owner, "name": keeper, "uid": owner_uid, "controller": True}
    metadata: dict[str, Any] = {
        "name": name,
        "namespace": NAMESPACE,
        "labels": own["labels"] | {"statefulset.kubernetes.io/pod-name": name},
        "annotations": own["annotations"],
        "ownerReferences": [reference],
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": template["spec"] | {"hostname": name, "subdomain": service},
    }

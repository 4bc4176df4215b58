"""Generates hostile objects that a user with edit permission in one namespace stores, with the project's labels.

The kube-apiserver accepts each of them, or a webhook rejects it. A seed and a number identify an object, so that it can
be generated again.
"""

from collections.abc import Callable
from random import Random
from typing import Any, Final

import msgspec
from tests.integration.clusters import objects

from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import CONTROLLER_REVISIONS, EVENTS, PODS, SERVICES, STATEFULSETS, Resource
from leaderworkerset.api import disaggregatedset, labels
from leaderworkerset.api.resources import DISAGGREGATED_SETS, LEADERWORKERSETS, ROLE_SCALERS
from leaderworkerset.core import decisionevents
from leaderworkerset.core.gang.native import ALPHA_POD_GROUPS, POD_GROUPS

Made = tuple[Resource, JSONObject]

LABEL_VALUES: Final = (
    "",
    "0",
    "1",
    "007",
    "1999999",
    "9" * 62,
    "1e9",
    "0x1F",
    "True",
    "null",
    "a.b_c-D",
    "x" * 63,
)
"""Values that a label may have."""

TEXTS: Final = (
    *LABEL_VALUES,
    "9" * 4301,
    "9" * 20_000,
    "-" + "9" * 5000,
    "٣",
    "²",
    "\x85\x9b\x7f",
    "\x1b[2J\x1b]0;x\x07",
    "\u2028\u202e\ufeff",
    "{" * 2000,
    "2026-01-01T00:00:00",
    "2026-13-45T99:99:99Z",
    "99999-01-01T00:00:00Z",
    "1h" * 3000,
    "inf",
    "nan",
)
"""Annotation values: long strings, strings that are not numbers, and strings that confuse terminals or YAML."""

LABELS: Final = tuple(
    value
    for name, value in vars(labels).items()
    if name.isupper() and isinstance(value, str) and value.startswith(labels.PREFIX) and value != labels.PREFIX
)
"""Each label and annotation of the project, which is tried as both."""

OF_ROLES: Final = (
    disaggregatedset.SET_NAME,
    disaggregatedset.ROLE,
    disaggregatedset.SLICE,
    disaggregatedset.REVISION,
    disaggregatedset.INITIAL_REPLICAS,
)

FINALIZERS: Final = ("example.com/held", "foregroundDeletion", "orphan")
"""Finalizers that delay the deletion of an object until a user removes them."""

LARGE: Final = "large-"
"""Names of workloads that must not have a group, because kube-controller-manager would use 16 GiB for its pods."""

UNREADABLE_AFFINITY: Final = {
    "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "Gt", "values": ["abc"]}]}]
        }
    }
}

UNREADABLE: Final = (
    msgspec.Raw(b'{"spec":' * 3000 + b"1" + b"}" * 3000),
    msgspec.Raw(b'{"spec":"\\ud800"}'),
)
"""Revisions that API servers store, although their JSON cannot be decoded here."""


def make(chance: Random, namespace: str, number: int) -> Made:
    """Return the object with this number. A few numbers cover each kind."""
    return MAKERS[number % len(MAKERS)](chance, namespace, number)


def plain(chance: Random, namespace: str, number: int) -> Made:
    """Return an object that leads to no pods and can be decoded, to be put into a store without asking webhooks."""
    resource, obj = chance.choice((*PLAIN, _scaler))(chance, namespace, number)
    return resource, obj | ({"data": {}} if obj.get("data") in UNREADABLE else {})


def disguise(chance: Random, namespace: str) -> JSONObject:
    """Return metadata with which any object resembles an object of the manager."""
    keys = (*LABELS, *OF_ROLES)
    annotations = {key: chance.choice(TEXTS) for key in chance.sample(keys, chance.randrange(8))}
    own = {key: chance.choice(LABEL_VALUES) for key in chance.sample(keys, chance.randrange(8))}
    own |= {labels.NAME: chance.choice([f"s{chance.randrange(50)}", *LABEL_VALUES])}
    owner = {
        "apiVersion": LEADERWORKERSETS.api_version,
        "kind": LEADERWORKERSETS.kind,
        "name": chance.choice(["web", "x" * 200]),
        "uid": f"00000000-0000-4000-8000-{chance.randrange(2**40):012d}",
        "controller": True,
    }
    return {
        "namespace": namespace,
        "labels": own,
        "annotations": annotations,
        **({"ownerReferences": [owner]} if chance.random() < 0.1 else {}),
        **({"finalizers": [chance.choice(FINALIZERS)]} if chance.random() < 0.1 else {}),
    }


def _pod(chance: Random, namespace: str, number: int) -> Made:
    """Return a leader or worker without a controller, with an index as high as a label allows."""
    metadata = disguise(chance, namespace)
    index = chance.choice([str(1_999_999 - number), *LABEL_VALUES])
    metadata["labels"] |= {labels.WORKER_INDEX: chance.choice(["0", "0", "1", "x"]), labels.GROUP_INDEX: index}
    metadata["annotations"] |= {labels.SIZE: chance.choice([chance.choice(TEXTS), "9" * chance.randrange(4000, 9000)])}
    variables = [{"name": labels.ENV_GROUP_SIZE, "value": chance.choice(["", "9" * 5000])}] * chance.randrange(3)
    spec = objects.pod_template(schedulerName="nobody")["spec"]
    spec["containers"][0] |= {"env": variables}
    if chance.random() < 0.5:
        spec |= {"affinity": UNREADABLE_AFFINITY}
    if chance.random() < 0.5:
        spec |= {
            "schedulingGates": [{"name": chance.choice([labels.GANG_GATE, labels.QUOTA_GATE, "example.com/held"])}]
        }
    name = chance.choice([f"s{number}-1999999", f"pod-{number}"])
    return PODS, _object(PODS, metadata | {"name": name}, spec=spec)


def _statefulset(chance: Random, namespace: str, number: int) -> Made:
    template = objects.pod_template()
    template["metadata"] = {"labels": {"app": f"own-{number}"}}
    spec = {
        "replicas": 0,
        "serviceName": "",
        "selector": {"matchLabels": {"app": f"own-{number}"}},
        "template": template,
    }
    return STATEFULSETS, _object(STATEFULSETS, disguise(chance, namespace) | {"name": f"set-{number}"}, spec=spec)


def _service(chance: Random, namespace: str, number: int) -> Made:
    metadata = disguise(chance, namespace) | {"name": f"service-{number}"}
    return SERVICES, _object(SERVICES, metadata, spec={"clusterIP": "None", "selector": {"a": "b"}})


def _revision(chance: Random, namespace: str, number: int) -> Made:
    """Return a revision or a record of recreations with unexpected content."""
    metadata = disguise(chance, namespace) | {"name": f"revision-{number}"}
    data: Any = chance.choice(
        [{}, {"spec": 7}, {"spec": {"leaderWorkerTemplate": []}}, {"spec": {"x": "9" * 5000}}, *UNREADABLE]
    )
    number_of_it = chance.choice([0, 1, 2**63 - 1])
    return CONTROLLER_REVISIONS, _object(CONTROLLER_REVISIONS, metadata, data=data, revision=number_of_it)


def _leaderworkerset(chance: Random, namespace: str, number: int) -> Made:
    """Return a LeaderWorkerSet of at most a few pods, which fail repeatedly, with invalid values for each setting."""
    size = chance.choice([1, 2, 2**31 - 1])
    name = f"s{number}" if size <= 2 else f"{LARGE}{number}"
    lws = objects.lws(name, replicas=int(size <= 2 and number % 100 == 0), size=size)
    template = lws["spec"]["leaderWorkerTemplate"]["workerTemplate"]
    template["metadata"] = {"annotations": {"tests.example.com/restarts": "3"}}
    template["spec"]["containers"][0]["env"] = [{"name": labels.ENV_LEADER_ADDRESS, "value": "mine"}]
    metadata = disguise(chance, namespace)
    some = metadata["annotations"] if chance.random() < 0.3 else {}  # the webhook denies most of these objects
    own = {labels.RESTART_BACKOFF: "off", labels.REVISION_HISTORY_LIMIT: chance.choice(TEXTS)}
    lws["metadata"] |= {"namespace": namespace, "annotations": some | own}
    return LEADERWORKERSETS, lws


def _disaggregatedset(chance: Random, namespace: str, number: int) -> Made:
    """Return a set with many roles of no replicas and unexpected annotations: few bytes, many LeaderWorkerSets."""
    template = {"size": 1, "workerTemplate": objects.pod_template()}
    roles = [{"name": f"r{role}", "spec": {"replicas": 0, "leaderWorkerTemplate": template}} for role in range(2)]
    metadata = {"name": f"d{number}", "namespace": namespace, "annotations": disguise(chance, namespace)["annotations"]}
    return DISAGGREGATED_SETS, _object(DISAGGREGATED_SETS, metadata, spec={"slices": 2, "roles": roles})


def _scaler(chance: Random, namespace: str, number: int) -> Made:
    metadata = disguise(chance, namespace) | {"name": f"scaler-{number}"}
    spec = {"replicas": chance.choice([0, 2**31 - 1])}
    return ROLE_SCALERS, _object(ROLE_SCALERS, metadata, spec=spec)


def _event(chance: Random, namespace: str, number: int) -> Made:
    """Return an event like the manager's events, for an object in another namespace, or with an unexpected note."""
    regarding = {"kind": LEADERWORKERSETS.kind, "name": "web", "namespace": chance.choice([namespace, "victim"])}
    content = {
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "type": chance.choice(["Normal", "Warning"]),
        "reason": chance.choice(
            [decisionevents.recreating_group.reason, decisionevents.failed_create.reason, "x" * 128]
        ),
        "action": "Create",
        "note": chance.choice(TEXTS)[:1024],
        "regarding": regarding | {"apiVersion": LEADERWORKERSETS.api_version},
        "reportingController": "leaderworkerset",
        "reportingInstance": "leaderworkerset-somebody",
    }
    return EVENTS, _object(EVENTS, {"name": f"web.{number:x}", "namespace": namespace}, **content)


def _pod_group(chance: Random, namespace: str, number: int) -> Made:
    """Return a PodGroup with a quorum that cannot be reached."""
    metadata = disguise(chance, namespace) | {"name": chance.choice([f"s{number}-0", f"group-{number}"])}
    policy = {"gang": {"minCount": chance.choice([1, 2**31 - 1])}}
    # the two versions alternate, because a server supports only one of them
    resource = (POD_GROUPS, ALPHA_POD_GROUPS)[number // len(MAKERS) % 2]
    return resource, _object(resource, metadata, spec={"schedulingPolicy": policy})


def status(chance: Random, resource: Resource) -> JSONObject:
    """Return an unexpected status, as any user with permission may store it."""
    much, condition = chance.choice([0, 1, 2**31 - 1]), chance.choice(["Ready", "Available", "PodScheduled", "x"])
    conditions = [{"type": condition, "status": chance.choice(["True", "False", "Unknown"])}]
    if resource == PODS:
        container = {"name": "main", "image": "", "imageID": "", "ready": chance.random() < 0.5, "restartCount": much}
        phase = chance.choice(["Pending", "Running", "Failed", "Succeeded", "Unknown"])
        return {"phase": phase, "conditions": conditions, "containerStatuses": [container] * chance.randrange(3)}
    counts = ("replicas", "readyReplicas", "availableReplicas", "updatedReplicas")
    revisions = {"currentRevision": chance.choice(TEXTS), "updateRevision": chance.choice(TEXTS)}
    return {**dict.fromkeys(counts, much), **revisions, "observedGeneration": 2**62, "conditions": conditions}


def _object(resource: Resource, metadata: JSONObject, **content: Any) -> JSONObject:
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, **content}


PLAIN: Final[tuple[Callable[[Random, str, int], Made], ...]] = (_pod, _pod, _pod, _statefulset, _service, _revision)
MAKERS: Final = (*PLAIN, *PLAIN, _leaderworkerset, _disaggregatedset, _scaler, _event, _pod_group)
"""The generators of objects. Frequent ones are listed several times."""

PRODUCT: Final = (LEADERWORKERSETS, DISAGGREGATED_SETS, ROLE_SCALERS)

KINDS: Final = {*PRODUCT, STATEFULSETS, PODS, SERVICES, CONTROLLER_REVISIONS, EVENTS}
"""The generated kinds that each cluster serves, which are all except PodGroups."""

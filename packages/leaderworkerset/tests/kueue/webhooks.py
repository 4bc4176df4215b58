"""Simulates Kueue's admission, which changes and rejects LeaderWorkerSets and pods."""

from typing import Any, Final

from tests.kueue import refusals

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import MUTATING_WEBHOOK_CONFIGURATIONS, PODS, VALIDATING_WEBHOOK_CONFIGURATIONS
from leaderworkerset.api.resources import LEADERWORKERSETS
from leaderworkerset.core.policies.policy import DeniedError
from leaderworkerset.webhooks.configurations import Objects
from leaderworkerset.webhooks.review import Review
from leaderworkerset.webhooks.spec import ClientConfig, WebhookSpec

PREFIX: Final = refusals.PREFIX
QUEUE: Final = PREFIX + "queue-name"
PARENT: Final = PREFIX + "pod-suspending-parent"
PRIORITY: Final = PREFIX + "priority-class"
TOPOLOGY: Final = refusals.REQUIRED
GATES: Final = (PREFIX + "admission", PREFIX + "topology")
FRAMEWORK: Final = "leaderworkerset.x-k8s.io/leaderworkerset"
CONFIGURATION: Final = "kueue-mutating-webhook-configuration"
VALIDATING_CONFIGURATION: Final = "kueue-validating-webhook-configuration"


def stamp_leaderworkerset(review: Review) -> JSONObject:
    """Label the templates. If there is no strategy, add an empty `type` (R-KQ-10 to R-KQ-13)."""
    obj = review.object
    queue = meta.labels(obj).get(QUEUE)
    if not queue:
        return obj
    spec = meta.spec(obj)
    template = spec["leaderWorkerTemplate"]
    stamped = {
        name: _stamped(template[name], queue) for name in ("leaderTemplate", "workerTemplate") if template.get(name)
    }
    strategy = spec.get("rolloutStrategy") or {"type": ""}
    return obj | {"spec": spec | {"leaderWorkerTemplate": template | stamped, "rolloutStrategy": strategy}}


def _stamped(template: JSONObject, queue: str) -> JSONObject:
    own = {
        "labels": meta.labels(template) | {QUEUE: queue},
        "annotations": meta.annotations(template) | {PARENT: FRAMEWORK, PREFIX + "pod-group-serving": "true"},
    }
    return template | {"metadata": meta.metadata(template) | own}


def gate_pod(review: Review) -> JSONObject:
    """Add a gate to a pod with a labeled template (R-KQ-30)."""
    pod = review.object
    if PARENT not in meta.annotations(pod):
        return pod
    gates = [*(meta.spec(pod).get("schedulingGates") or []), *({"name": gate} for gate in GATES)]
    return pod | {"spec": meta.spec(pod) | {"schedulingGates": gates}}


def check_leaderworkerset(review: Review) -> JSONObject:
    """Reject workloads that can never be admitted, and changes to admitted fields (R-KQ-5, R-KQ-15 to R-KQ-19)."""
    old, new = review.old, review.object
    queue = meta.labels(new).get(QUEUE)
    if queue and not meta.is_deleting(new):
        refusals.check(new, queue)
    if old is None or meta.is_deleting(new) or not (queue or meta.labels(old).get(QUEUE)):
        return new
    is_running = bool(meta.status(old).get("readyReplicas"))
    for label, is_fixed in ((QUEUE, is_running), (PRIORITY, is_running and PRIORITY not in meta.labels(old))):
        before, after = meta.labels(old).get(label), meta.labels(new).get(label)
        if before != after and (is_fixed or after is None):
            raise DeniedError(f"metadata.labels[{label}]: Invalid value: {after!r}: field is immutable")
    if queue and _shape(old) != _shape(new):
        raise DeniedError("spec.leaderWorkerTemplate: Invalid value: size and the shape of pods are immutable")
    return new


def _shape(lws: JSONObject) -> Any:
    """Return the fields of a LeaderWorkerSet that affect an admission (R-KQ-18)."""
    template = meta.spec(lws)["leaderWorkerTemplate"]
    pods = {name: template[name] for name in ("leaderTemplate", "workerTemplate") if template.get(name)}
    shapes = {
        name: [(one["name"], (one.get("resources") or {}).get("requests")) for one in meta.spec(pod)["containers"]]
        for name, pod in pods.items()
    }
    return template["size"], shapes, [meta.spec(pod).get("nodeSelector") for pod in pods.values()]


WEBHOOKS: Final = (
    WebhookSpec(
        name="mleaderworkerset.kueue.x-k8s.io",
        path="/kueue/leaderworkerset",
        decide=stamp_leaderworkerset,
        resource=LEADERWORKERSETS,
        operations=("CREATE", "UPDATE"),
        mutates=True,
    ),
    WebhookSpec(
        name="mpod.kueue.x-k8s.io",
        path="/kueue/pod",
        decide=gate_pod,
        resource=PODS,
        operations=("CREATE",),
        mutates=True,
    ),
    WebhookSpec(
        name="vleaderworkerset.kueue.x-k8s.io",
        path="/kueue/validate",
        decide=check_leaderworkerset,
        resource=LEADERWORKERSETS,
        operations=("CREATE", "UPDATE"),
        mutates=False,
    ),
)


def build_configurations(at: ClientConfig) -> Objects:
    """Build webhook configurations whose names sort before the manager's, so that they are called first."""
    return [
        (
            resource,
            {
                "apiVersion": resource.api_version,
                "kind": resource.kind,
                "metadata": {"name": name},
                "webhooks": [spec.build(at) for spec in WEBHOOKS if spec.mutates is mutates],
            },
        )
        for resource, name, mutates in (
            (MUTATING_WEBHOOK_CONFIGURATIONS, CONFIGURATION, True),
            (VALIDATING_WEBHOOK_CONFIGURATIONS, VALIDATING_CONFIGURATION, False),
        )
    ]

"""DisaggregatedSets as the API server serves them, with the values that matter to a test given by name."""

from collections.abc import Mapping, Sequence
from typing import Any

from tests.builders import NAMESPACE

from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api import disaggregatedset


def role(name: str, replicas: int | None = 1, *, image: str = "app:1", size: int = 1, **fields: Any) -> JSONObject:
    """Return an entry of `spec.roles`. `rollout`, `scaling` and `metadata` are the fields with these names."""
    rollout = fields.pop("rollout", None)
    container = {"name": "main", "image": image, "command": ["sleep", "infinity"]}
    spec: JSONObject = {
        "leaderWorkerTemplate": {
            "size": size,
            "restartPolicy": "RecreateGroupOnPodRestart",
            "workerTemplate": {"spec": {"containers": [container]}},
        }
    }
    if replicas is not None:
        spec["replicas"] = replicas
    if rollout is not None:
        spec["rolloutStrategy"] = {"type": "RollingUpdate", "rollingUpdateConfiguration": dict(rollout)}
    if fields.pop("external", False):
        fields["scaling"] = {"mode": "External"}
    return {"name": name, "spec": spec} | fields


def disaggregatedset_object(
    roles: Sequence[JSONObject] = (),
    *,
    name: str = "split",
    metadata: Mapping[str, Any] | None = None,
    status: JSONObject | None = None,
    **spec: Any,
) -> JSONObject:
    """Return a DisaggregatedSet, of prefill and decode where no roles are given."""
    own = {"name": name, "namespace": NAMESPACE, "uid": f"uid-of-{name}", "generation": 1, "resourceVersion": "1"}
    return {
        "apiVersion": disaggregatedset.API_VERSION,
        "kind": disaggregatedset.KIND,
        "metadata": own | dict(metadata or {}),
        "spec": {"roles": list(roles) or [role("prefill"), role("decode")]} | spec,
    } | ({} if status is None else {"status": status})


def with_image(obj: JSONObject, image: str) -> JSONObject:
    """Return the roles of a DisaggregatedSet with another image in each template."""
    roles = []
    for one in obj["spec"]["roles"]:
        template = one["spec"]["leaderWorkerTemplate"]
        (container,) = template["workerTemplate"]["spec"]["containers"]
        changed = template | {"workerTemplate": {"spec": {"containers": [container | {"image": image}]}}}
        roles.append(one | {"spec": one["spec"] | {"leaderWorkerTemplate": changed}})
    return {"roles": roles}

"""The variables by which a process finds its group: `LWS_LEADER_ADDRESS` and others (R-ENV-1 to R-ENV-5).

The three variables of the contract are the first in every container, and override the user's variables.
`LWS_GROUP_INDEX` follows them, unless the user has set it.
"""

from typing import Final

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api import groupname, labels
from leaderworkerset.core.policies.edits import environment, with_each_container
from leaderworkerset.core.policies.policy import DeniedError, Member, Policy


def inject(pod: JSONObject) -> JSONObject:
    """Return the pod with the variables in every container and init container."""
    variables = build_variables(pod)
    return with_each_container(pod, lambda container: _prepend(container, variables))


def build_variables(pod: JSONObject) -> dict[str, str]:
    """Return names and values in order; deny the pod if a label or annotation is missing (R-ENV-2, R-ENV-5)."""
    own, annotations = meta.labels(pod), meta.annotations(pod)
    name = _present(pod, own, labels.NAME, "name label")
    group_index = _present(pod, own, labels.GROUP_INDEX, "group index label")
    size = _present(pod, annotations, labels.SIZE, "size annotation")
    worker_index = _present(pod, own, labels.WORKER_INDEX, "worker index label")
    host = (
        groupname.host(pod)
        if groupname.is_hash(pod) and worker_index == labels.LEADER_WORKER_INDEX
        else f"{name}-{group_index}"
    )
    subdomain = meta.spec(pod).get("subdomain") or ""
    address = annotations.get(labels.LEADER_ADDRESS) or f"{host}.{subdomain}.{meta.namespace(pod)}"
    return {
        labels.ENV_LEADER_ADDRESS: address,
        labels.ENV_GROUP_SIZE: size,
        labels.ENV_WORKER_INDEX: worker_index,
        labels.ENV_GROUP_INDEX: group_index,
    }


def _present(pod: JSONObject, values: dict[str, str], key: str, what: str) -> str:
    if key not in values:
        raise DeniedError(f"Failure constructing environment variables, no {what} found for pod {meta.key(pod)}")
    return values[key]


def _prepend(container: JSONObject, variables: dict[str, str]) -> JSONObject:
    """Put the variables first; of several user variables with one name, keep the first (R-ENV-3)."""
    own: dict[str, JSONObject] = {}
    for entry in environment(container):
        own.setdefault(entry.get("name", ""), entry)
    injected = {
        name: {"name": name, "value": value}
        for name, value in variables.items()
        if name != labels.ENV_GROUP_INDEX or name not in own
    }
    kept = [entry for name, entry in own.items() if name not in injected]
    return container | {"env": [*injected.values(), *kept]}


def admit(pod: JSONObject, _member: Member) -> JSONObject:
    """Return the pod with the variables that name its group."""
    return inject(pod)


POLICY: Final = Policy(admit=admit)

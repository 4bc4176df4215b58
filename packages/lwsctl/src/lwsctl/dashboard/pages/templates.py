"""Builds the pods of a group from the templates, with the defaults that an API server sets. Pure."""

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from lwsctl.model.leaderworkerset import LISTED, View


def leader_and_worker(lws: JSONObject) -> tuple[JSONObject, JSONObject]:
    """Return the leader template and the worker template. Missing requests are set to the limits.

    An API server sets default requests from limits when a pod is created. This does not apply to templates.
    """
    template = meta.spec(lws).get("leaderWorkerTemplate") or {}
    worker = template.get("workerTemplate") or {}
    return _with_defaults(template.get("leaderTemplate") or worker), _with_defaults(worker)


def group_pods(view: View) -> list[JSONObject]:
    """Return the pods of one group with the fields that determine suitable nodes."""
    leader, worker = leader_and_worker(view.object)
    size = int((meta.spec(view.object).get("leaderWorkerTemplate") or {}).get("size", 1))
    return [leader, *([worker] * (min(size, LISTED) - 1))]


def _with_defaults(template: JSONObject) -> JSONObject:
    spec = meta.spec(template)
    kinds = {name: list(map(_with_requests, spec.get(name) or ())) for name in ("containers", "initContainers")}
    own = _with_requests(spec) if spec.get("resources") else spec
    return template | {"spec": own | kinds}


def _with_requests(owner: JSONObject) -> JSONObject:
    resources = owner.get("resources") or {}
    requests = (resources.get("limits") or {}) | (resources.get("requests") or {})
    return owner | {"resources": resources | {"requests": requests}} if requests else owner

"""Implements POST to a pod's `/eviction`, which deletes the pod if its PodDisruptionBudget permits the eviction.

Mirrors `eviction.go` of kube-apiserver. The pod gets the condition `DisruptionTarget` first. A granted eviction is
recorded in the status of the budget before the pod is deleted. Evictions are granted only after the budget controller
has observed the latest spec.
"""

from collections.abc import Iterator
from typing import Final

import msgspec
from msgspec.structs import replace

from kuberuntime.objects import disruptiontarget, meta, selectors, timestamps
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import POD_DISRUPTION_BUDGETS
from localkube.apiserver.builtin.deployments import ALWAYS_ALLOW
from localkube.apiserver.model import apierrors
from localkube.apiserver.requests import body
from localkube.apiserver.requests.call import Call
from localkube.apiserver.storage.store import StoreKey
from localkube.apiserver.verbs.backend import Backend
from localkube.apiserver.verbs.writing import delete
from localkube.apiserver.verbs.writing.binding import SUCCESS

UNPROTECTED: Final = ("Pending", "Succeeded", "Failed")
"""The pod phases that budgets do not protect."""

MOST_DISRUPTED: Final = 2000
"""The maximum number of granted evictions that the budget controller has not observed yet."""

BUDGETS: Final = POD_DISRUPTION_BUDGETS.group_resource


async def evict(backend: Backend, call: Call) -> JSONObject:
    """Delete the pod if its budget permits the eviction."""
    sent = body.read_struct(call, "Eviction", {"policy/v1", "policy/v1beta1"})
    options = msgspec.json.encode(sent.get("deleteOptions") or {})
    delete_options = delete.read_options(replace(call, body=options, headers={}))
    pod = backend.store.get(call.key)
    is_protected = pod is not None and not meta.is_deleting(pod) and meta.status(pod).get("phase") not in UNPROTECTED
    if pod is not None and is_protected and (budget := _find_budget(backend, pod)) is not None:
        if _is_evictable_while_unready(pod, budget):
            delete_options = replace(delete_options, resource_version=meta.resource_version(pod))
        else:
            granted = _record_eviction(budget, pod, timestamps.render(backend.clock.now()))
            if not delete_options.dry_run:
                key = StoreKey(BUDGETS, meta.namespace(budget), meta.name(budget))
                backend.store.update(key, granted, budget)
                await backend.store.wait_committed()
    delete_options = await _add_condition(backend, call, delete_options)
    await delete.delete_object(backend, call, delete_options)
    return SUCCESS


async def _add_condition(backend: Backend, call: Call, options: delete.DeleteOptions) -> delete.DeleteOptions:
    """Add the eviction condition to the pod. Return the options for its new version."""
    pod = backend.store.get(call.key)
    if pod is None or options.dry_run or options.uid not in (None, meta.uid(pod)):
        return options
    if options.resource_version not in (None, meta.resource_version(pod)):
        return options
    now = backend.clock.now()
    marked = disruptiontarget.with_condition(pod, "EvictionByEvictionAPI", "Eviction API: evicting", now)
    stored = backend.store.update(call.key, marked, pod)
    await backend.store.wait_committed()
    is_guarded = options.resource_version is not None
    return replace(options, resource_version=meta.resource_version(stored)) if is_guarded else options


def _find_budget(backend: Backend, pod: JSONObject) -> JSONObject | None:
    """Return the budget of a pod, or None if it has no budget. Raise an error if it has several budgets."""
    budgets = list(_budgets(backend, pod))
    if len(budgets) > 1:
        text = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
        raise apierrors.not_stored(text)
    return budgets[0] if budgets else None


def _budgets(backend: Backend, pod: JSONObject) -> Iterator[JSONObject]:
    for row in backend.store.list(BUDGETS, meta.namespace(pod)):
        budget = msgspec.json.decode(row)
        if selectors.from_object(meta.spec(budget).get("selector")).matches(meta.labels(pod)):
            yield budget


def _is_evictable_while_unready(pod: JSONObject, budget: JSONObject) -> bool:
    """Return whether an unready pod can be evicted without being counted."""
    if meta.is_condition_true(pod, "Ready"):
        return False
    status = meta.status(budget)
    desired = status["desiredHealthy"]
    is_healthy = bool(status["currentHealthy"] >= desired > 0)
    return is_healthy or meta.spec(budget).get("unhealthyPodEvictionPolicy") == ALWAYS_ALLOW


def _record_eviction(budget: JSONObject, pod: JSONObject, now: str) -> JSONObject:
    """Return the budget with one more recorded eviction. Raise an error if it does not permit another eviction."""
    status, name = meta.status(budget), meta.name(budget)
    allowed, disrupted = status["disruptionsAllowed"], status.get("disruptedPods") or {}
    if status.get("observedGeneration", 0) < meta.generation(budget):
        raise _too_many_requests_error(
            f"The disruption budget {name} is still being processed by the server.", seconds=10
        )
    if allowed < 0:
        raise apierrors.forbidden(POD_DISRUPTION_BUDGETS, name, "pdb disruptions allowed is negative")
    if len(disrupted) > MOST_DISRUPTED:
        why = "DisruptedPods map too big - too many evictions not confirmed by PDB controller"
        raise apierrors.forbidden(POD_DISRUPTION_BUDGETS, name, why)
    if allowed == 0:
        raise _too_many_requests_error(_no_eviction_reason(status, name))
    counts = {"disruptionsAllowed": allowed - 1, "disruptedPods": {**disrupted, meta.name(pod): now}}
    return {**budget, "status": {**status, **counts}}


def _no_eviction_reason(status: JSONObject, name: str) -> str:
    condition = meta.find_condition({"status": status}, "DisruptionAllowed") or {}
    if condition.get("reason") == "SyncFailed":
        why = condition.get("message", "")
        return f"The disruption budget {name} does not allow evicting pods currently because it failed sync: {why}"
    desired, healthy = status["desiredHealthy"], status["currentHealthy"]
    return f"The disruption budget {name} needs {desired} healthy pods and has {healthy} currently"


def _too_many_requests_error(why: str, *, seconds: int = 0) -> apierrors.StatusError:
    text = "Cannot evict pod as it would violate the pod's disruption budget."
    details: JSONObject = {"causes": [{"reason": "DisruptionBudget", "message": why}]}
    details |= {"retryAfterSeconds": seconds} if seconds else {}
    return apierrors.StatusError(429, "TooManyRequests", text, details)

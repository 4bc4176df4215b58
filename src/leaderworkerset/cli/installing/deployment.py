"""Waits for a Deployment; what is missing is derived from its objects alone."""

from collections.abc import Sequence

from kuberuntime import timeouts
from kuberuntime.cache.informer import Informer
from kuberuntime.client.client import Client
from kuberuntime.client.requests import Selection, only
from kuberuntime.objects import meta, podstate
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import DEPLOYMENTS, PODS
from leaderworkerset.cli.errors import CommandError, TimedOutError
from leaderworkerset.cli.views.progress import ProgressLine
from leaderworkerset.cli.watchwarnings import following


async def until_rolled_out(client: Client, key: ObjectKey, label_selector: str, timeout: float) -> None:
    """Wait until all replicas of a Deployment run the newest template; its pods have these labels."""
    deployments = Informer(client, only(DEPLOYMENTS, key))
    pods = Informer(client, Selection(PODS, key.namespace, label_selector))
    progress, missing = ProgressLine(), "the first answer of the API server"

    def is_done() -> bool | None:
        nonlocal missing
        deployment = deployments.store.get(key)
        if deployment is None:
            raise CommandError(f"deployment/{key.name} was deleted while lws waited for it")
        missing = missing_for_rollout(deployment, pods.store.list())
        if missing:
            progress.show(f"deployment/{key.name}: {missing}")
        return None if missing else True

    try:
        async with timeouts.within(timeout), following(deployments, pods) as objects:
            await objects.until(is_done)
    except TimeoutError as error:
        raise TimedOutError(f"deployment/{key.name} after {timeout:g} s: {missing}") from error
    finally:
        progress.clear()


def missing_for_rollout(deployment: JSONObject, pods: Sequence[JSONObject]) -> str:
    """Return what a Deployment lacks, with the reason of a pod or condition; empty if it lacks nothing.

    >>> missing_for_rollout({"metadata": {"generation": 2}, "status": {"observedGeneration": 1}}, [])
    'its controller has not seen the newest spec'
    """
    status, desired = meta.status(deployment), int(meta.spec(deployment).get("replicas", 1))
    if int(status.get("observedGeneration") or 0) < meta.generation(deployment):
        return "its controller has not seen the newest spec"
    updated, available, total = (
        int(status.get(name) or 0) for name in ("updatedReplicas", "availableReplicas", "replicas")
    )
    if updated < desired or available < desired:
        return f"{min(updated, available)} of {desired} new replicas available{_reason(deployment, pods)}"
    return f"{total - desired} old replicas still run" if total > desired else ""


def _reason(deployment: JSONObject, pods: Sequence[JSONObject]) -> str:
    failure = meta.find_condition(deployment, "ReplicaFailure") or {}
    if failure.get("status") == "True":
        return f"; {failure.get('message')}"
    states = ((meta.name(pod), podstate.state(pod), podstate.why(pod)) for pod in sorted(pods, key=meta.name))
    return next((f"; {name} is {state}: {why}" for name, state, why in states if why), "")

"""Finds injected containers that are not ready, such as the proxy of a service mesh. Pure."""

from typing import Final

from kuberuntime.objects import meta, podstate
from kuberuntime.objects.meta import JSONObject
from lwsctl.diagnosis import exits, ranks
from lwsctl.diagnosis.causes.starts import startup_verdict
from lwsctl.diagnosis.finding import Finding, cause
from lwsctl.diagnosis.observed import Observed
from lwsctl.diagnosis.ranks import is_scheduled_or_recorded
from lwsctl.model.diagnosis import Person
from lwsctl.model.groups import Rank
from lwsctl.model.health import Verdict
from lwsctl.views.podcontainers import container_status

PARTS: Final = ("initContainers", "containers")


def _names(spec: JSONObject, *parts: str) -> list[str]:
    return [str(container.get("name")) for part in parts for container in spec.get(part) or []]


def injected_containers(observed: Observed, rank: Rank) -> list[str]:
    """Return the containers of a pod that the current template does not contain, or none during a rollout.

    If the pod is missing, the containers are read from its recorded runs.
    """
    template = observed.view.pod_template(is_leader=rank.index == 0)
    own = set(_names(meta.spec(template), *PARTS))
    names = _names(meta.spec(rank.object), *PARTS) if rank.object else [*own, *(run.container for run in rank.deaths)]
    if observed.view.is_updating or not own or not own <= set(names):
        return []
    return [name for name in names if name not in own]


@cause(
    code="LWS-E111",
    title="an injected container is not ready",
    meaning="A webhook injected a container, such as a service mesh proxy, into the pod. The pod is not ready until this container is ready.",
    person=Person.ADMINISTRATOR,
    remedy="Read the log of the container. Alternatively, use an annotation of the webhook to exclude pods from the injection.",
)
def find_unready_injection(observed: Observed) -> Finding | None:
    """Find an injected container that prevents a pod from starting or from becoming ready."""
    for rank in observed.ranks_at(is_scheduled_or_recorded):
        names = injected_containers(observed, rank)
        failed = next((run for run in rank.deaths[:1] if run.container in names), None)
        blocking = next((name for name in names if failed is None and _blocks(rank, name, names)), None)
        if failed is not None:
            error = ranks.quote_message(podstate.quotation(failed.end))
            return _finding(observed, rank, failed.container, f"fails with {exits.describe_exit(failed.end)}{error}")
        if blocking is None:
            continue
        probes = ranks.warning_messages(observed, rank, "Unhealthy")
        is_init = blocking in _names(meta.spec(rank.object or {}), "initContainers")
        wait = "the other containers wait for it" if is_init else "the other containers are ready"
        text = f"is not ready, and {wait}" + (f": {ranks.quote_message(probes[0])}" if probes else "")
        return _finding(observed, rank, blocking, text)
    return None


def _finding(observed: Observed, rank: Rank, container: str, text: str) -> Finding:
    status = container_status(rank.object or {}, container)
    is_ill = bool(rank.deaths or status.get("restartCount")) or "terminated" in (status.get("lastState") or {})
    return Finding(
        subject=ranks.pod_subject(rank),
        sentence=f"injected container {container} of pod {rank.pod} {text}",
        evidence=(f"{rank.pod}: {rank.state}; container {container} is in the pod, but not in {observed.template}",),
        steps=(
            observed.lws(f"logs {observed.view.name}/{rank.place} -c {container}"),
            f"find out which mutating webhook injects container {container}, and what the container waits for",
        ),
        verdict=Verdict.STUCK if is_ill else startup_verdict(observed, rank),
    )


def _blocks(rank: Rank, name: str, injected_names: list[str]) -> bool:
    """Return whether an injected container is the only reason why the pod is not ready."""
    spec, status = meta.spec(rank.object or {}), container_status(rank.object or {}, name)
    if name in _names(spec, "initContainers"):
        others = _names(spec, "initContainers")
        before = others[: others.index(name)]
        return (
            rank.state == "PodInitializing" or rank.state.startswith("Init:")
            if not status
            else (
                not (status.get("ready") or status.get("started"))
                and all(_has_terminated(rank, other) for other in before)
            )
        )
    containers = [other for other in _names(spec, "containers") if other not in injected_names]
    return not status.get("ready") and all(
        container_status(rank.object or {}, other).get("ready") for other in containers
    )


def _has_terminated(rank: Rank, name: str) -> bool:
    status = container_status(rank.object or {}, name)
    return bool(status.get("ready") or status.get("started"))

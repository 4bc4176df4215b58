"""Containers that somebody injected into pods, such as the proxy of a service mesh, and that are not ready. Pure."""

from typing import Final

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.diagnosis import ranks
from leaderworkerset.diagnosis.causes.starts import warming
from leaderworkerset.diagnosis.finding import Finding, cause
from leaderworkerset.diagnosis.observed import Observed
from leaderworkerset.diagnosis.ranks import is_placed
from leaderworkerset.views.groups import Rank
from leaderworkerset.views.health.verdict import Verdict

PARTS: Final = ("initContainers", "containers")


def _names(spec: JSONObject, *parts: str) -> list[str]:
    return [str(container.get("name")) for part in parts for container in spec.get(part) or []]


def injected(observed: Observed, rank: Rank) -> list[str]:
    """Return the containers of a pod that the present template does not have; none during a rollout."""
    templates = meta.spec(observed.view.object).get("leaderWorkerTemplate") or {}
    template = (templates.get("leaderTemplate") if rank.index == 0 else None) or templates.get("workerTemplate") or {}
    own = set(_names(meta.spec(template), *PARTS))
    names = _names(meta.spec(rank.object or {}), *PARTS)
    if observed.view.is_updating or not own or not own <= set(names):
        return []
    return [name for name in names if name not in own]


@cause(
    code="LWS-E111",
    title="an injected container is not ready",
    meaning="A webhook added a container to the pod, such as the proxy of a service mesh. It is not ready, and the pod waits for it. The "
    "template does not contain it.",
    remedy="Read its log, and ask whoever operates that webhook. Its injector has an annotation that leaves pods out.",
)
def injection_is_unready(observed: Observed) -> Finding | None:
    """Find an injected container that keeps a pod from starting, or from becoming ready."""
    for rank in observed.at(is_placed):
        names = injected(observed, rank)
        blocking = next((name for name in names if _blocks(rank, name, names)), None)
        if blocking is None:
            continue
        probes = ranks.messages(observed, rank, "Unhealthy")
        status = _status(rank, blocking)
        ill = bool(status.get("restartCount")) or "terminated" in (status.get("lastState") or {})
        is_init = blocking in _names(meta.spec(rank.object or {}), "initContainers")
        wait = "the program waits for it" if is_init else "the other containers are ready"
        return Finding(
            subject=ranks.subject(rank),
            sentence=f"injected container {blocking} of pod {rank.pod} is not ready, and {wait}"
            + (f": {ranks.quote(probes[0])}" if probes else ""),
            evidence=(f"{rank.pod}: {rank.state}; container {blocking} is in the pod, and not in {observed.template}",),
            steps=(
                observed.lws(f"logs {observed.view.name}/{rank.place} -c {blocking}"),
                f"find out who injects container {blocking} (a mutating webhook of pods), and what it waits for",
            ),
            verdict=Verdict.STUCK if ill else warming(observed, rank),
        )
    return None


def _status(rank: Rank, name: str) -> JSONObject:
    return next((status for status in ranks.statuses(rank) if status.get("name") == name), {})


def _blocks(rank: Rank, name: str, injected_names: list[str]) -> bool:
    """Return whether an injected container keeps the pod back: nothing else does."""
    spec, status = meta.spec(rank.object or {}), _status(rank, name)
    if name in _names(spec, "initContainers"):
        others = _names(spec, "initContainers")
        before = others[: others.index(name)]
        return (
            rank.state == "PodInitializing" or rank.state.startswith("Init:")
            if not status
            else (not (status.get("ready") or status.get("started")) and all(_is_over(rank, other) for other in before))
        )
    containers = [other for other in _names(spec, "containers") if other not in injected_names]
    return not status.get("ready") and all(_status(rank, other).get("ready") for other in containers)


def _is_over(rank: Rank, name: str) -> bool:
    status = _status(rank, name)
    return bool(status.get("ready") or status.get("started"))

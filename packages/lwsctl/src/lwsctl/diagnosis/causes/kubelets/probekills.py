"""Finds containers that the kubelet killed because a liveness or startup probe failed. Pure.

A probe can fail while a container starts, and the container can crash later for a different reason. Therefore, the
finding requires an event that the kubelet killed this run, or that it killed a previous run in the same way and the
probe fails again.
"""

import re
from collections.abc import Iterable
from datetime import timedelta
from typing import Final

from msgspec.structs import replace

from kuberuntime.objects import meta, timestamps
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.terminations import REMEMBERED
from leaderworkerset.api import kubeletkills
from leaderworkerset.api.kubeletkills import Kill
from lwsctl.diagnosis import ranks
from lwsctl.diagnosis.causes.kubelets.lateevents import likely_kills
from lwsctl.diagnosis.causes.starts import startup_verdict
from lwsctl.diagnosis.finding import Finding, cause
from lwsctl.diagnosis.observed import Observed
from lwsctl.diagnosis.ranks import is_placed
from lwsctl.model.groups import Group, Rank
from lwsctl.model.health import Verdict
from lwsctl.views.podcontainers import container_status
from lwsctl.views.wording import format_count

STARTUP: Final = "startup probe"

CLOSED_PORT: Final = re.compile(r"(?i)[\w\]]:([0-9]{1,5})(?![\w\]]|:[\w:]).*connection refused")
LISTENS: Final = re.compile(r"; (the pod listens on (?:no port|[0-9, ]+))")

ROUNDED: Final = timedelta(seconds=1)
"""The precision of timestamps in statuses and events."""

WITHOUT_OUTPUT: Final = re.compile(r"(?:failed|errored):?\s*$")


@cause(
    code="LWS-E072",
    title="a liveness or startup probe fails",
    meaning="A probe failed repeatedly, so the kubelet kills and restarts the container.",
    remedy="Find out why the container does not respond. If the container starts slowly, add a startupProbe that permits enough time.",
    verdict=Verdict.CRASHING,
)
def find_probe_kill(observed: Observed) -> Finding | None:
    """Find a container that the kubelet killed because its liveness or startup probe failed."""
    for group, rank in ranks.unready_ranks(observed):
        if kill := _find_kill(observed, group, rank):
            return _finding(observed, rank, kill)
    return _find_failing_startup_probe(observed)


def _find_failing_startup_probe(observed: Observed) -> Finding | None:
    """Find a startup probe that fails in the first run of a container, which may still be starting."""
    for rank in (rank for rank in observed.ranks_at(is_placed) if not rank.deaths):
        texts = ranks.warning_messages(observed, rank, "Unhealthy")
        if text := _probe_text(texts, STARTUP):
            return replace(_finding_of_text(observed, rank, STARTUP, text), verdict=startup_verdict(observed, rank))
    return None


def _find_kill(observed: Observed, group: Group, rank: Rank) -> Kill | None:
    """Return the kill that explains a group's recorded failure, or that affects a container in the current pod."""
    if recorded := _recorded_kill(observed, group, rank):
        return recorded
    kills = observed.warnings.kills(observed.view.namespace, rank.pod) if is_placed(rank) else []
    own = [kill for kill in kills if _is_of_current_pod(rank, kill) or _fails_again(observed, rank, kill)]
    return next((kill for kill in (*own, *likely_kills(observed, group, rank)) if kill.is_probe_failure), None)


def _recorded_kill(observed: Observed, group: Group, rank: Rank) -> Kill | None:
    run = ranks.recorded_run(rank)
    if run is None or group.recreations is None:
        return None
    kills = observed.warnings.kills(observed.view.namespace, run.pod)
    kill = kubeletkills.latest_kill(kills, group.recreations.failed_uid, run.container)
    return kill if kill and kill.is_probe_failure else None


def _is_of_current_pod(rank: Rank, kill: Kill) -> bool:
    """Return whether the kubelet killed the container's last run, or is killing the current run."""
    if kill.uid != rank.uid:
        return False
    status = container_status(rank.object or {}, kill.container)
    state = status.get("state") or {}
    ended = state.get("terminated") or (status.get("lastState") or {}).get("terminated") or {}
    return _is_within(kill, ended) or ("running" in state and _is_within(kill, state.get("running") or {}))


def _is_within(kill: Kill, run: JSONObject) -> bool:
    started, finished = (timestamps.read(str(run.get(key) or "")) for key in ("startedAt", "finishedAt"))
    is_late_enough = started is None or kill.last + ROUNDED >= started
    return bool(run) and is_late_enough and (finished is None or kill.last <= finished + ROUNDED)


def _fails_again(observed: Observed, rank: Rank, kill: Kill) -> bool:
    """Return whether a previous pod was killed recently, and the same probe fails in the current pod."""
    if kill.uid == rank.uid or observed.now - kill.last >= REMEMBERED:
        return False
    return bool(_probe_text(ranks.warning_messages(observed, rank, "Unhealthy"), kill.cause))


def _probe_text(texts: Iterable[str], probe: str) -> str:
    """Return the first phrase about a probe, such as `liveness probe`, or an empty string if there is none."""
    return next((text for text in texts if text.lower().startswith(probe)), "")


def _finding(observed: Observed, rank: Rank, kill: Kill) -> Finding:
    texts = ranks.warning_messages(observed, rank, "Unhealthy", of_any=True)
    text = _probe_text(texts, kill.cause) or kill.message
    finding = _finding_of_text(observed, rank, kill.cause, text)
    return replace(finding, evidence=(*finding.evidence, f"event Killing: {ranks.quote_message(kill.message)}"))


def _finding_of_text(observed: Observed, rank: Rank, probe: str, text: str) -> Finding:
    output = " (no output)" if WITHOUT_OUTPUT.search(text) else ""
    place = f"{observed.view.name}/{rank.place}"
    return Finding(
        subject=ranks.pod_subject(rank),
        sentence=f"the {probe} of pod {rank.pod} fails: {ranks.quote_message(LISTENS.sub('', text))}{output}{compare_port(rank, text)}",
        evidence=(f"{rank.pod}: {format_count(rank.restarts, 'restart')}, state {rank.state}",),
        steps=(
            observed.lws(f"logs {place}"),
            f"if the container needs more time, {_describe_extension(rank, probe)} in the template of {observed.view.name}",
        ),
    )


def _describe_extension(rank: Rank, probe: str) -> str:
    """Return the change that gives a container more time until it is killed."""
    containers = meta.spec(rank.object or {}).get("containers") or []
    if probe == STARTUP:
        return "increase failureThreshold of its startupProbe"
    if any("startupProbe" in container for container in containers):
        return "increase failureThreshold of its livenessProbe"
    return "add a startupProbe"


def compare_port(rank: Rank, message: str) -> str:
    """Compare the probed port with the ports that the containers declare and on which the pod listens."""
    closed_port, listens = CLOSED_PORT.search(message[: ranks.QUOTED]), LISTENS.search(message[: ranks.QUOTED])
    if closed_port is None:
        return ""
    containers = meta.spec(rank.object or {}).get("containers") or []
    ports = sorted({str(port["containerPort"]) for container in containers for port in container.get("ports") or []})
    others = f", its containers declare {', '.join(ports)}" if ports and closed_port[1] not in ports else ""
    return f": nothing listens on port {closed_port[1]}{others}{f'; {listens[1]}' if listens else ''}"

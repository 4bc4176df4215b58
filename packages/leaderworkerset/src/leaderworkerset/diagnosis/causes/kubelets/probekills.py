"""Containers that the kubelet killed because a liveness or startup probe failed. Pure.

A probe can fail while a program loads, and the program can crash later for another reason. So only the kubelet's own event
counts: that it killed this run of the container, or a former run in the same way while the probe fails again.
"""

import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from kuberuntime.objects import meta, timestamps
from kuberuntime.objects.deaths import REMEMBERED
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.diagnosis import exits, ranks
from leaderworkerset.diagnosis.causes.starts import warming
from leaderworkerset.diagnosis.finding import Finding, cause
from leaderworkerset.diagnosis.observed import Observed
from leaderworkerset.diagnosis.ranks import is_placed
from leaderworkerset.views.events.eventrecord import WarningEvent
from leaderworkerset.views.groups import Rank
from leaderworkerset.views.health.verdict import Verdict
from leaderworkerset.views.wording import counted

KILLED: Final = re.compile(r"Container (?P<container>\S{1,253}) failed (?P<kind>liveness|startup) probe")
"""The kubelet's message when it kills a container; its event has the reason Killing."""

REFUSED: Final = re.compile(r"(?i)[\w\]]:([0-9]{1,5})(?![\w\]]|:[\w:]).*connection refused")
LISTENS: Final = re.compile(r"; (the pod listens on (?:no port|[0-9, ]+))")

ROUNDED: Final = timedelta(seconds=1)
"""The precision of times in statuses and events."""

WITHOUT_OUTPUT: Final = re.compile(r"(?:failed|errored):?\s*$")


class Kill(Struct, frozen=True):
    """A container that the kubelet killed: the name of the container, the kind of the probe, and the event."""

    container: str
    kind: str
    event: WarningEvent


@cause(
    code="LWS-E072",
    title="a liveness or startup probe fails",
    meaning="A probe fails so often that the container is killed and restarted.",
    remedy="Find out why the program does not answer; give slow starts a startupProbe with enough time.",
    verdict=Verdict.CRASHING,
)
def killed_by_probe(observed: Observed) -> Finding | None:
    """Find a container that the kubelet killed because its liveness or startup probe failed."""
    recorded = {
        rank.pod: run
        for group in observed.view.groups
        for rank in group.ranks
        for run in rank.deaths
        if run.is_recorded
    }
    for rank in (rank for group in observed.view.groups for rank in group.ranks):
        if not is_placed(rank) and rank.pod not in recorded:
            continue
        if observed.rank not in (None, rank.index) or (rank.is_ready and not rank.deaths):
            continue
        code = recorded[rank.pod].end.get("exitCode") if rank.pod in recorded else None
        for kill in _kills(observed, rank):
            if _is_of_present_pod(rank, kill) or _fails_again(
                observed, rank, kill, was_stopped=code in exits.BY_OTHERS
            ):
                return _finding(observed, rank, kill)
    return _unstarted(observed)


def _unstarted(observed: Observed) -> Finding | None:
    """Find a startup probe that fails for the first run of a container, which may still be starting."""
    for rank in (rank for rank in observed.at(is_placed) if not rank.deaths):
        texts = ranks.messages(observed, rank, "Unhealthy")
        text = next((text for text in texts if text.lower().startswith("startup probe")), "")
        if text:
            return replace(_finding_of_text(observed, rank, "startup", text), verdict=warming(observed, rank))
    return None


def _kills(observed: Observed, rank: Rank) -> Iterator[Kill]:
    """Yield the containers of pods of this name that the kubelet killed because of a probe, the newest first."""
    events = observed.warnings.of_any_type(observed.view.namespace, "Pod", rank.pod)
    for event in sorted(events, key=lambda event: event.last, reverse=True):
        if event.reason == "Killing" and (match := KILLED.match(event.message)):
            yield Kill(match["container"], match["kind"], event)


def _is_of_present_pod(rank: Rank, kill: Kill) -> bool:
    """Return whether the kubelet killed the last ended run of the container, or is killing the present one."""
    if kill.event.uid != rank.uid:
        return False
    status = next((status for status in ranks.statuses(rank) if status.get("name") == kill.container), {})
    state = status.get("state") or {}
    ended = state.get("terminated") or (status.get("lastState") or {}).get("terminated") or {}
    return _is_within(kill, ended) or ("running" in state and _is_within(kill, state.get("running") or {}))


def _is_within(kill: Kill, run: JSONObject) -> bool:
    started, finished = (timestamps.read(str(run.get(key) or "")) for key in ("startedAt", "finishedAt"))
    is_late_enough = started is None or kill.event.last + ROUNDED >= started
    return bool(run) and is_late_enough and (finished is None or kill.event.last <= finished + ROUNDED)


def _fails_again(observed: Observed, rank: Rank, kill: Kill, *, was_stopped: bool) -> bool:
    """Return whether a former pod was killed recently, for which its group was recreated, or the probe fails again."""
    if kill.event.uid == rank.uid or observed.now - kill.event.last >= REMEMBERED:
        return False
    own = ranks.messages(observed, rank, "Unhealthy")
    return was_stopped or any(text.lower().startswith(f"{kill.kind} probe") for text in own)


def _finding(observed: Observed, rank: Rank, kill: Kill) -> Finding:
    texts = ranks.messages(observed, rank, "Unhealthy", of_any=True)
    text = next((text for text in texts if text.lower().startswith(f"{kill.kind} probe")), kill.event.message)
    finding = _finding_of_text(observed, rank, kill.kind, text)
    return replace(finding, evidence=(*finding.evidence, f"event Killing: {ranks.quote(kill.event.message)}"))


def _finding_of_text(observed: Observed, rank: Rank, kind: str, text: str) -> Finding:
    output = " (no output)" if WITHOUT_OUTPUT.search(text) else ""
    place = f"{observed.view.name}/{rank.place}"
    return Finding(
        subject=ranks.subject(rank),
        sentence=f"the {kind} probe of pod {rank.pod} fails: {ranks.quote(LISTENS.sub('', text))}{output}{refused_port(rank, text)}",
        evidence=(f"{rank.pod}: {counted(rank.restarts, 'restart')}, state {rank.state}",),
        steps=(
            observed.lws(f"logs {place}"),
            f"if it needs more time, give the template of {observed.view.name} a startupProbe that waits longer",
        ),
    )


def refused_port(rank: Rank, message: str) -> str:
    """Compare the refused port of a probe with the ports that containers declare, and that the pod listens on."""
    refused, listens = REFUSED.search(message[: ranks.QUOTED]), LISTENS.search(message[: ranks.QUOTED])
    if refused is None:
        return ""
    containers = meta.spec(rank.object or {}).get("containers") or []
    ports = sorted({str(port["containerPort"]) for container in containers for port in container.get("ports") or []})
    others = f", its containers declare {', '.join(ports)}" if ports and refused[1] not in ports else ""
    return f": nothing listens on port {refused[1]}{others}{f'; {listens[1]}' if listens else ''}"

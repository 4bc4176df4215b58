"""Finds running ranks whose first probe is not due. Pure."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct

from kuberuntime.objects import decimals, timestamps
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api.policytypes import AWAITS_LEADER
from lwsctl.diagnosis import exits, ranks
from lwsctl.diagnosis.finding import Finding, cause
from lwsctl.diagnosis.observed import Observed
from lwsctl.model.groups import Rank
from lwsctl.model.health import Verdict

MINUTE: Final = 60


class FirstProbe(Struct, frozen=True):
    """The first probe of a running container, with its type, due time, and delay in seconds."""

    container: str
    kind: str
    due: datetime
    delay: int


@cause(
    code="LWS-E101",
    title="a container waits for its first probe",
    meaning="A container is running, but its first startup or readiness probe has not run, because initialDelaySeconds has not elapsed.",
    remedy="Wait, or reduce initialDelaySeconds. To make the container ready sooner, use a startupProbe with a short period instead.",
    verdict=Verdict.STARTING,
)
def find_pending_probe(observed: Observed) -> Finding | None:
    """Find a rank whose first probe is not due, if all other unready ranks wait for probes or leaders."""
    waiting = [
        (rank, next(_pending_probes(observed, rank), None))
        for _, rank in observed.unready_ranks
        if rank.why != AWAITS_LEADER
    ]
    pending_probes = [(rank, probe) for rank, probe in waiting if probe is not None]
    if not pending_probes or len(pending_probes) < len(waiting):
        return None
    rank, probe = max(pending_probes, key=lambda pair: pair[1].due)
    left = format_exact_duration(probe.due - observed.now)
    others = ranks.others_suffix(len(pending_probes))
    return Finding(
        subject=ranks.pod_subject(rank),
        sentence=f"pod {rank.pod} is running{others}; the first {probe.kind} probe is due in {left}",
        evidence=(f"{rank.pod}, container {probe.container}: {probe.kind}Probe.initialDelaySeconds is {probe.delay}",),
        steps=(
            f"wait {left}, or set a smaller {probe.kind}Probe.initialDelaySeconds in {observed.template}",
            observed.lws(f"logs {observed.view.name}/{rank.place}"),
        ),
    )


def _pending_probes(observed: Observed, rank: Rank) -> Iterator[FirstProbe]:
    """Yield the pending probes of containers that are running but not ready."""
    declared = {str(container.get("name")): container for container in exits.declared_containers(observed, rank)}
    for status in ranks.container_statuses(rank):
        started = timestamps.read(str(((status.get("state") or {}).get("running") or {}).get("startedAt") or ""))
        container = declared.get(str(status.get("name")), {})
        kind = "startup" if container.get("startupProbe") and not status.get("started") else "readiness"
        probe: JSONObject = container.get(f"{kind}Probe") or {}
        delay = decimals.natural(str(probe.get("initialDelaySeconds") or 0)) or 0
        if started is None or status.get("ready") or not delay:
            continue
        due = started + timedelta(seconds=delay)
        if due > observed.now:
            yield FirstProbe(str(status.get("name")), kind, due, delay)


def format_exact_duration(length: timedelta) -> str:
    """Format a duration as minutes and seconds.

    >>> format_exact_duration(timedelta(seconds=890)), format_exact_duration(timedelta(seconds=40))
    ('14m50s', '40s')
    """
    minutes, seconds = divmod(int(length.total_seconds()), MINUTE)
    return f"{minutes}m{seconds:02}s" if minutes else f"{seconds}s"

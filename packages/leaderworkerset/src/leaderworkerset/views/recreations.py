"""The number of recreations of a group, the failed pod, and the time of the next, from its record (docs/adr/0003).

Pure.
"""

import re
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

from kuberuntime.objects import decimals, meta, podstate
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api import groupname, labels, recreationrecord, restartnotes
from leaderworkerset.api.recreationrecord import RecreationState
from leaderworkerset.views.deaths import Death
from leaderworkerset.views.groups import Group, Recreations, View
from leaderworkerset.views.masking import masked
from leaderworkerset.views.wording import counted, duration

REMEMBERED: Final = timedelta(minutes=10)
"""The time for which a recreation is still relevant.

A group that failed twice in a row is unready for the same reason.
"""

RECORDED: Final = re.compile(
    r"(?P<container>\S+): exit code (?P<code>[0-9]{1,10})(?:, (?P<reason>\w+)(?=[:,]|$))?(?:: |, last line: )?(?P<line>.*)"
)
"""The description of an ended container in a record of recreations (`core.restarts.failure`)."""


def read(record: JSONObject, leader: JSONObject | None) -> Recreations | None:
    """Read the record of a group that `leader` leads; None if it is unreadable, or of another revision."""
    found = recreationrecord.read(record)
    revision = groupname.revision(leader) if leader else ""
    if found is None or (revision and revision != found.revision):
        return None
    condemned = leader is not None and meta.uid(leader) == found.leader
    stays = condemned and leader is not None and (groupname.is_exhausted(leader) or not meta.is_deleting(leader))
    if found.state is not RecreationState.RECREATED and not stays:
        return None  # the leader was replaced otherwise: that recreation did not take place
    return Recreations(
        count=found.count,
        failed_pod=found.failure.pod,
        due=found.due,
        is_waiting=stays and found.state is not RecreationState.EXHAUSTED,
        is_exhausted=stays and found.state is RecreationState.EXHAUSTED,
        failure=masked(found.failure.what),
    )


def failed_run(view: View, told: Recreations, now: datetime) -> Death | None:
    """Return the run that caused a group's recreation, if the group failed again after its last recreation.

    It remains the reason while the group starts again, until the group is ready or `REMEMBERED` has passed.
    """
    return None if told.count < 2 or now - told.due >= REMEMBERED else recorded_run(view, told)


def recorded_run(view: View, told: Recreations) -> Death | None:
    """Return the run that caused a group's recreation, from its record; None if the record describes none."""
    found = RECORDED.fullmatch(told.failure)
    if found is None or found["reason"] == podstate.ALL_RESTARTED:
        return None
    template = meta.spec(view.object).get("leaderWorkerTemplate") or {}
    is_leader = told.failed_pod.count("-") == view.name.count("-") + 1
    pod = (template.get("leaderTemplate") if is_leader else None) or template.get("workerTemplate") or {}
    inits = {init_container.get("name") for init_container in meta.spec(pod).get("initContainers") or []}
    end = {"exitCode": decimals.natural(found["code"]), "reason": found["reason"] or "", "message": found["line"]}
    return Death(told.failed_pod, found["container"], end, found["container"] in inits, is_recorded=True)


def is_over(group: Group, now: datetime) -> bool:
    """Return whether the recreation of a group is old: the group is ready, and was recreated long ago."""
    return group.recreations is None or (group.is_ready and now - group.recreations.due >= REMEMBERED)


def by_group(records: Iterable[JSONObject]) -> dict[tuple[str, str, str], JSONObject]:
    """Return records by namespace, name of the LeaderWorkerSet and group index (as in its label)."""
    return {
        (
            meta.namespace(record),
            meta.labels(record).get(labels.NAME, ""),
            groupname.label(record),
        ): record
        for record in records
    }


def sentence(told: Recreations, now: datetime) -> str:
    """Return a sentence with the number of recreations of a group, the reason, and the time of the next.

    >>> from datetime import UTC, timedelta
    >>> now = datetime(2026, 1, 1, tzinfo=UTC)
    >>> sentence(Recreations(count=1, failed_pod="web-0-1", due=now - timedelta(minutes=3)), now)
    'recreated 1 time, last 3m ago because pod web-0-1 failed'
    >>> sentence(Recreations(count=3, failed_pod="web-0-1", due=now + timedelta(seconds=18), is_waiting=True), now)
    'recreated 2 times; pod web-0-1 failed again, next attempt in 18s'
    >>> sentence(Recreations(count=3, failed_pod="web-0", due=now, is_exhausted=True, failure="app: exit code 1"), now)
    'recreated 2 times; pod web-0 failed again (app: exit code 1): no restart is left, the pods are kept for diagnosis'
    """
    done = f"recreated {counted(told.done, 'time')}"
    failed = f"pod {told.failed_pod} failed"
    shown = f" ({told.failure})" if told.failure else ""
    if told.is_exhausted:
        return f"{done}; {failed} again{shown}: no restart is left, the pods are kept for diagnosis"
    if not told.is_waiting:
        return f"{done}, last {duration(now - told.due)} ago because {failed}{shown}"
    wait = f"in {duration(told.due - now)}" if told.due > now else "now"
    return f"{done}; {failed} again{shown}, next attempt {wait}"


def in_place(group: Group, now: datetime) -> str:
    """Return which pod of a group restarted all its containers in place, and how often; empty if none did.

    Of several groups, an unready group comes first, then the group with most restarts.
    """
    notes = [(rank.pod, restartnotes.read(rank.object or {})) for rank in group.ranks]
    found = [(pod, note) for pod, note in notes if note.restarts]
    if not found:
        return ""
    pod, note = min(found, key=lambda one: (one[1].since is None, -one[1].restarts))
    since = f", not ready for {duration(now - note.since)}" if note.since is not None else ""
    others = f"; so did {counted(len(found) - 1, 'more pod')}" if len(found) > 1 else ""
    return f"pod {pod} restarted all its containers in place {counted(note.restarts, 'time')}{since}{others}"

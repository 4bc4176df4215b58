"""Reads the recreations, the failed pod, and the next attempt of a group from its record (docs/adr/0003).

Pure.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from kuberuntime.objects import decimals, meta, ordinals, podstate
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.terminations import REMEMBERED, ContainerFailure
from kuberuntime.texts.masking import mask_message
from leaderworkerset.api import groupname, labels, recreationrecord, restartannotation
from leaderworkerset.api.recreationrecord import RECORDED, Origin, RecreationState
from lwsctl.model.failurehistory import Recreations
from lwsctl.model.groups import Group
from lwsctl.model.leaderworkerset import View
from lwsctl.views.podcontainers import pod_template
from lwsctl.views.wording import duration, format_count


def read(record: JSONObject, leader: JSONObject | None) -> Recreations | None:
    """Read the recreation record of a leader's group. Return None if it is invalid or for a different revision."""
    recreation = recreationrecord.read(record)
    revision = groupname.revision(leader) if leader else ""
    if recreation is None or (revision and revision != recreation.revision):
        return None
    is_condemned = leader is not None and meta.uid(leader) == recreation.leader
    stays = is_condemned and leader is not None and (groupname.is_exhausted(leader) or not meta.is_deleting(leader))
    if recreation.state is not RecreationState.RECREATED and not stays:
        return None  # the leader was replaced for a different reason, so the recreation did not occur
    seconds = recreation.failure.longest_run
    is_program = recreation.failure.origin is Origin.PROGRAM
    if not recreation.count and not stays:
        return None  # only pods deleted by other clients
    return Recreations(
        count=recreation.count + (stays and not is_program),  # deletions do not count as consecutive failures
        failed_pod=recreation.failure.pod,
        failed_uid=recreation.failure.uid,
        failed_rank=_rank_of(recreation.failure.pod, record),
        due=recreation.due,
        is_waiting=stays and recreation.state is not RecreationState.EXHAUSTED,
        is_exhausted=stays and recreation.state is RecreationState.EXHAUSTED,
        failure=mask_message(recreation.failure.what),
        longest_run=None if seconds is None else timedelta(seconds=seconds),
    )


def _rank_of(pod: str, record: JSONObject) -> int | None:
    """Return the rank of a pod in the group of the record, or None if its name has no number."""
    split = ordinals.split(pod)
    return 0 if pod == recreationrecord.leader_of(record) else None if split is None else split.number


def failed_run(view: View, recreation: Recreations, now: datetime) -> ContainerFailure | None:
    """Return the run that caused the recreation of a group if the group failed again after it was recreated.

    It remains the reason while the group restarts, until the group is ready or `REMEMBERED` has passed.
    """
    return None if recreation.count < 2 or now - recreation.due >= REMEMBERED else recorded_run(view, recreation)


def recorded_run(view: View, recreation: Recreations) -> ContainerFailure | None:
    """Return the run that caused the recreation of a group, or None if the record does not contain a run."""
    match = RECORDED.fullmatch(recreation.failure)
    if match is None or match["reason"] == podstate.ALL_RESTARTED:
        return None
    is_leader = recreation.failed_pod.count("-") == view.name.count("-") + 1
    pod = pod_template(view.object, is_leader=is_leader)
    inits = {container.get("name") for container in meta.spec(pod).get("initContainers") or []}
    is_init = match["container"] in inits - podstate.sidecars(pod)
    end = {"exitCode": decimals.natural(match["code"]), "reason": match["reason"] or "", "message": match["line"]}
    return ContainerFailure(recreation.failed_pod, match["container"], end, is_init, is_recorded=True)


def is_over(group: Group, now: datetime) -> bool:
    """Return whether a group is ready and was not recreated recently."""
    return group.recreations is None or (group.is_ready and now - group.recreations.due >= REMEMBERED)


def note(group: Group, now: datetime) -> str:
    """Return the recreations of a group in a sentence, or an empty string if they are over."""
    return "" if group.recreations is None or is_over(group, now) else sentence(group.recreations, now)


def by_leader(records: Iterable[JSONObject]) -> dict[tuple[str, str], JSONObject]:
    """Return records by the namespace and name of the leader pod."""
    return {(meta.namespace(record), recreationrecord.leader_of(record)): record for record in records}


def of_leader(records: Mapping[tuple[str, str], JSONObject], view: View, group: Group) -> JSONObject | None:
    """Return the record of a group, or of the group that its leader replaces. A new leader has a new random key."""
    leader = group.leader.object if group.leader else None
    replaced = meta.annotations(leader or {}).get(labels.REPLACES, "")
    names = (meta.name(leader) if leader else f"{view.name}-{group.name}", replaced)
    candidates = (records.get((view.namespace, name)) for name in names)
    return next((record for record in candidates if record is not None), None)


def sentence(recreation: Recreations, now: datetime) -> str:
    """Describe the recreations of a group, with their number, the reason, and the time of the next attempt.

    >>> from datetime import UTC, timedelta
    >>> now = datetime(2026, 1, 1, tzinfo=UTC)
    >>> sentence(Recreations(count=1, failed_pod="web-0-1", due=now - timedelta(minutes=3)), now)
    'recreated 1 time, last 3m ago because pod web-0-1 failed'
    >>> sentence(Recreations(count=3, failed_pod="web-0-1", due=now + timedelta(seconds=18), is_waiting=True), now)
    'recreated 2 times; pod web-0-1 failed again, next attempt in 18s'
    >>> sentence(Recreations(count=3, failed_pod="web-0", due=now, is_exhausted=True, failure="app: exit code 1"), now)
    'recreated 2 times; pod web-0 failed again (app: exit code 1), and no restarts remain; the pods are kept for diagnosis'
    """
    attempts = f"recreated {format_count(recreation.done, 'time')}"
    cause = f"pod {recreation.failed_pod} failed"
    reason = f" ({recreation.reason})" if recreation.reason else ""
    if recreation.is_exhausted:
        return f"{attempts}; {cause} again{reason}, and no restarts remain; the pods are kept for diagnosis"
    if not recreation.is_waiting:
        return f"{attempts}, last {duration(now - recreation.due)} ago because {cause}{reason}"
    wait = f"in {duration(recreation.due - now)}" if recreation.due > now else "now"
    return f"{attempts}; {cause} again{reason}, next attempt {wait}"


def in_place(group: Group, now: datetime) -> str:
    """Describe the pod that restarted all containers in place and the number of restarts.

    Return an empty string if there is none.

    If there are several groups, an unready group is chosen first, then the group with the most restarts.
    """
    notes = [(rank.pod, restartannotation.read(rank.object or {})) for rank in group.ranks]
    restarted_pods = [(pod, note) for pod, note in notes if note.restarts]
    if not restarted_pods:
        return ""
    pod, note = min(restarted_pods, key=lambda pair: (pair[1].since is None, -pair[1].restarts))
    since = f", not ready for {duration(now - note.since)}" if note.since is not None else ""
    others = f" (and {format_count(len(restarted_pods) - 1, 'more pod')})" if len(restarted_pods) > 1 else ""
    return f"pod {pod} restarted all its containers in place {format_count(note.restarts, 'time')}{since}{others}"

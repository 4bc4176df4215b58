"""Reads the recreations, the failed pod, and the next attempt of a group from its record (docs/adr/0003).

Pure.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from kuberuntime.objects import decimals, meta, ordinals, podstate
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.terminations import REMEMBERED, ContainerFailure
from kuberuntime.texts.masking import mask_message
from leaderworkerset.api import groupname, labels, recreationrecord
from leaderworkerset.api.recreationrecord import RECORDED, Origin, RecreationState
from lwsctl.model.failurehistory import Recreations
from lwsctl.model.groups import Group
from lwsctl.model.leaderworkerset import View


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


def read(record: JSONObject, leader: JSONObject | None) -> Recreations | None:
    """Read the recreation record of a leader's group. Return None if it is invalid or for a different revision."""
    recreation = recreationrecord.read(record)
    revision = groupname.revision_key(leader) if leader else ""
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
        due=recreation.due_at,
        is_waiting=stays and recreation.state is not RecreationState.EXHAUSTED,
        is_exhausted=stays and recreation.state is RecreationState.EXHAUSTED,
        failure=mask_message(recreation.failure.description),
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
    pod = view.pod_template(is_leader=is_leader)
    inits = {container.get("name") for container in meta.spec(pod).get("initContainers") or []}
    is_init = match["container"] in inits - podstate.sidecars(pod)
    end = {"exitCode": decimals.natural(match["code"]), "reason": match["reason"] or "", "message": match["line"]}
    return ContainerFailure(recreation.failed_pod, match["container"], end, is_init, is_recorded=True)

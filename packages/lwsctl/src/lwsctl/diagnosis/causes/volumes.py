"""Finds pods that wait for a volume because of a claim or a mount. Pure."""

import re
from datetime import timedelta
from typing import Final

from msgspec.structs import replace

from kuberuntime.objects import meta, podclaims
from kuberuntime.objects.resources import PERSISTENT_VOLUME_CLAIMS, STORAGE_CLASSES
from lwsctl.diagnosis import ranks
from lwsctl.diagnosis.finding import Cause, Finding, cause
from lwsctl.diagnosis.observed import Observed
from lwsctl.diagnosis.patterns import READ, StageMessage
from lwsctl.diagnosis.ranks import is_placed, is_unscheduled
from lwsctl.model.diagnosis import Person
from lwsctl.model.groups import Rank
from lwsctl.model.health import Verdict

BINDING: Final = re.compile(
    r"unbound immediate PersistentVolumeClaims|didn't find available persistent volumes|persistent volumes? to bind"
)


HOLDERS_NAMED: Final = 4
PATIENCE: Final = timedelta(minutes=2)
"""The maximum normal time for creating a volume, or for a temporary mount failure."""


PROVISIONING: Final = (
    (
        r"(?i)ResourceExhausted|quota|limit exceeded|LimitExceeded",
        "increase the cloud quota, delete unused volumes, or request less storage",
    ),
    (
        r"(?i)access ?mode|MULTI_NODE",
        "use a different StorageClass or different accessModes, because the StorageClass does not support the access mode",
    ),
    (
        r"(?i)PermissionDenied|Unauthorized|AccessDenied|403",
        "grant the storage driver the cloud role in its documentation, because a permission is missing",
    ),
    (
        r"(?i)InvalidArgument|invalid|unsupported",
        "correct the claim or its StorageClass, because the storage driver rejects the size or a parameter",
    ),
)
"""The next steps for the message of a storage driver about a volume that it cannot create."""


@cause(
    code="LWS-E044",
    title="a volume claim is not bound",
    meaning="A pod uses a PersistentVolumeClaim that is not bound to a volume.",
    remedy="Create the StorageClass or the volume, or correct storageClassName and the size of the claim. If a cloud quota is exceeded, increase the quota.",
)
def find_pending_claim(observed: Observed) -> Finding | None:
    """Find a claim that is not bound to a volume, and report the reason."""
    waiting = [rank for rank in observed.ranks_at(is_unscheduled) if BINDING.search(rank.why[: ranks.QUOTED])]
    if not waiting:
        return None
    rank = waiting[0]
    name = next(
        (claim for claim in claim_names(rank) if _is_pending(observed, claim)), next(iter(claim_names(rank)), "unknown")
    )
    why, age = _pending_reason(observed, name), observed.time_since(rank.created)
    step = next((step for pattern, step in PROVISIONING if re.search(pattern, why)), "")
    may_come = not (why.endswith("does not exist") or step) and age is not None and age < PATIENCE
    return Finding(
        subject=ranks.pod_subject(rank),
        verdict=Verdict.PROGRESSING if may_come else None,
        sentence=f"claim {name} of pod {rank.pod} is not bound{ranks.others_suffix(len(waiting))}{f': {why}' if why else ''}",
        evidence=(f"{rank.pod}: {ranks.quote_message(rank.why)}",),
        steps=(
            step or f"create the StorageClass or a volume for claim {name}, or correct its class and size",
            observed.kubectl(f"describe pvc {name}"),
            f"{observed.plain_kubectl} get storageclasses,pv",
        ),
    )


def claim_names(rank: Rank) -> list[str]:
    """Return the PersistentVolumeClaims of a rank's pod."""
    return list(podclaims.claims_by_volume(rank.object or {}).values())


def _is_pending(observed: Observed, name: str) -> bool:
    claim = observed.by_name(PERSISTENT_VOLUME_CLAIMS, name)
    return claim is not None and meta.status(claim).get("phase") != "Bound"


def _pending_reason(observed: Observed, name: str) -> str:
    """Return the reason why a claim is not bound, which is a missing StorageClass or an event message."""
    claim = observed.by_name(PERSISTENT_VOLUME_CLAIMS, name)
    storage_class = str(meta.spec(claim or {}).get("storageClassName") or "")
    if (
        storage_class
        and observed.was_read(STORAGE_CLASSES)
        and observed.by_name(STORAGE_CLASSES, storage_class) is None
    ):
        return f"StorageClass {storage_class} does not exist"
    warnings = observed.warnings.about(observed.view.namespace, "PersistentVolumeClaim", name)
    if warnings:
        return ranks.quote_message(max(warnings, key=lambda warning: warning.last).message)
    if claim is not None and not storage_class:
        return "it specifies no StorageClass, and no volume matches it"
    return f"StorageClass {storage_class} has not created a volume" if storage_class else ""


VOLUME_ELSEWHERE: Final = Cause(
    code="LWS-E045",
    title="the volume of a pod is available only on another node",
    meaning="The volume of a claim is available only on nodes on which the pod cannot run.",
    person=Person.ADMINISTRATOR,
    remedy="Free resources on the nodes with the volume. If you do not need the data, you can delete the claim instead.",
    find=StageMessage(
        is_unscheduled,
        r"volume node affinity conflict|(?:max|exceed\w*) (?:node )?volume (?:count|limit)",
        "the volumes of pod {pod} are bound to nodes that do not accept it{others}",
        (
            "{anywhere} nodes",
            "free resources on the nodes with the volume, or delete the claim if its data can be lost",
            "{kubectl} get pvc,pv -o wide",
        ),
    ),
)
NO_CLAIM: Final = Cause(
    code="LWS-E046",
    title="a volume claim does not exist",
    meaning="The PersistentVolumeClaim in the pod template does not exist in the namespace, or is being deleted.",
    remedy="Create the claim, or correct claimName.",
    find=StageMessage(
        is_unscheduled,
        r"persistentvolumeclaim \"(?P<claim>[^\"]+)\" (?P<state>not found|is being deleted|bound to non-existent)",
        "claim {claim} of pod {pod} {state}{others}",
        ("create claim {claim}, or correct claimName in {template}",),
    ),
)
MOUNTS: Final = (
    (
        r"(?i)attachment limit|maximum number of (?:disks|volumes)|maximum count|attach(?:ed|ment)? .{0,40}exceed",
        "use fewer volumes per pod, or use other nodes, because node {node} has reached its volume limit",
    ),
    (
        r"driver name (?P<driver>\S+) not found in the list of registered CSI drivers",
        "check the DaemonSet of the storage driver, which does not run on node {node}",
    ),
    (r"(?i)access denied by server|permission denied", "allow access from node {node} on the volume server"),
    (
        r"(?i)connection (?:refused|timed out)|no route to host",
        "check that node {node} can reach the volume server",
    ),
)
"""The next steps for the message of a failed attach or mount operation."""

PASSING: Final = re.compile(
    r"failed to sync (?:configmap|secret) cache: timed out|no relationship found between node '[^']+' and this object"
)
"""Temporary failures of a kubelet that is busy or not authorized yet. The kubelet retries immediately."""

CANNOT_MOUNT: Final = StageMessage(
    is_placed,
    r"(?:MountVolume\.|AttachVolume\.|Unable to attach or mount|Multi-Attach|\bvolumes)(?s:.*?)"
    r"(?P<absent>: (?:(?:secret|configmap) \S+ not found|hostPath.*))?$|(?:secret|configmap|references non-existent \w+).{0,80}not found$",
    "a volume of pod {pod} cannot be mounted{others}{absent}",
    ("{lws} describe {place}",),
)


@cause(
    code="LWS-E064",
    title="a volume cannot be mounted",
    meaning="The kubelet cannot attach or mount a volume, because a Secret or ConfigMap is missing or the storage driver fails.",
    remedy="Create the missing Secret or ConfigMap, or check the storage driver.",
)
def find_failed_mount(observed: Observed) -> Finding | None:
    """Find a volume that cannot be mounted. If its Secret or ConfigMap is missing, the next step creates it."""
    finding = CANNOT_MOUNT(observed)
    absent = re.search(r"((?:secret|configmap) \S+) not found$", finding.sentence) if finding else None
    if not finding:
        return None
    rank = ranks.find_rank(observed, finding.subject)
    age = observed.time_since(rank.created)
    if PASSING.search(rank.why[:READ]) and age is not None and age < PATIENCE:
        return None
    if not absent:
        steps = [step.format(node=rank.node) for pattern, step in MOUNTS if re.search(pattern, rank.why)]
        return replace(finding, steps=(*steps[:1], *finding.steps))
    step = f"create {absent[1]} in namespace {observed.view.namespace}, or correct the volume in {observed.template}"
    return replace(finding, steps=(step,))


ATTACHED: Final = re.compile(
    r"Multi-Attach error for volume \"(?P<volume>[^\"]+)\"(?:.*used by pod\(s\) (?P<pods>.+))?"
)


@cause(
    code="LWS-E116",
    title="a volume is attached to another node",
    meaning="A ReadWriteOnce volume can be attached to only one node at a time. A pod on another node uses the volume, or the node of a previous pod has not released it.",
    person=Person.AUTHOR,
    remedy="Use a claim with the access mode ReadWriteMany or ReadOnlyMany. Alternatively, create one claim per rank with volumeClaimTemplates.",
)
def find_attached_volume(observed: Observed) -> Finding | None:
    """Find a volume that is attached to a different node, its claim, and the pods on that node that use it."""
    waiting = [
        (rank, match) for rank in observed.ranks_at(is_placed) if (match := ATTACHED.search(rank.why[: ranks.QUOTED]))
    ]
    if not waiting:
        return None
    rank, match = waiting[0]
    claim = _find_claim(observed, rank, match["volume"])
    modes = ", ".join(
        meta.spec(observed.by_name(PERSISTENT_VOLUME_CLAIMS, claim) or {}).get("accessModes") or ["ReadWriteOnce"]
    )
    holders = _other_users(observed, claim, rank)
    used = ", ".join(f"{other.pod} on node {other.node}" for other in holders[:HOLDERS_NAMED])
    by = (
        f"; {used} {'uses' if len(holders) == 1 else 'use'} it"
        if used
        else f"; {match['pods']} uses it"
        if match["pods"]
        else ""
    )
    share = f"use a ReadWriteMany or ReadOnlyMany claim, or replace claim {claim} with volumeClaimTemplates"
    release = f"wait until the previous node releases the volume; to show attachments: {observed.plain_kubectl} get volumeattachments"
    return Finding(
        subject=ranks.pod_subject(rank),
        sentence=f"claim {claim} of pod {rank.pod} is {modes}, and its volume is attached to another node{ranks.others_suffix(len(waiting))}{by}",
        evidence=(f"{rank.pod}: {ranks.quote_message(rank.why)}",),
        steps=(share if holders or match["pods"] else release, observed.kubectl(f"describe pvc {claim}")),
    )


def _find_claim(observed: Observed, rank: Rank, volume: str) -> str:
    """Return the claim of the pod that uses this volume, or the first claim if no claim uses it."""
    names = claim_names(rank)
    bound = (
        name
        for name in names
        if meta.spec(observed.by_name(PERSISTENT_VOLUME_CLAIMS, name) or {}).get("volumeName") == volume
    )
    return next(bound, next(iter(names), volume))


def _other_users(observed: Observed, claim: str, rank: Rank) -> list[Rank]:
    """Return the other ranks that use a claim on other nodes."""
    members = (other for group in observed.view.groups for other in group.ranks)
    return [other for other in members if other.node and other.node != rank.node and claim in claim_names(other)]

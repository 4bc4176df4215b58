"""Finds pods that wait for a ResourceClaim. Pure."""

import re
from typing import Final

from kuberuntime.objects import meta
from lwsctl.diagnosis import ranks
from lwsctl.diagnosis.finding import Finding, cause
from lwsctl.diagnosis.observed import Observed
from lwsctl.diagnosis.ranks import is_unscheduled
from lwsctl.model.groups import Rank

WAITS: Final = re.compile(r"resource ?claim|cannot allocate all claims", re.IGNORECASE)
MISSING: Final = re.compile(
    r"(?P<kind>resourceclaimtemplate|resourceclaim|deviceclass)[\w.]* \"(?P<name>[^\"]+)\" not found"
)
KINDS: Final = {
    "resourceclaimtemplate": "ResourceClaimTemplate",
    "resourceclaim": "ResourceClaim",
    "deviceclass": "DeviceClass",
}


@cause(
    code="LWS-E105",
    title="no device is allocated to a resource claim",
    meaning="An object that a pod references in resourceClaims does not exist, or no node has a free device.",
    remedy="Create the missing object, or delete other pods that use devices of the same class.",
)
def find_unmet_device_claim(observed: Observed) -> Finding | None:
    """Find a pod that waits for its ResourceClaims. The finding contains the missing object."""
    waiting = [
        rank
        for rank in observed.ranks_at(is_unscheduled)
        if claim_names(rank) and WAITS.search(_message(observed, rank))
    ]
    if not waiting:
        return None
    rank = waiting[0]
    message, place = _message(observed, rank), observed.view.namespace
    missing = MISSING.search(message)
    if missing:
        kind = KINDS[missing["kind"]]
        lacks = f"{kind} {missing['name']} does not exist"
        where = f"create {kind} {missing['name']}" + ("" if kind == "DeviceClass" else f" in namespace {place}")
        steps: tuple[str, ...] = (f"{where}, or correct resourceClaims in {observed.template}",)
    else:
        lacks = f"no node has free devices for {', '.join(claim_names(rank))}"
        steps = (
            f"delete pods that use these devices, or request fewer devices in the claims of {observed.view.name}",
            observed.kubectl("get resourceclaims"),
            f"{observed.plain_kubectl} get resourceslices,deviceclasses",
        )
    return Finding(
        subject=ranks.pod_subject(rank),
        sentence=f"pod {rank.pod} waits for its resourceClaims{ranks.others_suffix(len(waiting))}: {lacks}",
        evidence=(f"{rank.pod}: {ranks.quote_message(message)}",),
        steps=steps,
    )


def claim_names(rank: Rank) -> list[str]:
    """Return the names of the ResourceClaims that a rank's pod uses."""
    return [str(claim.get("name")) for claim in meta.spec(rank.object or {}).get("resourceClaims") or []]


def _message(observed: Observed, rank: Rank) -> str:
    """Return the claim controller's message about a pod. If there is none, return the scheduler's message."""
    messages = ranks.warning_messages(observed, rank, "FailedResourceClaimCreation")
    return messages[-1] if messages else rank.why

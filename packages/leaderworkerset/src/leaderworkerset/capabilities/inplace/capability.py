"""The in-place update row of the capability table."""

from typing import Final

from kuberuntime.objects.qos import COMPUTE
from leaderworkerset.api import labels
from leaderworkerset.capabilities.capability import Capability
from leaderworkerset.capabilities.inplace import inplace, inplacegroups, inplacesteps
from leaderworkerset.core.extensions import GroupPlace, GroupStep

COMPUTE_AMOUNTS: Final = tuple(f"{kind}.{name}" for kind in ("limits", "requests") for name in COMPUTE)
"""CPU and memory, which can be updated in place."""

CAPABILITY: Final = Capability(
    name="update-in-place",
    page="how-to/in-place.md",
    settings=(labels.IN_PLACE,),
    pod_marks=(
        labels.IN_PLACE_REVISION,
        labels.IN_PLACE_STATEFULSET_REVISION,
        labels.IN_PLACE_REFUSED,
        labels.IN_PLACE_BEFORE,
        labels.IN_PLACE_RESOURCES,
    ),
    pod_fields=(
        "spec.containers[].image",
        "status.containerStatuses[].containerID",
        "status.containerStatuses[].state.running",
        *(f"spec.containers[].resources.{amount}" for amount in COMPUTE_AMOUNTS),
        *(f"status.containerStatuses[].resources.{amount}" for amount in COMPUTE_AMOUNTS),
    ),
    errors=(inplace.errors,),
    extend=(inplacegroups.extend,),
    excuses=(inplacegroups.excuses,),
    find_route=inplace.route_of,
    set_steps=(inplace.decide,),
    group_steps=(GroupStep(GroupPlace.COMPLETE, inplacesteps.decide),),
)

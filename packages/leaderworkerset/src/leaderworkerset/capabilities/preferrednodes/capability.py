"""The preferred nodes row of the capability table."""

from typing import Final

from leaderworkerset.api import labels
from leaderworkerset.capabilities.capability import Capability
from leaderworkerset.capabilities.preferrednodes import previousnodes
from leaderworkerset.core.extensions import GroupPlace, GroupStep
from leaderworkerset.core.policies.placement import NodePlacement

CAPABILITY: Final = Capability(
    name="places",
    page="how-to/places-and-ends.md",
    settings=(labels.STAY_ON_NODES,),
    statefulset_fields=(f"spec.template.metadata.annotations['{labels.STAY_ON_NODES}']",),
    errors=(previousnodes.errors,),
    policies=(previousnodes.POLICY,),
    placement=NodePlacement(
        marks=previousnodes.marks, prefer=previousnodes.prefer, worker_annotations=previousnodes.worker_annotations
    ),
    group_steps=(GroupStep(GroupPlace.COMPLETE, previousnodes.decide),),
)

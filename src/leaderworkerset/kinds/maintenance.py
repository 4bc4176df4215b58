"""The kind Node, as far as groups are moved off nodes under maintenance."""

from kuberuntime.objects.resources import NODES
from leaderworkerset.controllers import maintenance as controller
from leaderworkerset.core.maintenance.movesettings import MoveSettings
from leaderworkerset.kinds.kind import Kind


def maintained_nodes(settings: MoveSettings) -> Kind:
    """Return the kind, with the settings of LeaderWorkerSets that have none of their own."""
    return Kind(resource=NODES, controllers=(controller.specify(settings),))

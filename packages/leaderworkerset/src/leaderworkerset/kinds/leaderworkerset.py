"""The kind LeaderWorkerSet."""

from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api import descriptions
from leaderworkerset.api.crd import leaderworkerset_crd
from leaderworkerset.api.resources import LEADERWORKERSETS
from leaderworkerset.capabilities.moves.maintenancesettings import MaintenanceSettings
from leaderworkerset.controllers import leaderworkerset as controller
from leaderworkerset.controllers.instruments import KindMetrics, Meter
from leaderworkerset.core.policies.gang import Gang
from leaderworkerset.kinds.kind import Definition, Kind
from leaderworkerset.webhooks import handlers
from leaderworkerset.webhooks.handlers import Ask


def describe(document: JSONObject) -> JSONObject:
    """Build the definition with descriptions."""
    return descriptions.described(leaderworkerset_crd(), document)


def leaderworkerset(gang: Gang, ask: Ask, maintenance: MaintenanceSettings | None = None) -> Kind:
    """Return the kind, with the gang schedulers of the configuration, and the ones that admission may use now.

    With `maintenance` groups are moved off closed nodes.
    """

    def build_metrics(meter: Meter) -> KindMetrics:
        from leaderworkerset.controllers.metrics import LeaderWorkerSetMetrics  # only where metrics are served

        return LeaderWorkerSetMetrics(meter, maintenance)

    return Kind(
        resource=LEADERWORKERSETS,
        definition=Definition(leaderworkerset_crd, describe),
        controllers=(controller.specify(gang, maintenance),),
        webhooks=handlers.leaderworkerset_webhooks(ask),
        metrics=(build_metrics,),
    )

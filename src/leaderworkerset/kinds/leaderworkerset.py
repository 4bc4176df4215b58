"""The kind LeaderWorkerSet."""

from typing import Final

from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api import descriptions
from leaderworkerset.api.crd import leaderworkerset_crd
from leaderworkerset.api.resources import LEADERWORKERSETS
from leaderworkerset.controllers import leaderworkerset as controller
from leaderworkerset.controllers.instruments import KindMetrics, Meter
from leaderworkerset.kinds.kind import Definition, Kind
from leaderworkerset.webhooks import handlers


def describe(document: JSONObject) -> JSONObject:
    """Build the definition with descriptions."""
    return descriptions.described(leaderworkerset_crd(), document)


def build_metrics(meter: Meter) -> KindMetrics:
    """Register the metrics of LeaderWorkerSets; only a process that shows metrics imports them."""
    from leaderworkerset.controllers.metrics import LeaderWorkerSetMetrics

    return LeaderWorkerSetMetrics(meter)


LEADERWORKERSET: Final = Kind(
    resource=LEADERWORKERSETS,
    definition=Definition(leaderworkerset_crd, describe),
    controllers=(controller.SPEC,),
    webhooks=handlers.LEADERWORKERSET,
    metrics=(build_metrics,),
)

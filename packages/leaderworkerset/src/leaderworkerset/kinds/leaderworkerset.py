"""Declares the kind LeaderWorkerSet."""

from collections.abc import Mapping
from typing import Any

from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api import descriptions
from leaderworkerset.api.crd import leaderworkerset_crd
from leaderworkerset.api.resources import LEADERWORKERSETS
from leaderworkerset.controllers import leaderworkerset as controller
from leaderworkerset.controllers.instruments import KindMetrics, Meter
from leaderworkerset.core.policies.gang import Gang
from leaderworkerset.kinds.kind import Definition, Kind
from leaderworkerset.webhooks import handlers
from leaderworkerset.webhooks.handlers import Ask


def describe(document: JSONObject) -> JSONObject:
    """Build the CRD with descriptions."""
    return descriptions.with_descriptions(leaderworkerset_crd(), document)


def leaderworkerset(gang: Gang, ask: Ask, configured: Mapping[str, Any]) -> Kind:
    """Return the kind with the configured gang schedulers. `ask` returns the available schedulers.

    `configured` are the capability settings.
    """

    def build_metrics(meter: Meter) -> KindMetrics:
        from leaderworkerset.controllers.metrics import LeaderWorkerSetMetrics  # only if metrics are served

        return LeaderWorkerSetMetrics(meter, configured)

    return Kind(
        resource=LEADERWORKERSETS,
        definition=Definition(leaderworkerset_crd, describe),
        controllers=(controller.specify(gang, configured),),
        webhooks=handlers.leaderworkerset_webhooks(ask),
        metrics=(build_metrics,),
    )

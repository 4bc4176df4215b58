"""Declares the kind Pod for the pods of groups."""

from collections.abc import Mapping
from typing import Any

from kuberuntime.objects.resources import PODS
from leaderworkerset.controllers import ganggate
from leaderworkerset.controllers import pod as controller
from leaderworkerset.core.policies.gang import Gang
from leaderworkerset.kinds.kind import Kind
from leaderworkerset.webhooks import handlers
from leaderworkerset.webhooks.handlers import Ask


def pod(gang: Gang, ask: Ask, configured: Mapping[str, Any] = controller.NONE) -> Kind:
    """Return the kind with the configured gang schedulers. `ask` returns the available schedulers.

    `configured` are the capability settings.
    """
    gate = (ganggate.SPEC,) if gang.uses_gate else ()
    controllers = (controller.specify(gang, configured), *gate)
    return Kind(resource=PODS, controllers=controllers, webhooks=handlers.pod_webhooks(ask))

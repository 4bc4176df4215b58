"""The kind Pod, for pods that are members of groups."""

from kuberuntime.objects.resources import PODS
from leaderworkerset.controllers import ganggate
from leaderworkerset.controllers import pod as controller
from leaderworkerset.core.policies.gang import Gang
from leaderworkerset.core.restarts.settings import DEFAULTS, RestartSettings
from leaderworkerset.kinds.kind import Kind
from leaderworkerset.webhooks import handlers
from leaderworkerset.webhooks.handlers import Ask


def pod(gang: Gang, ask: Ask, restarts: RestartSettings = DEFAULTS) -> Kind:
    """Return the kind, with the gang schedulers of the configuration, and the ones that admission may use now.

    `restarts` is the configuration of groups that fail.
    """
    gate = (ganggate.SPEC,) if gang.opens_gates else ()
    controllers = (controller.specify(gang, restarts), *gate)
    return Kind(resource=PODS, controllers=controllers, webhooks=handlers.pod_webhooks(ask))

"""The kind Pod, as far as pods are members of groups."""

from kuberuntime.objects.resources import PODS
from leaderworkerset.controllers import ganggate
from leaderworkerset.controllers import pod as controller
from leaderworkerset.core.policies.gang import Gang
from leaderworkerset.kinds.kind import Kind
from leaderworkerset.webhooks import handlers
from leaderworkerset.webhooks.handlers import Ask


def pod(gang: Gang, ask: Ask) -> Kind:
    """Return the kind, with the gang schedulers of the configuration, and those that admission may use now."""
    gate = (ganggate.SPEC,) if gang.opens_gates else ()
    return Kind(resource=PODS, controllers=(controller.specify(gang), *gate), webhooks=handlers.pod_webhooks(ask))

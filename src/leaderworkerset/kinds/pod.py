"""The kind Pod, as far as pods are members of groups."""

from kuberuntime.objects.resources import PODS
from leaderworkerset.controllers import pod as controller
from leaderworkerset.core.policies.gang import Gang
from leaderworkerset.kinds.kind import Kind
from leaderworkerset.webhooks import handlers
from leaderworkerset.webhooks.handlers import Ask


def pod(gang: Gang, ask: Ask) -> Kind:
    """Return the kind, with the gang schedulers of the configuration, and those that admission may use now."""
    return Kind(resource=PODS, controllers=(controller.specify(gang),), webhooks=handlers.pod_webhooks(ask))

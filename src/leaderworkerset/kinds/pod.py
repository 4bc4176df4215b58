"""The kind Pod, as far as pods are members of groups."""

from typing import Final

from kuberuntime.objects.resources import PODS
from leaderworkerset.controllers import pod as controller
from leaderworkerset.kinds.kind import Kind
from leaderworkerset.webhooks import handlers

POD: Final = Kind(resource=PODS, controllers=(controller.SPEC,), webhooks=handlers.POD)

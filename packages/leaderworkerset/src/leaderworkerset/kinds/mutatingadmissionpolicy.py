"""Declares the kind MutatingAdmissionPolicy for the pod admission policy."""

from kuberuntime.objects.resources import MUTATING_ADMISSION_POLICIES
from leaderworkerset.capabilities.enabled import EXTENSIONS
from leaderworkerset.controllers import podpolicies as controller
from leaderworkerset.core.admission import podpolicy as admission
from leaderworkerset.core.policies.gang import Gang
from leaderworkerset.kinds.kind import Kind


def pod_policy(gang: Gang) -> Kind:
    """Return the kind with the configured gang schedulers, whose pods are handled by the webhook."""
    built = admission.build(gang, EXTENSIONS)
    return Kind(resource=MUTATING_ADMISSION_POLICIES, controllers=(controller.specify(built),))

"""Declares the kind PodDisruptionBudget for the disruption budgets of groups."""

from kuberuntime.objects.resources import POD_DISRUPTION_BUDGETS
from leaderworkerset.capabilities.disruption.disruptionsettings import DisruptionSettings
from leaderworkerset.controllers import disruption as controller
from leaderworkerset.kinds.kind import Kind


def disruption_budget(settings: DisruptionSettings) -> Kind:
    """Return the kind with the default settings for LeaderWorkerSets without a budget."""
    return Kind(resource=POD_DISRUPTION_BUDGETS, controllers=(controller.specify(settings),))

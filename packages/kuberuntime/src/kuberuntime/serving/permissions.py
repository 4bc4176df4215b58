"""Permissions for leader election, in one namespace, and for authorizing readers of metrics."""

from typing import Final

from kuberuntime.objects.resources import LEASES, SUBJECT_ACCESS_REVIEWS, TOKEN_REVIEWS
from kuberuntime.policyrules import Permission

METRICS: Final = (Permission(TOKEN_REVIEWS, ("create",)), Permission(SUBJECT_ACCESS_REVIEWS, ("create",)))


def leader_election(lease: str) -> tuple[Permission, ...]:
    """Return the permissions for leader election on one lease; a role cannot restrict `create` to a name."""
    return (Permission(LEASES, ("create",)), Permission(LEASES, ("get", "update"), names=(lease,)))

"""Defines the permissions for leader election in one namespace, and for authorizing metrics clients."""

from typing import Final

from kuberuntime.objects.resources import LEASES, SUBJECT_ACCESS_REVIEWS, TOKEN_REVIEWS
from kuberuntime.policyrules import Permission

METRICS: Final = (Permission(TOKEN_REVIEWS, ("create",)), Permission(SUBJECT_ACCESS_REVIEWS, ("create",)))


def leader_election(lease: str) -> tuple[Permission, ...]:
    """Return the permissions for leader election with one lease. A role cannot restrict `create` by name."""
    return (Permission(LEASES, ("create",)), Permission(LEASES, ("get", "update"), names=(lease,)))

"""Builds the manager's service account, and its roles from the permission declarations (contract 12.5).

Unlike upstream, no role permits reading Secrets other than the webhook Secret, or writing nodes. Only the specs of
objects that the controllers create can be written. `docs/adr/0005-installation.md` contains the comparison.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from kuberuntime.objects import resources
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import Resource
from kuberuntime.policyrules import Permission, policy_rules
from kuberuntime.serving import permissions as kube
from leaderworkerset.api.metadata import LEASE, MANAGER, build
from leaderworkerset.controllers.permissions import REMOVE_POD_POLICIES
from leaderworkerset.webhooks import configurations as webhooks

METRICS_READER: Final = "lws-metrics-reader"
READ_METRICS: Final[JSONObject] = {"nonResourceURLs": ["/metrics"], "verbs": ["get"]}


def service_account(namespace: str) -> JSONObject:
    """Build the service account of the manager."""
    return build(resources.SERVICE_ACCOUNTS, MANAGER, namespace)


def roles(
    namespace: str, controllers: Iterable[Permission], *, certificates: bool = True
) -> list[tuple[Resource, JSONObject]]:
    """Build all roles with their bindings to the manager. `controllers` contains the controllers' permissions.

    If `certificates` is set, the manager issues its webhook certificates, and publishes their CA. The role to read
    metrics is for the service account of a scraper.
    """
    keeping = webhooks.CLUSTER if certificates else webhooks.READ
    return [
        *cluster_role("lws-manager-role", policy_rules((*controllers, *REMOVE_POD_POLICIES, *keeping)), namespace),
        *cluster_role("lws-proxy-role", policy_rules(kube.METRICS), namespace),
        (resources.CLUSTER_ROLES, build(resources.CLUSTER_ROLES, METRICS_READER, rules=[READ_METRICS])),
        *_role("lws-leader-election-role", policy_rules(kube.leader_election(LEASE)), namespace),
        *(_role("lws-certificates-role", policy_rules(webhooks.NAMESPACE), namespace) if certificates else []),
    ]


def cluster_role(name: str, rules: Sequence[JSONObject], namespace: str) -> list[tuple[Resource, JSONObject]]:
    """Build a ClusterRole and its binding."""
    return [
        (resources.CLUSTER_ROLES, build(resources.CLUSTER_ROLES, name, rules=list(rules))),
        (
            resources.CLUSTER_ROLE_BINDINGS,
            build(
                resources.CLUSTER_ROLE_BINDINGS, _binding_name(name), **_grant(resources.CLUSTER_ROLES, name, namespace)
            ),
        ),
    ]


def _role(name: str, rules: Sequence[JSONObject], namespace: str) -> list[tuple[Resource, JSONObject]]:
    return [
        (resources.ROLES, build(resources.ROLES, name, namespace, rules=list(rules))),
        (
            resources.ROLE_BINDINGS,
            build(resources.ROLE_BINDINGS, _binding_name(name), namespace, **_grant(resources.ROLES, name, namespace)),
        ),
    ]


def _binding_name(role: str) -> str:
    """Return the upstream name of the binding for a role.

    >>> _binding_name("lws-proxy-role")
    'lws-proxy-rolebinding'
    """
    return f"{role.removesuffix('-role')}-rolebinding"


def _grant(kind: Resource, role: str, namespace: str) -> JSONObject:
    return {
        "roleRef": {"apiGroup": kind.group, "kind": kind.kind, "name": role},
        "subjects": [{"kind": resources.SERVICE_ACCOUNTS.kind, "name": MANAGER, "namespace": namespace}],
    }

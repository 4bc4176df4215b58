"""Tests RBAC rules that are built from declarations."""

from kuberuntime.objects.resources import PODS, SECRETS, SERVICES, STATEFULSETS
from kuberuntime.policyrules import Permission, policy_rules


def test_rules_are_sorted_and_merge_equal_resources() -> None:
    permissions = [
        Permission(SERVICES, ("watch", "list")),
        Permission(PODS, ("list", "watch")),
        Permission(STATEFULSETS, ("update",), "status"),
    ]
    assert policy_rules(permissions) == [
        {"apiGroups": [""], "resources": ["pods", "services"], "verbs": ["list", "watch"]},
        {"apiGroups": ["apps"], "resources": ["statefulsets/status"], "verbs": ["update"]},
    ]


def test_verbs_of_the_same_resource_are_merged() -> None:
    assert policy_rules([Permission(PODS, ("list",)), Permission(PODS, ("delete", "list"))]) == [
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["delete", "list"]}
    ]


def test_permission_on_names_stays_separate() -> None:
    permissions = [Permission(SECRETS, ("get",), names=("b", "a")), Permission(PODS, ("get",))]
    assert policy_rules(permissions) == [
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]},
        {"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["a", "b"], "verbs": ["get"]},
    ]

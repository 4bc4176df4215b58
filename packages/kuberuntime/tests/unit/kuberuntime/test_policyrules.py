"""Rules of roles, built from declarations."""

from kuberuntime.objects.resources import PODS, SECRETS, SERVICES, STATEFULSETS
from kuberuntime.policyrules import Permission, policy_rules


def test_rules_are_sorted_and_alike_resources_share_one() -> None:
    permissions = [
        Permission(SERVICES, ("watch", "list")),
        Permission(PODS, ("list", "watch")),
        Permission(STATEFULSETS, ("update",), "status"),
    ]
    assert policy_rules(permissions) == [
        {"apiGroups": [""], "resources": ["pods", "services"], "verbs": ["list", "watch"]},
        {"apiGroups": ["apps"], "resources": ["statefulsets/status"], "verbs": ["update"]},
    ]


def test_what_two_parts_ask_of_the_same_resource_is_united() -> None:
    assert policy_rules([Permission(PODS, ("list",)), Permission(PODS, ("delete", "list"))]) == [
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["delete", "list"]}
    ]


def test_a_permission_on_names_stays_apart_from_one_on_all() -> None:
    permissions = [Permission(SECRETS, ("get",), names=("b", "a")), Permission(PODS, ("get",))]
    assert policy_rules(permissions) == [
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]},
        {"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["a", "b"], "verbs": ["get"]},
    ]

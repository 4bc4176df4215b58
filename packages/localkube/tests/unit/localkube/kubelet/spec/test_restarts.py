"""Tests whether terminated containers are restarted."""

import pytest
from tests.kubeletpods import container, pod

from kuberuntime.objects.meta import JSONObject
from localkube import wellknown
from localkube.kubelet.spec import restarts

ON_42 = [{"action": "Restart", "exitCodes": {"operator": "In", "values": [42]}}]
ALL_ON_88 = [{"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [88]}}]
NOT_ON_42 = [{"action": "Restart", "exitCodes": {"operator": "NotIn", "values": [42]}}]


@pytest.mark.parametrize(
    ("own", "code", "again"),
    [
        ({}, 1, False),
        ({"restartPolicy": "Always"}, 0, True),
        ({"restartPolicy": "OnFailure"}, 0, False),
        ({"restartPolicy": "Never", "restartPolicyRules": ON_42}, 42, True),
        ({"restartPolicy": "Never", "restartPolicyRules": ON_42}, 1, False),
        ({"restartPolicy": "Never", "restartPolicyRules": NOT_ON_42}, 42, False),
        ({"restartPolicy": "Never", "restartPolicyRules": NOT_ON_42}, 1, True),
    ],
)
def test_container_policy_overrides_the_pod_policy(own: JSONObject, code: int, again: bool) -> None:
    main = container(**own)
    assert restarts.is_restarted(pod(main, restartPolicy="Never"), main, code) is again


@pytest.mark.parametrize(
    ("policy", "expected"), [("Always", "OnFailure"), ("OnFailure", "OnFailure"), ("Never", "Never")]
)
def test_succeeded_init_container_is_not_restarted(policy: str, expected: str) -> None:
    init = container("init")
    assert restarts.restart_policy(pod(initContainers=[init], restartPolicy=policy), init) == expected


def test_held_completion_does_not_restart_the_container() -> None:
    main = container()
    held = restarts.hold_completed(pod(main))
    assert not restarts.is_restarted(held, main, 0)
    assert restarts.is_restarted(held, main, 1)


@pytest.mark.parametrize("name", [wellknown.HOLD_COMPLETED, wellknown.FORMER_HOLD_COMPLETED])
def test_completion_annotation_does_not_restart_the_container(name: str) -> None:
    held = {"metadata": {"annotations": {name: "true"}}, "spec": {"restartPolicy": "Always", "containers": []}}
    assert not restarts.is_restarted(held, {"name": "main"}, 0)
    assert restarts.is_restarted(held, {"name": "main"}, 1)


@pytest.mark.parametrize(
    ("rules", "code", "all_of_them"),
    [
        (ALL_ON_88, 88, True),
        (ALL_ON_88, 1, False),
        ([*ON_42, *ALL_ON_88], 88, True),
        ([*NOT_ON_42, *ALL_ON_88], 88, False),
        (None, 88, False),
    ],
    ids=["matches", "another code", "the second rule", "an earlier rule matches", "no rules"],
)
def test_first_matching_rule_decides(rules: list[JSONObject] | None, code: int, *, all_of_them: bool) -> None:
    main = container(restartPolicy="Never", restartPolicyRules=rules)
    assert restarts.requires_restart_of_all(main, code) is all_of_them
    assert restarts.is_restarted(pod(main), main, code) is (code == 88 and bool(rules))


def test_rule_of_any_container_can_restart_the_pod() -> None:
    watcher = container("watcher", restartPolicy="Always", restartPolicyRules=ALL_ON_88)
    assert restarts.may_restart_all(pod(initContainers=[watcher]))
    assert not restarts.may_restart_all(pod(container(restartPolicy="Never", restartPolicyRules=ON_42)))

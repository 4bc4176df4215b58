"""Whether a container that ended starts again."""

import pytest
from tests.unit.localkube.kubelet.pods import container, pod

from kuberuntime.objects.meta import JSONObject
from localkube import wellknown
from localkube.kubelet.spec import restarts

ON_42 = [{"action": "Restart", "exitCodes": {"operator": "In", "values": [42]}}]
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
def test_a_container_of_its_own_policy_goes_before_the_pods(own: JSONObject, code: int, again: bool) -> None:
    main = container(**own)
    assert restarts.starts_again(pod(main, restartPolicy="Never"), main, code) is again


@pytest.mark.parametrize(
    ("policy", "expected"), [("Always", "OnFailure"), ("OnFailure", "OnFailure"), ("Never", "Never")]
)
def test_an_init_container_that_succeeded_is_done(policy: str, expected: str) -> None:
    init = container("init")
    assert restarts.policy(pod(initContainers=[init], restartPolicy=policy), init) == expected


def test_a_completed_container_is_left_alone_where_the_pod_says_so() -> None:
    main = container()
    held = restarts.hold_completed(pod(main))
    assert not restarts.starts_again(held, main, 0)
    assert restarts.starts_again(held, main, 1)


@pytest.mark.parametrize("name", [wellknown.HOLD_COMPLETED, wellknown.FORMER_HOLD_COMPLETED])
def test_a_completed_container_stays_ended_where_the_pod_says_so(name: str) -> None:
    held = {"metadata": {"annotations": {name: "true"}}, "spec": {"restartPolicy": "Always", "containers": []}}
    assert not restarts.starts_again(held, {"name": "main"}, 0)
    assert restarts.starts_again(held, {"name": "main"}, 1)

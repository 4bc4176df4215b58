"""How long a pod may stay on a node with taints NoExecute."""

from datetime import timedelta

import pytest
from tests.unit.localkube.controllers.objects import build_pod

from kuberuntime.objects.meta import JSONObject
from localkube.controllers.nodes.tainteviction import tolerated

POOL: JSONObject = {"key": "pool", "value": "gpu", "effect": "NoExecute"}
LOST: JSONObject = {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}


def toleration(key: str, seconds: float | None = None, **fields: str) -> JSONObject:
    limit = {} if seconds is None else {"tolerationSeconds": seconds}
    return {"key": key, "operator": "Exists", "effect": "NoExecute"} | fields | limit


@pytest.mark.parametrize(
    ("taints", "tolerations", "expected"),
    [
        pytest.param([], [], None, id="no taint"),
        pytest.param([POOL], [], 0, id="not tolerated"),
        pytest.param([POOL], [toleration("pool")], None, id="tolerated for ever"),
        pytest.param([POOL], [toleration("pool", 5)], 5, id="tolerated for a while"),
        pytest.param([POOL], [toleration("pool", 5), toleration("", 3)], 3, id="the shortest of those that fit"),
        pytest.param([POOL], [toleration("pool", -1)], 0, id="a time that is over"),
        pytest.param([POOL], [toleration("pool", effect="NoSchedule")], 0, id="another effect"),
        pytest.param([POOL], [{"key": "pool", "value": "cpu", "effect": "NoExecute"}], 0, id="another value"),
        pytest.param([POOL, LOST], [toleration("pool")], 0, id="one of two not tolerated"),
        pytest.param([POOL, LOST], [toleration("pool"), toleration(LOST["key"], 300)], 300, id="both tolerated"),
    ],
)
def test_a_pod_stays_as_long_as_it_tolerates_all_taints(
    taints: list[JSONObject], tolerations: list[JSONObject], expected: float | None
) -> None:
    pod = build_pod("web-0", {"spec": {"tolerations": tolerations}})
    assert tolerated(pod, taints) == (None if expected is None else timedelta(seconds=expected))

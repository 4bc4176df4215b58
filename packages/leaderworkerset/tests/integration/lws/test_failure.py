"""Tests the effect of a failed or succeeded pod on its group (contract 8.2)."""

import pytest
from tests.integration.clusters.objects import lws, pod_template
from tests.integration.clusters.space import LiveScenario
from tests.integration.lws.recreation import assert_notes, created_leaders, replaced

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject

GROUP = ("web-1", "web-1-1", "web-1-2")


def mortal() -> JSONObject:
    """Return a pod template whose container does not restart, although the pod's restart policy is `Always`.

    Pods of StatefulSets can say nothing else; kubelets fail them for lack of memory or disk in the same way.
    """
    template = pod_template()
    (container,) = template["spec"]["containers"]
    return {"spec": template["spec"] | {"containers": [container | {"restartPolicy": "Never"}]}}


@pytest.mark.parametrize(("code", "phase"), [(1, "Failed"), (0, "Succeeded")], ids=["Failed", "Succeeded"])
@pytest.mark.parametrize(
    ("policy", "pod", "hit"),
    [
        pytest.param("RecreateGroupOnPodRestart", "web-1", GROUP, id="OnPodRestart-leader"),
        pytest.param("RecreateGroupOnPodRestart", "web-1-2", GROUP, id="OnPodRestart-worker"),
        pytest.param("RecreateGroupAfterStart", "web-1", GROUP, id="AfterStart-leader"),
        pytest.param("RecreateGroupAfterStart", "web-1-2", GROUP, id="AfterStart-worker"),
        pytest.param("None", "web-1", GROUP, id="None-leader"),
        pytest.param("None", "web-1-2", ("web-1-2",), id="None-worker"),
    ],
)
async def test_terminated_pod_counts_once_it_is_deleted(
    space: LiveScenario, policy: str, pod: str, hit: tuple[str, ...], code: int, phase: str
) -> None:
    """The failure is detected when the StatefulSet deletes the pod, regardless of the pod's phase.

    Rules R-POD-3 to R-POD-5, R-POD-9, R-POD-10.

    A leader takes its workers along under any policy (R-ARC-4, R-WSTS-7), without the pod controller.
    """
    before = await space.bring_up(
        lws(replicas=3, size=3, template={"workerTemplate": mortal(), "restartPolicy": policy})
    )
    space.changes.clear()
    await space.end_pod(pod, code)
    await replaced(space, before, *hit)
    assert phase in {meta.status(change.object).get("phase") for change in space.changes}, space.story()
    assert created_leaders(space) == (["web-1"] if "web-1" in hit else []), "\n".join(space.story())
    note = f"Worker pod {pod} failed, deleted leader pod web-1 to recreate group 1"
    expected = [note] if "web-1" in hit and pod != "web-1" else []
    await space.until(lambda state: assert_notes(state, expected))

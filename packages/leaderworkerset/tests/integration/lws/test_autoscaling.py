"""Tests that a HorizontalPodAutoscaler of the real kube-controller-manager scales `/scale` (R-API-2)."""

import asyncio
import re
from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest
import yaml
from testkit.clusters.opencontexts import OpenContext
from testkit.repository import ROOT
from tests.integration.clusters.fixtures import Running
from tests.integration.clusters.objects import lws, pod_template
from tests.integration.clusters.space import LiveScenario
from tests.integration.clusters.state import State, assert_settled, conditions, is_ready
from tests.integration.lws.metricsapi import MetricsAPI, serving
from tests.integration.lws.test_hash import HASH, settled
from tests.integration.lws.test_hash import assert_settled as assert_settled_by_key

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import Resource
from leaderworkerset.api import labels
from leaderworkerset.api.resources import LEADERWORKERSETS

pytestmark = [pytest.mark.slow, pytest.mark.parametrize("running", ["kubernetes"], indirect=True)]


AUTOSCALERS: Final = Resource("autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler")
QUEUE: Final = "s0-queue-length"
AT_ONCE: Final[JSONObject] = {
    way: {"stabilizationWindowSeconds": 0, "policies": [{"type": "Pods", "value": 100, "periodSeconds": 15}]}
    for way in ("scaleUp", "scaleDown")
}


@pytest.fixture(scope="module")
def metrics(runner: asyncio.Runner, running: Running) -> Iterator[MetricsAPI]:
    """Serve metrics through the aggregation layer of the API server."""
    keeper = runner.run(OpenContext.enter(serving(running.client)))
    try:
        yield runner.run(keeper.value())
    finally:
        runner.run(keeper.leave())


def autoscaler(metric: JSONObject, *, name: str = "web", minimum: int = 1, maximum: int = 8) -> JSONObject:
    """Return an autoscaler that reacts immediately to its metrics."""
    target = {"apiVersion": LEADERWORKERSETS.api_version, "kind": LEADERWORKERSETS.kind, "name": "web"}
    return {
        "apiVersion": AUTOSCALERS.api_version,
        "kind": AUTOSCALERS.kind,
        "metadata": {"name": name},
        "spec": {
            "scaleTargetRef": target,
            "minReplicas": minimum,
            "maxReplicas": maximum,
            "metrics": [metric],
            "behavior": AT_ONCE,
        },
    }


def of_pods(millicores: int) -> JSONObject:
    """Return a metric that defines the target usage of each group's leader."""
    target = {"type": "AverageValue", "averageValue": f"{millicores}m"}
    return {"type": "Resource", "resource": {"name": "cpu", "target": target}}


def of_queue(each: int, owner: str) -> JSONObject:
    """Return an external metric as KEDA writes it, with a target value per group and its own label selector."""
    selector = {"matchLabels": {"scaledobject.keda.sh/name": owner}}
    target = {"type": "AverageValue", "averageValue": str(each)}
    return {"type": "External", "external": {"metric": {"name": QUEUE, "selector": selector}, "target": target}}


def at_rest(replicas: int) -> Callable[[State], None]:
    """Check that this number of complete groups exists."""

    def expectation(state: State) -> None:
        assert meta.spec(state.leaderworkersets["web"])["replicas"] == replicas
        assert_settled(state, "web")

    return expectation


async def scaler_conditions(space: LiveScenario, name: str) -> dict[str, tuple[str, str]]:
    found = meta.status(await space.get(AUTOSCALERS, name)).get("conditions") or []
    return {one["type"]: (one["status"], one["reason"]) for one in found}


async def test_autoscaler_measures_leaders_only(space: LiveScenario, metrics: MetricsAPI) -> None:
    """The selector of `/scale` matches only leaders, so the usage of workers is ignored (R-STAT-4).

    One leader for each group, so that the mean over pods is the mean over groups: 2 groups x 300 / 100 are 6.
    """
    leader = {"load": 300}
    metrics.load = lambda pod: leader["load"] if meta.labels(pod)[labels.WORKER_INDEX] == "0" else 9000
    before = (await space.bring_up(lws(replicas=2, size=3))).uids("web")
    # 25 of 100 would scale it down to 1
    await space.create(autoscaler(of_pods(100), minimum=2, maximum=6), AUTOSCALERS)
    state = await space.until(at_rest(6))
    assert before.items() <= state.uids("web").items()
    assert metrics.selectors == {f"{labels.NAME}=web,{labels.WORKER_INDEX}=0"}
    assert conditions(state.leaderworkersets["web"])["Available"] == "True"

    leader["load"] = 25
    state = await space.until(at_rest(2))
    assert before == state.uids("web")
    assert (await scaler_conditions(space, "web"))["ScalingActive"] == ("True", "ValidMetricFound")
    await space.delete("web", AUTOSCALERS)


async def test_autoscaler_scales_groups_with_random_keys(space: LiveScenario, metrics: MetricsAPI) -> None:
    """2 groups x 300 / 100 results in 6 groups. The ReplicaSet selects the groups to delete (R-STAT-4, N-HASH-6)."""
    leader = {"load": 300}
    metrics.load = lambda pod: leader["load"] if meta.labels(pod)[labels.WORKER_INDEX] == "0" else 9000
    await space.create(lws(replicas=2, size=2, **HASH))
    before = (await settled(space, 2, 2)).uids("web")
    await space.create(autoscaler(of_pods(100), minimum=2, maximum=6), AUTOSCALERS)

    def has_grown(state: State) -> None:
        assert_settled_by_key(state, 6, 2)

    state = await space.until(has_grown)
    assert before.items() <= state.uids("web").items()
    leader["load"] = 25

    def has_shrunk(state: State) -> None:
        assert_settled_by_key(state, 2, 2)

    assert (await space.until(has_shrunk)).uids("web").items() <= state.uids("web").items()
    await space.delete("web", AUTOSCALERS)


async def test_rollout_proceeds_when_percentages_round_to_zero(space: LiveScenario, metrics: MetricsAPI) -> None:
    """25 % of 4 groups is one group. After scaling to 2, it is zero, and the rollout continues (Q-28).

    The stored percentage blocks no later change of the template (docs/adr/0029).
    """
    key = (QUEUE, "scaledobject.keda.sh/name=floor")
    metrics.numbers[key] = 20
    await space.create(lws(replicas=4, size=2, gated=True, rollout={"maxUnavailable": "25%", "maxSurge": 0}))
    async with space.releasing():
        before = (await space.settled()).uids("web")
    await space.create(autoscaler(of_queue(5, "floor")), AUTOSCALERS)
    await space.replace_worker_template(pod_template("app:2", gated=True))
    await space.until(lambda state: _assert_some(state, "app:2"))

    metrics.numbers[key] = 10
    await space.until(lambda state: _assert_replicas(state, 2))
    space.always(_one_group_at_a_time)
    async with space.releasing():
        after = await space.until(lambda state: _rolled(state, before))
    assert images(after) == {"app:2"}
    await space.replace_worker_template(pod_template("app:3"))
    async with space.releasing():
        await space.until(lambda state: _assert_some(state, "app:3"))

    metrics.numbers[key] = 40
    async with space.releasing():
        await space.until(at_rest(8))
    await space.delete("web", AUTOSCALERS)


def images(state: State) -> set[str]:
    return {meta.spec(pod)["containers"][0]["image"] for pod in state.of("web").values()}


def _assert_some(state: State, image: str) -> None:
    assert image in images(state)


def _assert_replicas(state: State, replicas: int) -> None:
    assert meta.spec(state.leaderworkersets["web"])["replicas"] == replicas


def _rolled(state: State, before: dict[str, str]) -> None:
    assert_settled(state, "web")
    assert not before.items() & state.uids("web").items()


def _one_group_at_a_time(state: State) -> None:
    """Check that one leader is always ready during replacements."""
    leaders = [pod for pod in state.of("web").values() if meta.labels(pod)[labels.WORKER_INDEX] == "0"]
    assert any(is_ready(pod) for pod in leaders)


async def test_keda_scales_to_zero_and_back(space: LiveScenario, metrics: MetricsAPI) -> None:
    """KEDA removes the last group and creates the first one with PUT requests to `/scale`.

    Its autoscaler is inactive at zero groups.
    """
    key = (QUEUE, "scaledobject.keda.sh/name=zero")
    metrics.numbers[key] = 15
    await space.bring_up(lws(replicas=1, size=2))
    await space.create(autoscaler(of_queue(5, "zero"), name="keda-hpa-web"), AUTOSCALERS)
    await space.until(at_rest(3))

    metrics.numbers[key] = 0
    await space.until(at_rest(1))  # never below minReplicas
    assert (await put_scale(space, 0))["spec"] == {}, "a number of zero is left out, as the Go types do"
    state = await space.until(at_rest(0))
    assert state.of("web") == {}
    await space.eventually(
        lambda: scaler_conditions(space, "keda-hpa-web"),
        lambda found: found.get("ScalingActive") == ("False", "ScalingDisabled"),
    )

    metrics.numbers[key] = 20
    await put_scale(space, 1)
    await space.until(at_rest(4))
    await space.delete("keda-hpa-web", AUTOSCALERS)


async def put_scale(space: LiveScenario, replicas: int) -> dict[str, Any]:
    """Update `/scale` as scale clients do: read it, change it, and send it back with its resourceVersion."""

    async def read() -> dict[str, Any]:
        return dict(await space.get(LEADERWORKERSETS, "web", subresource="scale"))

    found = await read()
    assert found["kind"] == "Scale"
    assert found["apiVersion"] == "autoscaling/v1"
    assert meta.uid(found) == meta.uid(await space.get(LEADERWORKERSETS, "web"))
    written = found | {"spec": {"replicas": replicas}}
    return dict(await space.client.update(LEADERWORKERSETS, written, subresource="scale"))


async def test_autoscaler_of_the_documentation_is_valid(space: LiveScenario) -> None:
    """The API server accepts the printed manifest with strict field validation."""
    page = (ROOT / "docs/how-to/autoscaling.md").read_text()
    (text,) = re.findall(r"^```yaml\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    written = yaml.safe_load(text)
    created = await space.create(written, AUTOSCALERS, dry_run=True)
    assert created["spec"]["scaleTargetRef"] == written["spec"]["scaleTargetRef"]
    assert created["spec"]["behavior"]["scaleDown"]["stabilizationWindowSeconds"] == 600
    assert created["spec"]["metrics"] == written["spec"]["metrics"]

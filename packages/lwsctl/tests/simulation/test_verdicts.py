"""Tests the status over time. Failing programs are never healthy, and loading programs require no action.

Everything runs: the manager, the StatefulSets, the kubelet with modelled programs. A virtual poll is a separate
`lws explain`: it knows only what the API server has.
"""

import asyncio
from collections import Counter
from itertools import pairwise
from typing import Final

import pytest
from tests.fuzz.seeds import first_tier
from tests.simulation.cluster import NAMESPACE, Settings, SimulatedCluster, simulate
from tests.simulation.workloads import SLOW, groups

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import PODS
from leaderworkerset.api.resources import LEADERWORKERSETS
from localkube.kubelet.processes.runner import ContainerSpec, Exit
from localkube.kubelet.processes.simulatedrunner import Program, Script
from lwsctl.dashboard.livemodel import LiveModel, run_model
from lwsctl.diagnosis.observed import Commands
from lwsctl.model.diagnosis import Diagnosis
from lwsctl.model.health import Verdict
from lwsctl.model.leaderworkerset import view
from lwsctl.observation import diagnosisinput
from lwsctl.observation.lists import Lists
from lwsctl.views.selection import Selection

POLLS: Final = 250


async def explain(world: SimulatedCluster) -> Diagnosis:
    """Diagnose the LeaderWorkerSet in the same way as a separate process."""
    lws = await world.get(LEADERWORKERSETS, "web")
    shown = view(lws, (await world.client.list(PODS, namespace=NAMESPACE)).items)
    return await diagnosisinput.diagnose_one(Lists(world.client), shown, Selection("web"), Commands(), world.clock)


async def polls(world: SimulatedCluster, seconds: float) -> list[Diagnosis]:
    """Explain repeatedly for `seconds` of virtual time, at different fractions of a second."""
    found = []
    for _ in range(POLLS):
        found.append(await explain(world))
        await asyncio.sleep(seconds / POLLS + 0.01)
    return found


def fails(after: float) -> Script:
    """Return a script in which rank 0/1 fails after `seconds`, and the other ranks continue to run."""

    def script(spec: ContainerSpec) -> Program:
        place = spec.env.get("LWS_GROUP_INDEX"), spec.env.get("LWS_WORKER_INDEX")
        return Program(exits=(after, Exit(1))) if place == ("0", "1") else Program()

    return script


async def first_failure(world: SimulatedCluster) -> None:
    """Wait until a container has failed."""

    def has_failed(pods: list[JSONObject]) -> bool:
        return any(
            "terminated" in (status.get("state") or {}) or status.get("restartCount")
            for pod in pods
            for status in meta.status(pod).get("containerStatuses") or ()
        )

    await world.until_objects(PODS, has_failed)


@pytest.mark.parametrize("policy", ["RecreateGroupOnPodRestart", "None"])
@pytest.mark.parametrize("seconds", first_tier([2, 150, 15, 45], 2))
def test_program_that_keeps_failing_is_never_healthy(seconds: int, policy: str) -> None:
    verdicts: list[Diagnosis] = []

    async def scenario(world: SimulatedCluster) -> None:
        lws = groups(replicas=2, size=2)
        lws["spec"]["leaderWorkerTemplate"]["restartPolicy"] = policy
        await world.create(lws)
        await first_failure(world)
        verdicts.extend(await polls(world, 6 * seconds + 120))

    simulate(scenario, Settings(seed=seconds, managers=(SLOW,), others=SLOW, script=fails(seconds)))
    counts = Counter((told.verdict.value, told.code) for told in verdicts)
    assert not {verdict for verdict, _ in counts} & {"healthy", "unknown", "unread"}, counts
    assert sum(told.verdict is Verdict.CRASHING for told in verdicts) > len(verdicts) / 2


def test_dashboard_is_calm_while_programs_fail() -> None:
    """Two LeaderWorkerSets fail every two and every five seconds.

    The status is stable, and cards move at most every 10 s.
    """
    shown: list[tuple[float, tuple[str, ...], dict[str, str]]] = []

    async def scenario(world: SimulatedCluster) -> None:
        for name in ("calm", "slow", "web"):
            await world.create(named(groups(replicas=2, size=2), name))
        await first_failure(world)
        model = LiveModel(world.client, NAMESPACE, Commands(), world.clock)
        async with run_model(model), model.update_diagnoses():
            end = world.clock.monotonic() + 240
            while world.clock.monotonic() < end:
                items = model.snapshot.ordered
                told = {item.name: f"{item.diagnosis.verdict} {item.diagnosis.code}" for item in items}
                shown.append((world.clock.monotonic(), tuple(told), told))
                await model.wait_for_change()

    def script(spec: ContainerSpec) -> Program:
        after = {"web": 2.0, "slow": 5.0}.get(spec.env.get("LWS_LEADER_ADDRESS", "").partition("-")[0])
        is_failing = after is not None and spec.env.get("LWS_WORKER_INDEX") == "1"
        return Program(exits=(after or 0, Exit(1))) if is_failing else Program()

    simulate(scenario, Settings(managers=(SLOW,), others=SLOW, script=script))
    later = [told for moment, _, told in shown if moment > shown[0][0] + 30]
    assert len(later) > 50
    assert {told[name] for told in later for name in ("web", "slow")} == {"crashing LWS-E071"}
    assert {told["calm"] for told in later} == {"healthy "}
    assert {told["web"] for _, _, told in shown} <= {"crashing LWS-E071", "progressing LWS-E081"}
    changes = [after for before, after in pairwise(shown) if before[1] != after[1]]
    assert all(later[0] - earlier[0] >= 10 for earlier, later in pairwise(changes))
    assert shown[-1][1][-1] == "calm"


def named(lws: JSONObject, name: str) -> JSONObject:
    return lws | {"metadata": lws["metadata"] | {"name": name}}


def loads(seconds: float) -> Script:
    """Return the script of a server that responds after `seconds`."""
    return lambda _: Program(listens={8000: seconds})


@pytest.mark.parametrize("probe", ["readinessProbe", "startupProbe"])
def test_loading_server_is_never_reported_as_stuck(probe: str) -> None:
    """This also applies while a rollout replaces a group that was ready."""
    verdicts: list[Diagnosis] = []

    async def scenario(world: SimulatedCluster) -> None:
        lws = groups(replicas=2, size=2)
        (container,) = lws["spec"]["leaderWorkerTemplate"]["workerTemplate"]["spec"]["containers"]
        container[probe] = {"httpGet": {"path": "/", "port": 8000}, "periodSeconds": 2, "failureThreshold": 60}
        await world.create(lws)
        verdicts.extend(await polls(world, 90))
        container["image"] = "app:2"
        await world.edit(leaderWorkerTemplate=lws["spec"]["leaderWorkerTemplate"])
        verdicts.extend(await polls(world, 200))

    simulate(scenario, Settings(managers=(SLOW,), others=SLOW, script=loads(60)))
    counts = Counter((told.verdict.value, told.code) for told in verdicts)
    assert not {verdict for verdict, _ in counts} - {"starting", "progressing", "healthy"}, counts
    assert any(told.duration.endswith(")") for told in verdicts if told.verdict is Verdict.STARTING)

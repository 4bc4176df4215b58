"""Tests the diagnosis of thirty failing programs with full logs in each second of a minute."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from copy import deepcopy
from datetime import timedelta
from typing import Final

import pytest
from tests.explanations.failinglogs import FailingLog, programs
from tests.simulation.cluster import NAMESPACE, Settings, SimulatedCluster, simulate
from tests.simulation.test_verdicts import explain, first_failure
from tests.simulation.workloads import SLOW, groups

from kuberuntime.cache.informer import Informer
from kuberuntime.client.requests import Selection
from kuberuntime.objects.resources import CONTROLLER_REVISIONS, PODS
from leaderworkerset.api import labels
from leaderworkerset.recording.configmapstore import MEBIBYTE, ConfigMapStore
from leaderworkerset.recording.logsource import ApiLogs
from leaderworkerset.recording.recorder import Recorder
from localkube.kubelet.processes.runner import ContainerSpec, Exit
from localkube.kubelet.processes.simulatedrunner import Program, Script
from lwsctl.dashboard.livemodel import LiveModel, run_model
from lwsctl.diagnosis.logerrors import NO_LINES
from lwsctl.diagnosis.observed import Commands
from lwsctl.model.diagnosis import Diagnosis
from lwsctl.model.health import CALM, NEEDS_USER, Verdict
from lwsctl.observation.evidence import with_evidence

SECONDS: Final = 60
"""The seconds after the first failure at which each diagnosis must be correct."""

RUNS: Final = 4.0
"""The time in seconds until a program fails. The program is ready until then."""

LINES: Final = 120
"""The number of printed lines."""

NO_MEMORY: Final = "LWS-E070"
PROGRAMS: Final = {program.name: program for program in programs()}
NAMES: Final = [
    pytest.param(name, marks=[pytest.mark.long] * bool(number % 3)) for number, name in enumerate(sorted(PROGRAMS))
]
"""The programs, of which every third one is in the first tier."""


def prints(program: FailingLog) -> Script:
    """Return the script of leaders, which print the log and fail or exceed their memory. Workers continue to run."""
    exits = (RUNS, Exit(program.exit_code)) if program.cause != NO_MEMORY else None
    output = "\n".join([*program.lines[-LINES:], ""])

    def script(spec: ContainerSpec) -> Program:
        is_leader = spec.env.get("LWS_WORKER_INDEX") == "0"
        return Program(output=output, exits=exits) if is_leader else Program()

    return script


@asynccontextmanager
async def recorder(world: SimulatedCluster) -> AsyncIterator[None]:
    """Record failures in ConfigMaps, in the same way as the manager on a cluster."""
    store = ConfigMapStore(world.client, max_per_set=MEBIBYTE, max_total=MEBIBYTE, retention=timedelta(hours=1))
    await store.open()
    pods = Informer(world.client, Selection(PODS, label_selector=labels.NAME))
    own = f"{labels.NAME},!{labels.TEMPLATE_REVISION_HASH}"
    records = Informer(world.client, Selection(CONTROLLER_REVISIONS, label_selector=own))
    work = Recorder(world.client, store, ApiLogs(world.client), world.clock, reads_secrets=False)
    async with asyncio.TaskGroup() as group:
        ready = asyncio.Event()
        tasks = [group.create_task(task) for task in (work.run(pods, records, ready), pods.run(), records.run())]
        await ready.wait()
        yield
        for task in tasks:
            task.cancel()


def fault(program: FailingLog, diagnosis: Diagnosis) -> str:
    """Return the error in a diagnosis, or an empty string."""
    error = " ".join(program.error.line.split())[:200]
    text = f"{diagnosis.verdict} {diagnosis.code}: {diagnosis.sentence}"
    if diagnosis.verdict not in NEEDS_USER | CALM:
        return text
    if diagnosis.verdict in NEEDS_USER and diagnosis.code != program.cause:
        return text
    if program.error.is_certain and error not in f"{diagnosis.sentence} {diagnosis.evidence}":
        return text
    return "" if any("logs web/0/0" in step for step in diagnosis.steps) else f"{text}: {diagnosis.steps}"


async def polls(world: SimulatedCluster) -> list[Diagnosis]:
    """Explain the LeaderWorkerSet in each second, in the same way as a separate process."""
    found = []
    for _ in range(SECONDS):
        found.append(await with_evidence(world.client, await explain(world)))
        await asyncio.sleep(1)
    return found


def run(program: FailingLog, policy: str, identity: str, *, records: bool = True) -> list[Diagnosis]:
    """Return the diagnoses in the minute after the first failure of a program, optionally with a recorder."""
    found: list[Diagnosis] = []

    async def scenario(world: SimulatedCluster) -> None:
        lws = groups(replicas=1, size=2)
        lws["spec"]["leaderWorkerTemplate"]["restartPolicy"] = policy
        lws["spec"]["groupIdentity"] = identity
        if program.cause == NO_MEMORY:
            leader = deepcopy(lws["spec"]["leaderWorkerTemplate"]["workerTemplate"])
            leader["spec"]["containers"][0]["resources"] = {"limits": {"memory": "1Mi"}}
            lws["spec"]["leaderWorkerTemplate"]["leaderTemplate"] = leader
        async with recorder(world) if records else nullcontext():
            await world.create(lws)
            await first_failure(world)
            found.extend(await polls(world))

    simulate(scenario, Settings(managers=(SLOW,), others=SLOW, script=prints(program)))
    return found


@pytest.mark.parametrize("name", NAMES)
def test_failing_program_is_explained_at_every_second(name: str) -> None:
    program = PROGRAMS[name]
    assert len(program.lines) >= 100
    found = run(program, "RecreateGroupOnPodRestart", "Ordinal")
    assert len(found) == SECONDS
    faults = Counter(filter(None, (fault(program, diagnosis) for diagnosis in found)))
    assert not faults, faults
    assert sum(diagnosis.verdict in NEEDS_USER for diagnosis in found) > SECONDS / 2


@pytest.mark.parametrize("policy", ["None", "RecreateGroupOnPodRestart"])
def test_log_of_the_failed_pod_is_read_without_a_recorder(policy: str) -> None:
    """After a recreation, the log is lost, and a step describes how to preserve it."""
    program = PROGRAMS["torchrun-first"]
    crashing = [
        diagnosis for diagnosis in run(program, policy, "Ordinal", records=False) if diagnosis.code == "LWS-E071"
    ]
    named = [diagnosis for diagnosis in crashing if program.error.line in diagnosis.sentence]
    others = [diagnosis for diagnosis in crashing if diagnosis not in named]
    assert len(named) > SECONDS / 2
    assert all(diagnosis.steps[-1] == f"{NO_LINES}main" for diagnosis in others)
    assert bool(others) is (policy == "RecreateGroupOnPodRestart")


@pytest.mark.parametrize("name", ["vllm-oom", "torchrun-first"])
def test_cards_and_surveys_name_the_error_of_the_record(name: str) -> None:
    """The commands use the same logs and episodes as `lws explain`."""
    program, cards = PROGRAMS[name], list[Diagnosis]()

    async def scenario(world: SimulatedCluster) -> None:
        async with recorder(world):
            await world.create(groups(replicas=1, size=2))
            await first_failure(world)
            model = LiveModel(world.client, NAMESPACE, Commands(), world.clock)
            async with run_model(model), model.update_diagnoses():
                for _ in range(SECONDS):
                    await asyncio.sleep(1)
                    (item,) = model.snapshot.ordered
                    cards.append(item.diagnosis)

    simulate(scenario, Settings(managers=(SLOW,), others=SLOW, script=prints(program)))
    crashing = [card for card in cards if card.verdict in NEEDS_USER]
    assert len(crashing) > SECONDS / 2
    missing = Counter(card.sentence for card in crashing if program.error.line not in card.sentence)
    assert not missing, missing


@pytest.mark.parametrize(("policy", "identity"), [("None", "Ordinal"), ("RecreateGroupOnPodRestart", "Hash")])
def test_restart_policy_and_identity_keep_the_memory(policy: str, identity: str) -> None:
    """Containers restart in place, or each recreated group has a different random key."""
    program = PROGRAMS["torchrun-first"]
    found = run(program, policy, identity)
    assert {diagnosis.verdict for diagnosis in found} <= {Verdict.CRASHING, Verdict.PROGRESSING}
    assert all(program.error.line in diagnosis.sentence for diagnosis in found)
    assert sum(diagnosis.code == program.cause for diagnosis in found) > SECONDS / 2

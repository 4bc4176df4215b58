"""Tests thirty published LeaderWorkerSet manifests.

Each becomes ready in a rehearsal, or is rejected with the reason.
"""

import re
from pathlib import Path
from typing import Final, NamedTuple

import pytest
from tests.e2e.harness import Shell

pytestmark = [pytest.mark.slow, pytest.mark.sandbox]

PLACE: Final = Path(__file__).parent
REHEARSED: Final = ("--nodes", "auto", "--gpus", "auto", "--stub", "--until", "ready", "--timeout", "80")


class Form(NamedTuple):
    """A manifest that becomes ready, with its name pattern, the ranks of each group, and its assumptions."""

    name: str
    groups: int
    size: int
    assumed: str = ""


ENGINES: Final = {
    "vLLM on GPUs, a script of the image": Form(
        "vllm", 2, 2, "nvidia.com/gpu=8, vpc.amazonaws.com/efa=8 (for leaderworkerset/vllm leader"
    ),
    "vLLM on a slice of TPUs": Form("vllm-tpu", 1, 4, "label cloud.google.com/gke-nodepool=domain-"),
    "SGLang on the host network": Form("sglang", 1, 2),
    "TensorRT-LLM behind Triton": Form("triton", 1, 2, "skipping role/triton-pods: this cluster does not use RBAC"),
    "llama.cpp with RPC servers": Form("llamacpp", 1, 3),
    "Ray, a head and workers": Form("ray", 1, 3),
    "JetStream with Pathways": Form("jetstream", 1, 5, "gke-tpu-topology=2x4"),
}
STACKS: Final = {
    "Dynamo": Form("dynamo-decode", 1, 2),
    "llm-d": Form(
        "wide-ep-decode", 1, 2, "skipping inferencepool/deepseek: this cluster does not route external traffic"
    ),
    "AIBrix": Form(
        "aibrix-model", 2, 2, "skipping podautoscaler/aibrix-model: this cluster does not autoscale workloads"
    ),
    "a HorizontalPodAutoscaler": Form("scaled", 1, 2),
    "KEDA": Form(
        "scaled-by-events", 1, 2, "skipping scaledobject/scaled-by-events: this cluster does not autoscale workloads"
    ),
    "the Gateway API": Form(
        "routed", 1, 2, "skipping httproute/inference: this cluster does not route external traffic"
    ),
    "a ServiceMonitor": Form("watched", 1, 2, "skipping servicemonitor/watched: this cluster does not collect metrics"),
    "a DisaggregatedSet": Form(r"pd-0-\w+-prefill", 2, 1),
}
PLACES: Final = {
    "exclusive placement": Form("exclusive", 2, 2, "label topology.kubernetes.io/rack=domain-"),
    "subgroups with a topology of their own": Form("subgroups", 1, 4, "label example.com/slice=domain-"),
    "UniquePerReplica": Form("unique", 2, 2),
    "a volume claim": Form("claims", 1, 2, "storage class filestore creates directories"),
    "ephemeral volumes": Form("scratch", 1, 2, "storage class local-ssd creates directories"),
    "volumes of CSI drivers": Form("bucket", 1, 2),
    "volumes of NFS": Form("weights", 1, 2),
    "claims for devices": Form("claimed", 1, 2, "resourceclaimtemplate/gpus: each pod has 8 gpu.nvidia.com/device"),
}
TRAINERS_AND_SERVERS: Final = {
    "torchrun": Form("torchrun", 1, 2, "nvidia.com/gpu=8"),
    "KServe with HTTPS probes": Form("kserve", 1, 2),
    "NVIDIA NIM": Form("microservice", 1, 2, "volume claim microservice-store is an empty directory"),
    "MaxText on slices of TPUs": Form("maxtext", 2, 2, "label cloud.google.com/gke-nodepool=domain-"),
    "a queue and a topology of Kueue": Form("queued", 1, 2),
    "MPI with a launcher": Form("mpi", 1, 3, "nvidia.com/gpu=8, rdma/ib=1"),
}
FILES: Final = {
    "engines": ENGINES,
    "stacks": STACKS,
    "places-and-volumes": PLACES,
    "trainers-and-servers": TRAINERS_AND_SERVERS,
}
REFUSED: Final = {"a gang scheduler": ("refused-scheduler.yaml", "scheduler gang")}


def test_there_are_thirty_forms() -> None:
    titles = {title for forms in FILES.values() for title in forms}
    assert len(titles | {*REFUSED}) == 30
    assert {path.stem for path in (PLACE / "forms").iterdir()} == {*FILES}


@pytest.mark.parametrize("file", FILES)
def test_a_published_form_is_ready(shell: Shell, file: str) -> None:
    """The LeaderWorkerSets in a file share a cluster."""
    lines = shell.lws("run", "-f", str(PLACE / "forms" / f"{file}.yaml"), *REHEARSED).stderr.splitlines()
    assert re.fullmatch(r"\d+ ranks in \d+ groups are ready", lines[-1])
    assumed = [line for line in lines if line.startswith("assumed: ")]
    wrong = [
        title
        for title, form in FILES[file].items()
        if last_states(lines, form) != {f"{form.size} of {form.size}"}
        or len(groups(lines, form)) != form.groups
        or not any(form.assumed in line for line in assumed)
    ]
    assert wrong == [], "\n".join(lines)


@pytest.mark.parametrize("title", REFUSED)
def test_a_published_form_is_rejected_by_name(shell: Shell, title: str) -> None:
    file, name = REFUSED[title]
    refused = shell.lws("run", "-f", str(PLACE / "manifests" / file), *REHEARSED, code=1).stderr
    assert name in refused.splitlines()[-1]


def groups(lines: list[str], form: Form) -> dict[str, str]:
    """Return the last state of each group of a LeaderWorkerSet."""
    found = (re.match(rf"{form.name} group (\d+): (\d+ of \d+) ranks? ready", line) for line in lines)
    return {match[1]: match[2] for match in found if match}


def last_states(lines: list[str], form: Form) -> set[str]:
    """Return the last states of all groups of a LeaderWorkerSet."""
    return {*groups(lines, form).values()}

"""Tests that `explain`, `get`, `wait` and `history` show the first error in long container logs."""

import json
from functools import partial
from pathlib import Path

import pytest
from testkit.waiting import until
from tests.e2e.harness import SELDOM, LocalCluster, lws, python
from tests.explanations.failinglogs import FailingLog, programs

from kuberuntime.objects.meta import JSONObject

pytestmark = [pytest.mark.slow, pytest.mark.sandbox]

TRIED = ("vllm-oom", "vllm-old", "sglang-memory", "torchrun-first", "ten-chained", "ray-memory")


def container(program: FailingLog, directory: Path) -> JSONObject:
    """Return a container that prints the log of a program, and exits with the exit code of this program."""
    log = directory / f"{program.name}.log"
    log.write_text("".join(f"{line}\n" for line in program.lines))
    return python(f"import sys; print(open({str(log)!r}).read(), end=''); sys.exit({program.exit_code})")


def test_first_error_of_a_long_log_is_named_everywhere(cluster: LocalCluster, tmp_path: Path) -> None:
    tried = [program for program in programs() if program.name in TRIED]
    assert len(tried) == len(TRIED)
    cluster.apply(*(lws(program.name, container(program, tmp_path), restart="None") for program in tried))
    for program in tried:
        until(partial(is_explained, cluster, program), program.name, poll=SELDOM)
        error = " ".join(program.error.line.split())
        assert f": {error[:150]}" in cluster.ended("explain", program.name).stdout.partition("\n")[0]
        assert error[:60] in cluster.lws("get", program.name, "-o", "wide")
        until(partial(episodes, cluster, program), f"a record of {program.name}", poll=SELDOM)
        assert error[:150] in " ".join(episodes(cluster, program)[-1]["failure"].split())


def is_explained(cluster: LocalCluster, program: FailingLog) -> bool:
    """Return whether the explanation contains the container crash."""
    return program.cause in cluster.ended("explain", program.name).stdout


def episodes(cluster: LocalCluster, program: FailingLog) -> list[JSONObject]:
    """Return the recorded failures of the LeaderWorkerSet."""
    items: list[JSONObject] = json.loads(cluster.lws("history", program.name, "-o", "json"))["items"]
    return items

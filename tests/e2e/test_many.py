"""Tests hundreds of pods. Running pods are not restarted, and summaries are correct while pods change."""

import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

import pytest
from bench.processes import processes
from tests.e2e.harness import SELDOM, LocalCluster, Shell, lws, ranks

pytestmark = [pytest.mark.slow, pytest.mark.sandbox]

STUB = {"name": "main", "image": "vllm/vllm-openai", "ports": [{"containerPort": 8000}]}


def seen(cluster: LocalCluster) -> Iterator[tuple[int, int]]:
    """Yield READY and DESIRED repeatedly. Fail if a headline contradicts the rows below it without a note."""
    while True:
        told = cluster.shell.lws("get", f"--local={cluster.name}", "many")
        headline, table = told.stdout.splitlines()[1], told.stdout.splitlines()[3:]
        name, ready, desired, up_to_date = headline.split()[:4]
        at = {column: table[0].index(column) for column in ("READY", "STATE", "RESTARTS", "REVISION")} if table else {}
        rows = [line for line in table[1:] if re.match(r"[\d,-]+ ", line)]
        whole, revisions = 0, Counter[str]()
        for row in rows:
            number = count(row[: at["READY"]].strip())
            whole += number if row[at["STATE"] : at["RESTARTS"]].strip() == "ready" else 0
            revisions[row[at["REVISION"] :].split()[0]] += number
        del revisions["-"]
        agrees = int(ready) == whole and (
            len(revisions) < 2 or int(up_to_date) in {*revisions.values(), sum(revisions.values())}
        )
        assert name == "many"
        assert agrees or "the status of many is outdated: according to its pods, " in told.stderr, (
            f"{told.stdout}{told.stderr}"
        )
        yield int(ready), int(desired)
        time.sleep(SELDOM)


def count(places: str) -> int:
    """Return the number of groups in a column value such as 0-3,7."""
    ends = [part.split("-") for part in places.split(",")]
    return sum(int(end[-1]) - int(end[0]) + 1 for end in ends)


@pytest.mark.parametrize(("groups", "size"), [(60, 2), (200, 1)])
def test_summary_equals_the_rows_while_groups_change(shell: Shell, groups: int, size: int) -> None:
    shell.lws("up", "many", "--detach", "--stub")
    cluster = LocalCluster(shell, "many")
    rolling = {"rolloutStrategy": {"type": "RollingUpdate", "rollingUpdateConfiguration": {"maxUnavailable": "20%"}}}
    cluster.apply(lws("many", STUB, replicas=groups, size=size, **rolling))
    launcher = processes(int((shell.state / "many" / "lock").read_text()))[1]
    until(cluster, lambda ready, _: ready == groups)
    assert {rank["restarts"] for rank in ranks(cluster.view("many")).values()} == {0}
    assert Path(f"/proc/{launcher}/comm").read_text().strip() == "kube-launcher"
    cluster.apply(lws("many", STUB | {"image": "vllm/vllm-openai:2"}, replicas=groups, size=size, **rolling))
    assert min(ready for ready, _ in islice(seen(cluster), 12)) >= groups * 4 // 5, "untouched groups stay ready"
    cluster.lws("scale", "many", f"--replicas={groups // 5}")
    until(cluster, lambda ready, desired: ready == desired == groups // 5)
    told = shell.lws("explain", "--local=many", "many").stdout
    assert f"{groups // 5} of {groups // 5} groups ready" in told or re.search(r" is (progressing|starting)\b", told)


def until(cluster: LocalCluster, wanted: Callable[[int, int], bool]) -> None:
    assert next(found for found in islice(seen(cluster), 1000) if wanted(*found))

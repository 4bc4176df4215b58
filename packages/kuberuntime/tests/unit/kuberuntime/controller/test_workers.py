"""Tests that workers process keys after a success, after a failure, and while they are delayed."""

import asyncio
from collections import Counter

import pytest
from structlog.testing import capture_logs
from testkit.virtualtime import run

from kuberuntime.controller.executionerrors import ExecutionError, RequeueError
from kuberuntime.controller.workqueue import WorkQueue, run_workers
from kuberuntime.errors import ConflictError, KubeError


@pytest.mark.virtual_time
@pytest.mark.parametrize("error", [RequeueError("stale", ()), KubeError("refused"), RuntimeError("a bug")], ids=repr)
async def test_failed_key_is_retried_with_back_off(error: Exception) -> None:
    """A key is retried after any exception (R-ARC-9)."""
    times: list[float] = []

    async def work(_: str) -> None:
        times.append(asyncio.get_running_loop().time())
        if len(times) < 4:
            raise error

    queue = WorkQueue[str]()
    queue.add("a")
    task = asyncio.ensure_future(run_workers(queue, work, name="test", workers=1))
    await asyncio.sleep(1)
    task.cancel()
    assert times == pytest.approx([0, 0.005, 0.015, 0.035])


def test_conflict_is_logged_as_warning_only_if_it_persists() -> None:
    conflict = ConflictError({"code": 409, "reason": "Conflict", "message": "changed meanwhile"})

    async def work(_: str) -> None:
        raise ExecutionError("apply web", ()) from conflict

    async def scenario() -> None:
        queue = WorkQueue[str]()
        queue.add("a")
        task = asyncio.ensure_future(run_workers(queue, work, name="test", workers=1))
        await asyncio.sleep(3)
        task.cancel()

    with capture_logs() as logged:
        run(scenario())
    levels = [entry["log_level"] for entry in logged if entry["event"] == "failed to reconcile"]
    assert levels == ["debug"] * 8 + ["warning"] * 2


@pytest.mark.virtual_time
async def test_held_key_counts_neither_as_success_nor_failure() -> None:
    held = {"a"}
    looks: Counter[str] = Counter()

    async def work(key: str) -> None:
        looks[key] += 1

    queue = WorkQueue[str]()
    queue.add_rate_limited("a")
    queue.add("b")
    task = asyncio.ensure_future(run_workers(queue, work, name="test", workers=2, is_held=held.__contains__))
    await asyncio.sleep(1)
    assert looks == {"b": 1}
    assert queue.add_rate_limited("a") == pytest.approx(0.01)
    held.clear()
    await asyncio.sleep(1)
    assert looks == {"a": 1, "b": 1}
    task.cancel()


@pytest.mark.virtual_time
async def test_workers_stop_when_the_queue_shuts_down() -> None:
    async def work(_: str) -> None:
        raise AssertionError

    queue = WorkQueue[str]()
    queue.shut_down()
    await run_workers(queue, work, name="test", workers=3)

"""Tests the deadlines, undo actions and errors of the fault controller. Effects are only recorded."""

import asyncio
import json
from collections.abc import Awaitable, Callable

from testkit.virtualtime import run

from kuberuntime.client.transport import Request
from kuberuntime.clock import SystemClock
from kuberuntime.errors import ConnectionFailedError
from localkube.faults.effects import Undo
from localkube.faults.fault import Fault, FaultError, FaultKind
from localkube.faults.faultmanager import MOST, FaultManager
from localkube.kubelet.processes.runner import StartError

KILL = Fault(kind=FaultKind.KILL, seconds=0.0, targets=("default/web-0",))


class Noting:
    """Records the start of each fault, and its end with a minus sign. Raises `problem` when a fault ends."""

    def __init__(self) -> None:
        self.noted: list[str] = []
        self.problem: Exception | None = None

    async def begin(self, fault: Fault) -> Undo:
        """Record the start of a fault."""
        if fault.targets == ("default/nobody",):
            raise FaultError("pod default/nobody does not exist")
        self.noted.append(fault.targets[0])

        async def undo() -> None:
            self.noted.append(f"-{fault.targets[0]}")
            if self.problem:
                raise self.problem

        return undo


def keeping(scenario: Callable[[FaultManager, Noting], Awaitable[None]]) -> Noting:
    """Run a scenario with a fault controller in virtual time. Return the records."""
    effect = Noting()

    async def main() -> None:
        keeper = FaultManager(dict.fromkeys(FaultKind, effect.begin), SystemClock())
        running = asyncio.create_task(keeper.run())
        await asyncio.sleep(0)  # it begins
        await scenario(keeper, effect)
        running.cancel()
        await asyncio.wait([running])

    run(main())
    return effect


def stop(name: str, seconds: float) -> Fault:
    """Return a fault that affects a pod."""
    return Fault(kind=FaultKind.STOP, seconds=seconds, targets=(f"default/{name}",))


async def ask(keeper: FaultManager, method: str, path: str = "", body: object = None) -> tuple[int, dict[str, object]]:
    """Send a request. Return the status code and the decoded body."""
    response = await keeper.serve(Request(method, f"/faults{path}", body=json.dumps(body).encode()), path)
    return response.status, json.loads(response.body)


def test_each_fault_expires_at_its_own_deadline() -> None:
    async def scenario(keeper: FaultManager, effect: Noting) -> None:
        await keeper.begin(stop("slow", 30))
        await keeper.begin(stop("fast", 10))
        await asyncio.sleep(11)
        assert effect.noted == ["default/slow", "default/fast", "-default/fast"]
        await asyncio.sleep(20)
        assert effect.noted[-1] == "-default/slow"

    assert len(keeping(scenario).noted) == 4


def test_faults_are_undone_newest_first_at_the_end() -> None:
    async def scenario(keeper: FaultManager, _: Noting) -> None:
        await keeper.begin(stop("a", 100))
        await keeper.begin(stop("b", 100))

    assert keeping(scenario).noted[2:] == ["-default/b", "-default/a"]


def test_fault_with_a_deleted_target_ends() -> None:
    async def scenario(keeper: FaultManager, effect: Noting) -> None:
        for problem in (StartError("the container is not running"), ConnectionFailedError("no")):
            effect.problem = problem
            await keeper.begin(stop("a", 1))
            await asyncio.sleep(2)
        effect.problem = None
        await keeper.begin(stop("b", 1))
        await asyncio.sleep(2)
        assert effect.noted[-1] == "-default/b"

    keeping(scenario)


def test_requests_begin_list_and_undo_faults() -> None:
    async def scenario(keeper: FaultManager, effect: Noting) -> None:
        fault = {"kind": "stop", "seconds": 60, "targets": ["default/a"]}
        assert await ask(keeper, "POST", body=fault) == (201, {"kind": "Fault", "number": 1})
        await ask(keeper, "POST", body=fault)
        _, listed = await ask(keeper, "GET")
        assert listed["items"][0] == {  # type: ignore[index]
            "number": 1,
            "kind": "stop",
            "targets": ["default/a"],
            "secondsLeft": 60.0,
        }
        _, left = await ask(keeper, "DELETE", "/1")
        assert [one["number"] for one in left["items"]] == [2]  # type: ignore[attr-defined]
        assert await ask(keeper, "DELETE", "/1") == (200, left)
        assert (await ask(keeper, "DELETE"))[1]["items"] == []
        assert effect.noted == ["default/a", "default/a", "-default/a", "-default/a"]

    keeping(scenario)


def test_rejected_fault_states_the_reason() -> None:
    async def scenario(keeper: FaultManager, _: Noting) -> None:
        status, refused = await ask(keeper, "POST", body={"kind": "stop", "seconds": 1, "targets": ["default/nobody"]})
        assert (status, refused["message"]) == (400, "pod default/nobody does not exist")
        for _number in range(MOST):
            await keeper.begin(stop("a", 100))
        status, refused = await ask(keeper, "POST", body={"kind": "stop", "seconds": 1, "targets": ["default/a"]})
        assert (status, refused["message"]) == (400, f"{MOST} faults are already active. Undo a fault first")

    keeping(scenario)

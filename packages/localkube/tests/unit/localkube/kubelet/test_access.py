"""Tests pod logs, commands in pods, and connections to pods on a simulated machine in virtual time."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.kubeletpods import container, pod, status_of
from tests.unit.localkube.kubelet.harness import Machine, ModeledKubelet, cluster

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from localkube.kubelet.processes.runner import ContainerSpec, Exit
from localkube.kubelet.processes.simulatedrunner import Program
from localkube.podaccess import LogOptions, NodeError

pytestmark = pytest.mark.virtual_time


async def logs(it: ModeledKubelet, found: JSONObject, name: str = "main", **options: Any) -> bytes:
    return b"".join([piece async for piece in it.kubelet.logs(found, LogOptions(container=name, **options))])


def counting(*programs: Program) -> Any:
    """Run the commands one after the other. The last command runs until it is stopped."""
    left = list(programs)
    return lambda _: left.pop(0) if len(left) > 1 else left[0]


async def test_log_of_a_running_container_is_followed_to_its_end(tmp_path: Path) -> None:
    program = Program(output="one\ntwo\n", exits=(10, Exit(0)))
    async with cluster(Machine(directory=tmp_path, script=lambda _: program)) as it:
        await it.create(pod(restartPolicy="Never"))
        found = await it.ready()
        assert await logs(it, found) == b"one\ntwo\n"
        assert await logs(it, found, follow=True) == b"one\ntwo\n"
        assert asyncio.get_running_loop().time() == pytest.approx(10, abs=0.1)


async def test_log_of_the_previous_run_is_kept(tmp_path: Path) -> None:
    programs = (Program(output="first\n", exits=(1, Exit(1))), Program(output="second\n"))
    async with cluster(Machine(directory=tmp_path, script=counting(*programs))) as it:
        created = await it.create(pod())
        await it.ready()
        with pytest.raises(NodeError, match='previous terminated container "main" in pod "web-0" not found'):
            await logs(it, created, previous=True)
        found = await it.until(lambda found: status_of(found)["restartCount"] == 1)
        assert await logs(it, found) == b"second\n"
        assert await logs(it, found, previous=True) == b"first\n"


async def test_log_of_a_deleted_pod_is_the_previous_one_of_the_next(tmp_path: Path) -> None:
    programs = (Program(output="no such model\n", exits=(1, Exit(1))), Program(output="second\n"), Program())
    async with cluster(Machine(directory=tmp_path, script=counting(*programs))) as it:
        first = await it.create(pod(restartPolicy="Never"))
        await it.until(lambda found: meta.status(found).get("phase") == "Failed")
        for said in (b"no such model\n", b"second\n"):
            await it.delete(grace_period=0)
            await it.gone()
            new = await it.create(pod(restartPolicy="Never"))
            assert meta.uid(new) != meta.uid(first)
            assert await logs(it, new, previous=True) == said
            assert await logs(it, new, previous=True, tail_lines=0) == b""
            await it.ready()
        with pytest.raises(NodeError, match='previous terminated container "main" in pod "web-1" not found'):
            await logs(it, await it.create(pod(name="web-1")), previous=True)


async def test_container_in_back_off_shows_its_last_log(tmp_path: Path) -> None:
    program = Program(output="oops\n", exits=(1, Exit(1)))
    async with cluster(Machine(directory=tmp_path, script=lambda _: program)) as it:
        await it.create(pod())
        found = await it.until(
            lambda found: status_of(found)["state"].get("waiting", {}).get("reason") == "CrashLoopBackOff"
        )
        assert await logs(it, found) == await logs(it, found, previous=True) == b"oops\n"


async def test_unstarted_container_has_no_log(tmp_path: Path) -> None:
    async with cluster(Machine(directory=tmp_path)) as it:
        found = await it.create(pod(container(command=["no-such-program"])))
        waiting = await it.until(lambda found: "waiting" in status_of(found).get("state", {}))
        with pytest.raises(NodeError, match="is waiting to start: "):
            await logs(it, waiting)
        with pytest.raises(NodeError, match='container "other" is not in pod "web-0"'):
            await logs(it, found, "other")


async def test_end_of_the_log_becomes_the_message_by_policy(tmp_path: Path) -> None:
    program = Program(output="before\nthe reason\n", exits=(1, Exit(1)))
    main = container(terminationMessagePolicy="FallbackToLogsOnError")
    async with cluster(Machine(directory=tmp_path, script=lambda _: program)) as it:
        await it.create(pod(main, restartPolicy="Never"))
        found = await it.until(lambda found: "terminated" in status_of(found)["state"])
        assert status_of(found)["state"]["terminated"]["message"] == "before\nthe reason\n"


@pytest.mark.parametrize(
    ("code", "quote", "message"),
    [(1, True, "line 2\nline 3\n"), (1, False, None), (0, True, None)],
    ids=["quoted", "as a cluster has it", "success"],
)
async def test_failures_quote_the_end_of_the_log_if_enabled(
    tmp_path: Path, code: int, quote: bool, message: str | None
) -> None:
    output = "".join(f"line {number}\n" for number in range(4))
    program = Program(output=f"{'x' * 2000}\n{output}", exits=(1, Exit(code)))
    async with cluster(Machine(directory=tmp_path, script=lambda _: program, quote_failures=quote)) as it:
        await it.create(pod(restartPolicy="Never"))
        found = await it.until(lambda found: "terminated" in status_of(found)["state"])
        ended = status_of(found)["state"]["terminated"]
        assert (ended.get("message", "").endswith(message) if message else "message" not in ended) is True
        assert len(ended.get("message", "")) <= 4096


async def test_termination_message_file_becomes_the_message(tmp_path: Path) -> None:
    def script(spec: ContainerSpec) -> Program:
        mount = next(mount for mount in spec.mounts if mount.target == "/dev/termination-log")
        mount.source.write_text("last words")
        return Program(exits=(1, Exit(3)))

    async with cluster(Machine(directory=tmp_path, script=script)) as it:
        await it.create(pod(restartPolicy="Never"))
        found = await it.until(lambda found: "terminated" in status_of(found)["state"])
        assert status_of(found)["state"]["terminated"]["message"] == "last words"


@pytest.mark.parametrize("tty", [False, True])
async def test_command_runs_in_a_container(tmp_path: Path, tty: bool) -> None:
    program = Program(commands={("check", "it"): (5, 7)})
    async with cluster(Machine(directory=tmp_path, script=lambda _: program)) as it:
        await it.create(pod())
        found = await it.ready()
        session = await it.kubelet.exec(found, "main", ("check", "it"), stdin=True, tty=tty)
        assert (await session.stdout.readline()).strip() == b"check it"
        assert (session.stderr is None) is tty
        session.resize(80, 24)
        await session.close_stdin()
        assert await session.wait() == 7
        await session.kill()


async def test_command_can_be_killed(tmp_path: Path) -> None:
    program = Program(commands={("hang",): (1000, 0)})
    async with cluster(Machine(directory=tmp_path, script=lambda _: program)) as it:
        await it.create(pod())
        session = await it.kubelet.exec(await it.ready(), "main", ("hang",), stdin=False, tty=False)
        await session.kill()
        assert await session.wait() == 137
        assert asyncio.get_running_loop().time() < 1


async def test_command_needs_a_running_container(tmp_path: Path) -> None:
    async with cluster(Machine(directory=tmp_path)) as it:
        found = await it.create(pod(container(command=["no-such-program"])))
        await it.until(lambda found: "message" in status_of(found)["state"].get("waiting", {}))
        with pytest.raises(NodeError, match='container "main" in pod "web-0" is not running'):
            await it.kubelet.exec(found, "main", ("x",), stdin=False, tty=False)


async def test_attached_client_receives_the_end_of_the_container(tmp_path: Path) -> None:
    program = Program(output="before\n", exits=(10, Exit(1)))
    async with cluster(Machine(directory=tmp_path, script=lambda _: program)) as it:
        await it.create(pod(restartPolicy="Never"))
        found = await it.ready()
        assert [piece async for piece in it.kubelet.attach(found, "main")] == []
        assert asyncio.get_running_loop().time() == pytest.approx(10, abs=0.1)
        await it.until(lambda found: "terminated" in status_of(found)["state"])
        with pytest.raises(NodeError, match='container "main" in pod "web-0" is not running'):
            await anext(it.kubelet.attach(found, "main"))


@pytest.mark.parametrize("network", ["isolated", "shared"])
async def test_port_inside_a_pod_is_reachable(tmp_path: Path, network: Any) -> None:
    listening = Machine(directory=tmp_path, network=network, script=lambda _: Program(listens={8080: 0}))
    async with cluster(listening) as it:
        await it.create(pod())
        found = await it.ready()
        reader, writer = await it.kubelet.dial(found, 8080)
        writer.write(b"GET / HTTP/1.1\r\n\r\n")
        assert (await reader.readline()).startswith(b"HTTP/1.1 200")
        writer.close()
        with pytest.raises(NodeError, match=r"127.0.0.1:9: Connection refused"):
            await it.kubelet.dial(found, 9)


async def test_missing_pod_is_unreachable(tmp_path: Path) -> None:
    async with cluster(Machine(directory=tmp_path)) as it:
        with pytest.raises(NodeError, match='pod "web-0" is not running'):
            await it.kubelet.dial({**pod(), "metadata": {"name": "web-0", "uid": "no"}}, 80)


async def test_broken_pod_worker_rejects_requests(tmp_path: Path) -> None:
    """The pod is retried after ten seconds. None of its containers runs before."""
    starts = iter(range(3))

    def script(spec: ContainerSpec) -> Program:
        if spec.argv[-1] != "broken":
            return Program(output="one\n")
        if next(starts) == 1:
            raise RuntimeError("a fault")
        return Program(exits=(1, Exit(1)))

    async with cluster(Machine(directory=tmp_path, script=script)) as it:
        await it.create(pod(container(), container("second", command=["sh", "broken"])))
        found = await it.ready()
        following = asyncio.create_task(logs(it, found, follow=True))
        await asyncio.sleep(5)
        assert it.events.reasons().count("FailedSync") == 1
        with pytest.raises(NodeError, match="is not running"):
            await it.kubelet.exec(found, "main", ("true",), stdin=False, tty=False)
        async with asyncio.timeout(1):
            assert await following == await logs(it, found, follow=True) == b"one\n"

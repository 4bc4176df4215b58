"""Tests pod logs, commands in pods, and port forwarding."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

import aiohttp
import pytest
from tests.unit.localkube.apiserver.frontend.spdyframes import data_frame, syn_reply, syn_stream
from tests.unit.localkube.apiserver.frontend.test_http import TOKEN, Door, door
from tests.unit.localkube.apiserver.harness import PODS, Api, StoppedClock, pod

from kuberuntime.objects.meta import JSONObject
from localkube.apiserver.frontend.spdy import Frame, FrameReader, FrameWriter
from localkube.podaccess import ExecSession, LogOptions, NodeError, Stream, UsageReport

EXEC = f"{PODS}/web/exec?command=cat&stdin=true&stdout=true"
TUNNEL = ("SPDY/3.1+portforward.k8s.io",)
V4, V5 = ("v4.channel.k8s.io",), ("v5.channel.k8s.io", "v4.channel.k8s.io")


class EchoSession:
    """A command that copies its input, reports the end of the input on stderr, and exits with code 3."""

    def __init__(self) -> None:
        self.stdout = asyncio.StreamReader()
        self.stderr: asyncio.StreamReader | None = asyncio.StreamReader()
        self.size = (0, 0)
        self.killed = asyncio.Event()
        self._ended = asyncio.Event()

    async def write(self, data: bytes) -> None:
        self.stdout.feed_data(data)

    async def close_stdin(self) -> None:
        assert self.stderr is not None
        self.stderr.feed_data(b"bye")
        self.stdout.feed_eof()
        self.stderr.feed_eof()
        self._ended.set()

    def resize(self, columns: int, rows: int) -> None:
        self.size = (columns, rows)

    async def wait(self) -> int:
        await self._ended.wait()
        return 3

    async def kill(self) -> None:
        self.killed.set()
        if not self._ended.is_set():
            await self.close_stdin()


class FakeNode:
    """A node with one log, one command and one port."""

    def __init__(self) -> None:
        self.options: LogOptions | None = None
        self.session = EchoSession()
        self.port = 0
        self.ending, self.left = asyncio.Event(), asyncio.Event()

    async def logs(self, pod: JSONObject, options: LogOptions) -> AsyncIterator[bytes]:
        self.options = options
        if options.previous:
            raise NodeError('previous terminated container "main" in pod "web" not found')
        yield b"one\n"
        yield b"two\n"

    async def attach(self, pod: JSONObject, container: str) -> AsyncIterator[tuple[Stream, bytes]]:
        if container == "side":
            raise NodeError('container "side" in pod "web" is not running')
        try:
            yield "stdout", b"out"
            yield "stderr", b"err"
            await self.ending.wait()
        finally:
            self.left.set()

    async def exec(
        self, pod: JSONObject, container: str, command: tuple[str, ...], *, stdin: bool, tty: bool
    ) -> ExecSession:
        if command != ("cat",):
            raise NodeError(f"{command[0]}: not found in container {container}")
        return self.session

    async def dial(self, pod: JSONObject, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self.port)

    async def measure(self) -> UsageReport:
        return UsageReport(datetime(2026, 1, 1, tzinfo=UTC), 1.0, {})


def run(scenario: Callable[[Door, FakeNode], Awaitable[None]]) -> None:
    async def opened() -> None:
        async with asyncio.timeout(10), door() as one:
            node = FakeNode()
            one.api.attach_node(node)
            await Api(one.api, StoppedClock()).create(PODS, pod(nodeName="node-0"))
            await scenario(one, node)

    asyncio.run(opened())


def connect(door: Door, path: str, protocols: tuple[str, ...]) -> Any:
    url = f"ws://127.0.0.1:{door.port}{path}"
    return door.session.ws_connect(url, protocols=protocols, headers={"authorization": f"Bearer {TOKEN}"})


def test_log_is_streamed_with_its_options() -> None:
    async def scenario(door: Door, node: FakeNode) -> None:
        api = Api(door.api, StoppedClock())
        answer = await api.get(f"{PODS}/web/log", follow="true", tailLines="5", limitBytes="100", timestamps="true")
        assert (answer.headers["content-type"], answer.body) == ("text/plain", b"one\ntwo\n")
        expected = LogOptions(container="main", follow=True, timestamps=True, tail_lines=5, limit_bytes=100)
        assert node.options == expected

    run(scenario)


def test_refusal_of_the_node_is_returned_as_a_status() -> None:
    async def scenario(door: Door, node: FakeNode) -> None:
        api = Api(door.api, StoppedClock())
        answer = await api.get(f"{PODS}/web/log", previous="true")
        text = 'previous terminated container "main" in pod "web" not found'
        assert answer.refusal == (400, "BadRequest", text)
        other = await api.get(f"{PODS}/web/log", container="side")
        assert other.refusal == (400, "BadRequest", "container side is not valid for pod web")
        negative = await api.get(f"{PODS}/web/log", tailLines="-1")
        assert negative.refusal[:2] == (422, "Invalid")
        code, body = await door.send("GET", f"{PODS}/web/exec?command=cat")
        assert (code, body["reason"]) == (400, "BadRequest")

    run(scenario)


def test_ambiguous_container_must_be_named() -> None:
    async def scenario(door: Door, node: FakeNode) -> None:
        api = Api(door.api, StoppedClock())
        containers = [{"name": "a", "image": "i"}, {"name": "b", "image": "i"}]
        await api.create(PODS, pod("two", containers=containers, nodeName="node-0"))
        answer = await api.get(f"{PODS}/two/log")
        text = "a container name must be specified for pod two, choose one of: [a b]"
        assert answer.refusal == (400, "BadRequest", text)
        assert (await api.get(f"{PODS}/two/log", container="b")).code == 200

    run(scenario)


def test_log_of_an_unscheduled_pod_is_empty() -> None:
    async def scenario(door: Door, node: FakeNode) -> None:
        api = Api(door.api, StoppedClock())
        await api.create(PODS, pod("waiting"))
        assert (await api.get(f"{PODS}/waiting/log")).body == b""

    run(scenario)


def test_command_uses_channels_and_reports_its_exit_code() -> None:
    async def scenario(door: Door, node: FakeNode) -> None:
        async with connect(door, EXEC, V5) as socket:
            assert socket.protocol == "v5.channel.k8s.io"
            await socket.send_bytes(b"\x04" + json.dumps({"Width": 80, "Height": 24}).encode())
            await socket.send_bytes(b"\x00hello")
            assert await socket.receive_bytes() == b"\x01"
            assert await socket.receive_bytes() == b"\x01hello"
            assert node.session.size == (80, 24)
            await socket.send_bytes(b"\xff\x00")
            assert await socket.receive_bytes() == b"\x02bye"
            last = await socket.receive_bytes()
            status = json.loads(last[1:])
            assert (last[0], status["reason"]) == (3, "NonZeroExitCode")
            assert status["details"]["causes"] == [{"reason": "ExitCode", "message": "3"}]
            assert (await socket.receive()).type is aiohttp.WSMsgType.CLOSE

    run(scenario)


def test_disconnected_client_stops_the_command() -> None:
    async def scenario(door: Door, node: FakeNode) -> None:
        async with connect(door, EXEC, V4):
            pass
        await node.session.killed.wait()

    run(scenario)


@pytest.mark.parametrize(("tty", "channels"), [("false", (1, 2)), ("true", (1, 1))])
def test_attached_client_sees_the_output_to_its_end(tty: str, channels: tuple[int, int]) -> None:
    async def scenario(door: Door, node: FakeNode) -> None:
        async with connect(door, f"{PODS}/web/attach?stdout=true&stderr=true&tty={tty}", V5) as socket:
            assert await socket.receive_bytes() == b"\x01"
            assert await socket.receive_bytes() == bytes((channels[0],)) + b"out"
            assert await socket.receive_bytes() == bytes((channels[1],)) + b"err"
            await socket.send_bytes(b"\x04{}")
            node.ending.set()
            assert await socket.receive_bytes() == b'\x03{"metadata":{},"status":"Success"}'
            assert (await socket.receive()).type is aiohttp.WSMsgType.CLOSE

    run(scenario)


def test_disconnected_attached_client_is_forgotten() -> None:
    async def scenario(door: Door, node: FakeNode) -> None:
        async with connect(door, f"{PODS}/web/attach", V5) as socket:
            await socket.receive_bytes()
        await node.left.wait()

    run(scenario)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (
            f"{PODS}/web/attach?stdin=true",
            "containers do not have standard input on a local cluster. Attach without --stdin",
        ),
        (f"{PODS}/two/attach?container=side&stderr=true", 'container "side" in pod "web" is not running'),
    ],
)
def test_attach_error_is_sent_on_the_error_channel(path: str, text: str) -> None:
    async def scenario(door: Door, node: FakeNode) -> None:
        containers = [{"name": "main", "image": "i"}, {"name": "side", "image": "i"}]
        await Api(door.api, StoppedClock()).create(PODS, pod("two", containers=containers, nodeName="node-0"))
        async with connect(door, path, V5) as socket:
            if "stderr" in path:
                assert await socket.receive_bytes() == b"\x02"
            told = await socket.receive_bytes()
            assert told[0] == 3
            assert json.loads(told[1:])["message"].startswith(text)

    run(scenario)


def test_start_error_of_a_command_is_sent_on_the_error_channel() -> None:
    """If the server rejected the upgrade, kubectl would assume that WebSockets are not supported, and use SPDY."""

    async def scenario(door: Door, node: FakeNode) -> None:
        async with connect(door, f"{PODS}/web/exec?command=nothing&stderr=true", V5) as socket:
            assert await socket.receive_bytes() == b"\x02"
            told = await socket.receive_bytes()
            status = json.loads(told[1:])
            assert (told[0], status["status"]) == (3, "Failure")
            assert status["message"] == "nothing: not found in container main"
            assert (await socket.receive()).type is aiohttp.WSMsgType.CLOSE

    run(scenario)


@pytest.mark.parametrize(
    ("subresource", "variable"),
    [
        ("portforward", "KUBECTL_PORT_FORWARD_WEBSOCKETS"),
        ("exec?command=cat", "KUBECTL_REMOTE_COMMAND_WEBSOCKETS"),
        ("attach", "KUBECTL_REMOTE_COMMAND_WEBSOCKETS"),
    ],
)
def test_spdy_without_websocket_error_explains_what_to_use(subresource: str, variable: str) -> None:
    async def scenario(door: Door, node: FakeNode) -> None:
        headers = {"upgrade": "SPDY/3.1", "connection": "Upgrade"}
        code, body = await door.send("POST", f"{PODS}/web/{subresource}", headers=headers)
        assert code == 400
        text = f"does not support SPDY for this request. Use kubectl 1.31 or later, or set {variable}=true"
        assert body["message"].endswith(text)

    run(scenario)


@pytest.mark.parametrize(
    ("path", "protocols"),
    [
        (f"{PODS}/web/exec?command=cat&container=side", V5),
        (f"{PODS}/web/exec", V5),
        (f"{PODS}/web/exec?command=cat", ("v3.channel.k8s.io",)),
        (f"{PODS}/web/portforward", V4),
        (f"{PODS}/web/portforward?ports=0", V4),
        (f"{PODS}/web/log", V4),
    ],
    ids=["container", "no command", "protocol", "no ports", "port", "not a stream"],
)
def test_invalid_upgrade_is_rejected_before_the_handshake(path: str, protocols: tuple[str, ...]) -> None:
    async def scenario(door: Door, node: FakeNode) -> None:
        with pytest.raises(aiohttp.WSServerHandshakeError) as caught:
            async with connect(door, path, protocols):
                pass
        assert caught.value.status == 400

    run(scenario)


STREAMS = [EXEC, f"{PODS}/web/attach?stdout=true", f"{PODS}/web/portforward?ports=8080"]


@pytest.mark.parametrize("path", STREAMS)
@pytest.mark.parametrize(
    ("accept", "code"),
    [("application/json", 406), ("text/*", 406), ("*/*;q=0.1, text/html", 101), ("text/html, */*", 101), ("", 101)],
)
def test_upgrade_requires_any_media_type_like_a_kubelet(path: str, accept: str, code: int) -> None:
    async def scenario(door: Door, node: FakeNode) -> None:
        key = {"connection": "Upgrade", "upgrade": "websocket", "sec-websocket-version": "13"}
        key |= {"sec-websocket-key": "AAAAAAAAAAAAAAAAAAAAAA==", "sec-websocket-protocol": V4[0]}
        headers = key | {"authorization": f"Bearer {TOKEN}", "accept": accept}
        async with door.session.get(f"http://127.0.0.1:{door.port}{path}", headers=headers) as answer:
            assert answer.status == code
            if code == 406:
                assert await answer.text() == "406: Not Acceptable\n\nAvailable representations: "
                assert answer.content_type == "text/plain"
            answer.close()

    run(scenario)


def test_port_is_forwarded_in_both_directions() -> None:
    async def scenario(door: Door, node: FakeNode) -> None:
        async def shout(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write((await reader.read(100)).upper())
            await writer.drain()
            writer.close()

        async with await asyncio.start_server(shout, "127.0.0.1", 0) as server:
            node.port = server.sockets[0].getsockname()[1]
            async with connect(door, f"{PODS}/web/portforward?ports=8080", V4) as socket:
                assert await socket.receive_bytes() == b"\x00\x90\x1f"
                assert await socket.receive_bytes() == b"\x01\x90\x1f"
                await socket.send_bytes(b"\x00hello")
                assert await socket.receive_bytes() == b"\x00HELLO"
                assert (await socket.receive()).type is aiohttp.WSMsgType.CLOSE

    run(scenario)


def test_closed_port_is_reported_on_the_error_channel() -> None:
    async def scenario(door: Door, node: FakeNode) -> None:
        node.port = 1
        async with connect(door, f"{PODS}/web/portforward?ports=8080", V4) as socket:
            frames = [await socket.receive_bytes() for _ in range(3)]
            assert frames[2].startswith(b"\x01error forwarding port 8080: ")

    run(scenario)


def test_tunnel_frames_may_span_several_messages() -> None:
    async def shout(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write((await reader.read()).upper())
        await writer.drain()
        writer.close()

    async def scenario(door: Door, node: FakeNode) -> None:
        async with await asyncio.start_server(shout, "127.0.0.1", 0) as server:
            node.port = server.sockets[0].getsockname()[1]
            async with connect(door, f"{PODS}/web/portforward", TUNNEL) as socket:
                assert socket.protocol == TUNNEL[0]
                headers = {"port": "8080", "requestid": "0"}
                frames: list[Frame] = [
                    syn_stream(1, headers | {"streamtype": "error"}, fin=True),
                    syn_stream(3, headers | {"streamtype": "data"}),
                    data_frame(3, b"hello", fin=True),
                ]
                writer = FrameWriter()
                for byte in b"".join(writer.write(frame) for frame in frames):
                    await socket.send_bytes(bytes((byte,)))
                reader, heard = FrameReader(), list[Frame]()
                while data_frame(1, b"", fin=True) not in heard:
                    heard += reader.feed(await socket.receive_bytes())
                assert heard == [
                    *(syn_reply(1), syn_reply(3)),
                    *(data_frame(3, b"HELLO"), data_frame(3, b"", fin=True), data_frame(1, b"", fin=True)),
                ]

    run(scenario)


def test_tunnel_that_violates_the_protocol_is_closed() -> None:
    async def scenario(door: Door, node: FakeNode) -> None:
        async with connect(door, f"{PODS}/web/portforward", TUNNEL) as socket:
            await socket.send_bytes(FrameWriter().write(syn_stream(2)))
            end = await socket.receive()
            assert (end.data, end.extra) == (
                1002,
                "stream 2 was opened after stream 0. Stream IDs must be odd and increasing",
            )

    run(scenario)

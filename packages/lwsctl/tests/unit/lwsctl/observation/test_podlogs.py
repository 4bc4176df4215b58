"""Tests log lines, and responses that are not logs."""

import pytest
from testkit.fakes import ScriptedTransport, respond
from tests import builders

from kuberuntime.client.client import Client
from lwsctl.observation.podlogs import LogError, PodLogOptions, read

POD = builders.leader_pod(builders.leaderworkerset_object())
REMOVED = b"unable to retrieve container logs for containerd://0a1b"
UNLINKED = b'failed to try resolving symlinks in path "/var/log/pods/a/0.log": lstat /var: no such file or directory'


async def lines(text: bytes) -> list[bytes]:
    client = Client(ScriptedTransport(respond(200, text)))
    return [line async for line in read(client, POD, PodLogOptions(container="main"))]


@pytest.mark.parametrize("text", [REMOVED, UNLINKED])
async def test_message_of_a_kubelet_is_not_a_line(text: bytes) -> None:
    """A kubelet that has removed the containers of an existing pod responds with status 200 and an error."""
    with pytest.raises(LogError, match="its node has deleted its log"):
        await lines(text)


@pytest.mark.parametrize(
    "text", [REMOVED + b"\n", b"first\n" + REMOVED, b"it was " + REMOVED], ids=["a line", "not alone", "within a line"]
)
async def test_program_may_print_the_words_of_a_kubelet(text: bytes) -> None:
    assert await lines(text) == [line for line in text.split(b"\n") if line]

"""Tests that port forwarding stops with its pod and with its cluster, and reports the reason."""

import pytest
from testkit.fakes import ScriptedTransport, failure, respond
from testkit.virtualtime import run

from kuberuntime.client.client import Client
from kuberuntime.client.transport import Response
from kuberuntime.errors import ConnectionFailedError
from kuberuntime.objects.meta import JSONObject
from lwsctl.cli.commands.port_forward import require_scheduled, wait_until_lost
from lwsctl.cli.errors import CommandError

POD = {"metadata": {"name": "web-0", "namespace": "default", "uid": "first"}}
THERE = respond(200, POD)
SILENT = ConnectionFailedError("https://127.0.0.1:1 refused the connection")


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ([THERE, failure(404, "NotFound")], "pod web-0 no longer exists"),
        ([respond(200, {"metadata": {"uid": "second"}})], "pod web-0 was replaced by a new pod"),
        ([respond(200, POD | {"status": {"phase": "Failed"}})], "pod web-0 has terminated"),
        (
            [THERE, SILENT, SILENT, THERE, SILENT, failure(403, "Forbidden"), SILENT, SILENT],
            "the cluster no longer responds: https://127.0.0.1:1 refused the connection",
        ),
    ],
    ids=["deleted", "replaced", "ended", "cluster stopped"],
)
def test_port_forward_ends_with_a_reason(script: list[Response | Exception], reason: str) -> None:
    assert run(wait_until_lost(Client(ScriptedTransport(*script)), POD)) == reason


@pytest.mark.parametrize(
    ("fields", "state"),
    [
        ({"status": {"phase": "Pending"}}, "Pending"),
        ({"spec": {"nodeName": "node-0"}, "status": {"phase": "Failed"}}, "Failed"),
    ],
    ids=["without a node", "ended"],
)
def test_pod_that_is_not_running_is_rejected(fields: JSONObject, state: str) -> None:
    with pytest.raises(CommandError, match=f"pod web-0 is not running: {state}"):
        require_scheduled(POD | fields)
    require_scheduled(POD | {"spec": {"nodeName": "node-0"}, "status": {"phase": "Running"}})

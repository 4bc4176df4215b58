"""Tests that installed objects are applied, and that applying is retried if the API server is overloaded."""

import pytest
from testkit.fakes import ScriptedTransport, failure, respond

from kuberuntime.client.client import Client
from kuberuntime.client.transport import Response
from kuberuntime.errors import ConnectionFailedError
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import SERVICES
from lwsctl.cli.errors import CommandError
from lwsctl.cli.installing.installation import PAUSES, Installer

SERVICE: JSONObject = {"metadata": {"name": "lws-webhook-service", "namespace": "lws-system"}}
ABSENT = failure(404, "NotFound", "absent")


def installer(*script: Response | Exception) -> tuple[Installer, list[str]]:
    lines: list[str] = []
    return Installer(Client(ScriptedTransport(*script)), "lws-system", lines.append), lines


@pytest.mark.parametrize(
    "obstacle",
    [
        failure(504, "Timeout", "request did not complete"),
        failure(503, "ServiceUnavailable", "apiserver is shutting down"),
        failure(429, "TooManyRequests", "too many requests"),
        ConnectionFailedError("refused"),
    ],
    ids=["504", "503", "429", "no answer"],
)
@pytest.mark.virtual_time
async def test_install_applies_again_after_a_transient_answer(obstacle: Response | Exception) -> None:
    installing, lines = installer(ABSENT, obstacle, ABSENT, respond(201, SERVICE))
    await installing.apply([(SERVICES, SERVICE)])
    assert [line.partition(":")[0] for line in lines] == [
        "service/lws-webhook-service",
        "service/lws-webhook-service created",
    ]


@pytest.mark.virtual_time
async def test_install_gives_up_after_some_attempts() -> None:
    overloaded = failure(504, "Timeout", "request did not complete")
    installing, lines = installer(*[overloaded] * (len(PAUSES) + 1))
    with pytest.raises(CommandError, match="request did not complete\nfix the problem, and then retry"):
        await installing.apply([(SERVICES, SERVICE)])
    assert len(lines) == len(PAUSES)


async def test_install_does_not_repeat_a_rejected_request() -> None:
    installing, lines = installer(ABSENT, failure(403, "Forbidden", "quota"))
    with pytest.raises(CommandError, match="quota"):
        await installing.apply([(SERVICES, SERVICE)])
    assert lines == []

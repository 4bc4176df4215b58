"""Tests that manifest errors of `lws apply` contain the line of their field on both API servers."""

from tests.integration.clusters.space import LiveScenario
from tests.integration.lwsctl.test_commands import session_of
from tests.manifesterrors import NAMED, REFUSED, WARNED, changed, line_of, text_of

from kuberuntime.client.client import Client
from kuberuntime.objects.meta import JSONObject
from lwsctl.cli.applying.applier import Applier
from lwsctl.cli.cluster.target import WarningTransport
from lwsctl.cli.errors import CommandError
from lwsctl.cli.reading import manifests

OF_A_LIST = ("containers.0.name", "containers.1", "ports.0", "volumeMounts.0.mountPath")
"""Fields of list elements for which API servers report only the list."""


def lines_of(obj: JSONObject, path: str, text: str) -> set[str]:
    """Return the locations in messages that are expected for the field."""
    field = NAMED.get(text, path)
    fields = [field]
    if field.endswith(OF_A_LIST):
        fields.append(field[: max(field.rfind(".0"), field.rfind(".1"))])
    return {f"web.yaml:{line_of(obj, field)}" for field in fields}


async def test_errors_at_apply_have_the_line_of_the_field(space: LiveScenario) -> None:
    wrong = {}
    for path, value, text in REFUSED:
        obj = changed(path, value)
        try:
            await Applier(session_of(space)).check(manifests.parse(text_of(obj), "web.yaml"))
        except CommandError as error:
            message = str(error).splitlines()[0]
        else:
            message = "accepted"
        if message.partition(": ")[0] not in lines_of(obj, path, text):
            wrong[path] = message
    assert not wrong, "\n".join(f"{path}: {messages}" for path, messages in wrong.items())


async def test_warnings_at_apply_have_the_line_of_the_field(space: LiveScenario) -> None:
    wrong = {}
    for path, value, text in WARNED:
        obj = changed(path, value)
        messages: list[str] = []
        client = Client(WarningTransport(space.cluster.transport("lws"), messages.append), field_validation="Strict")
        try:
            session = session_of(space, client)
            await Applier(session).check(manifests.parse(text_of(obj), "web.yaml"))
        finally:
            await client.close()
        places = {f"Warning: {place}" for place in lines_of(obj, path, text)}
        if not any(text in message and message.split(": leaderworkerset/web: ")[0] in places for message in messages):
            wrong[path] = messages
    assert not wrong, "\n".join(f"{path}: {messages}" for path, messages in wrong.items())

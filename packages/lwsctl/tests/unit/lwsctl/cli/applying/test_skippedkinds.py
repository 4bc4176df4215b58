"""Kinds that have no effect in a rehearsal are skipped if they are not served."""

import click
import pytest
from testkit.fakes import ScriptedTransport, failure, respond
from testkit.virtualtime import run

from kuberuntime.client.client import Client
from kuberuntime.client.transport import Response
from kuberuntime.objects.meta import JSONObject
from lwsctl.cli import app
from lwsctl.cli.applying.kindlookup import Discovery, UnknownKindError
from lwsctl.cli.applying.skippedkinds import without_unserved
from lwsctl.cli.reading.manifests import Document

ABSENT = failure(404, "NotFound", "not found")
ROLE = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "engine"}}


def kept(objects: list[JSONObject], *answers: Response) -> tuple[list[str], list[str]]:
    client = Client(ScriptedTransport(*answers))
    documents = [Document("a.yaml", 1, obj) for obj in objects]
    rest, lines = run(without_unserved(client, documents))
    return [one.title for one in rest], lines


def test_unserved_role_is_skipped_by_name() -> None:
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}}
    rest, lines = kept([ROLE, service], ABSENT, respond(200, {"groups": []}), respond(200, {"resources": []}))
    assert rest == ["service/web"]
    assert lines == ["skipping role/engine: this cluster does not use RBAC"]


def test_served_role_is_applied() -> None:
    served = respond(200, {"resources": [{"name": "roles", "kind": "Role", "namespaced": True}]})
    assert kept([ROLE], served) == (["role/engine"], [])


def test_kind_that_pods_may_depend_on_is_kept() -> None:
    secret = {"apiVersion": "external-secrets.io/v1", "kind": "ExternalSecret", "metadata": {"name": "token"}}
    assert kept([secret]) == (["externalsecret/token"], [])


def test_kind_whose_definition_is_applied_is_kept() -> None:
    scaled = {"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "metadata": {"name": "web"}}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "scaledobjects.keda.sh"},
        "spec": {"names": {"kind": "ScaledObject"}},
    }
    assert len(kept([definition, scaled])[0]) == 2


@pytest.mark.parametrize("command", ["apply", "plan", "diff"])
def test_commands_that_suggest_skip_unserved_accept_it(command: str) -> None:
    scaled = {"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "metadata": {"name": "web"}}
    script = ScriptedTransport(ABSENT, respond(200, {"groups": []}), respond(200, {"resources": []}))
    with pytest.raises(UnknownKindError, match=r"install its CRD, or use --skip-unserved to skip it$"):
        run(Discovery(Client(script)).resource_of(scaled))
    found = app.lws.get_command(click.Context(app.lws), command)
    assert found is not None
    assert "--skip-unserved" in [word for param in found.params for word in param.opts]

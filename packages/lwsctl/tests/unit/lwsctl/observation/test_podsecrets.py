"""Tests that values from a pod's Secrets are masked in quoted log lines."""

import base64

from testkit.inprocess import api

from kuberuntime.client.client import Client
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import SECRETS
from kuberuntime.texts.masking import MASK
from lwsctl.observation import podsecrets

POD: JSONObject = {
    "metadata": {"name": "web-0", "namespace": "default"},
    "spec": {
        "volumes": [
            {"secret": {"secretName": "mounted"}},
            {"projected": {"sources": [{"secret": {"name": "projected"}}]}},
        ],
        "containers": [
            {
                "env": [
                    {"name": "A", "valueFrom": {"secretKeyRef": {"name": "variable", "key": "k"}}},
                    {"name": "B", "value": "x"},
                ],
                "envFrom": [{"secretRef": {"name": "all"}}, {"configMapRef": {"name": "config"}}],
            }
        ],
    },
}


def test_names_are_those_of_volumes_and_variables() -> None:
    assert list(filter(None, podsecrets.secret_names(POD))) == ["mounted", "projected", "variable", "all"]


async def test_values_of_readable_secrets_are_masked() -> None:
    async with api() as client:
        await put(client, "mounted", "plainword")
        await put(client, "other", "otherword")
        mask = await podsecrets.build_mask(client, [POD])
        assert mask.text("opened plainword and otherword") == f"opened {MASK} and otherword"


async def put(client: Client, name: str, value: str) -> None:
    data = {"k": base64.b64encode(value.encode()).decode()}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": "default"}, "data": data}
    await client.create(SECRETS, secret)

"""Tests the table of simple defaults for built-in kinds, and the function that sets the defaults."""

from typing import Any

import pytest

from kuberuntime.objects.gotypes import defaults
from localkube.apiserver.types.typed import SERVED, normalize


def test_default_table_names_existing_fields_with_valid_values() -> None:
    for struct, fields in defaults.DEFAULTS.items():
        assert fields.keys() <= SERVED.fields(struct).keys(), struct
        filled: dict[str, Any] = {}
        defaults.fill(SERVED, struct, filled)
        assert normalize(struct, filled).items() >= {name: filled[name] for name in fields}.items(), struct


def test_set_values_are_kept() -> None:
    probe = {"timeoutSeconds": 7, "httpGet": {"port": 1, "path": "/ready"}}
    defaults.fill(SERVED, "Probe", probe)
    assert probe["timeoutSeconds"] == 7
    assert probe["httpGet"] == {"port": 1, "path": "/ready", "scheme": "HTTP"}


def test_defaults_are_set_at_every_depth() -> None:
    container = {"name": "c", "ports": [{"containerPort": 1}], "readinessProbe": {"grpc": {"port": 1, "service": None}}}
    statefulset = {"spec": {"template": {"spec": {"initContainers": [container], "volumes": [{"secret": {}}]}}}}
    defaults.fill(SERVED, "StatefulSet", statefulset)
    spec: Any = statefulset["spec"]["template"]["spec"]
    assert spec["initContainers"][0]["ports"] == [{"containerPort": 1, "protocol": "TCP"}]
    assert spec["initContainers"][0]["readinessProbe"]["grpc"] == {"port": 1, "service": ""}
    assert spec["volumes"] == [{"secret": {"defaultMode": 420}}]


def test_default_object_receives_defaults_and_is_not_shared() -> None:
    first: Any = {"spec": {}}
    second: Any = {"spec": {}}
    for statefulset in (first, second):
        defaults.fill(SERVED, "StatefulSet", statefulset)
    policy = "persistentVolumeClaimRetentionPolicy"
    assert first["spec"][policy] == {"whenDeleted": "Retain", "whenScaled": "Retain"}
    assert first["spec"][policy] is not second["spec"][policy]


@pytest.mark.parametrize(
    ("struct", "path"),
    [
        ("PersistentVolumeSpec", ("azureDisk", "cachingMode")),
        ("CustomResourceDefinitionSpec", ("conversion", "webhook", "clientConfig", "service", "port")),
    ],
)
def test_type_receives_its_defaults_at_any_path(struct: str, path: tuple[str, ...]) -> None:
    obj: Any = {}
    inner = obj
    for name in path[:-1]:
        inner = inner.setdefault(name, {})
    defaults.fill(SERVED, struct, obj)
    assert path[-1] in inner

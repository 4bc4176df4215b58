"""Tests environment variables, references, and the expansion of references."""

from pathlib import Path
from typing import Any

import pytest
from tests.kubeletpods import container, pod

from kuberuntime.objects import quantity
from kuberuntime.objects.meta import JSONObject
from localkube.kubelet.node import objects
from localkube.kubelet.spec import environment
from localkube.kubelet.spec.environment import EnvironmentInputs, ReferencedObjects
from localkube.kubelet.spec.fieldref import NodeFacts
from localkube.kubelet.spec.podspec import SpecError

SOURCES = ReferencedObjects({"settings": {"mode": b"fast", "level": b"3"}}, {"token": {"value": b"s3cret"}})
NODE = NodeFacts("127.0.0.1", {"cpu": quantity.parse("8")})


def context(found: JSONObject | None = None, **fields: Any) -> EnvironmentInputs:
    return EnvironmentInputs(pod=found or pod(), ip="10.0.0.1", node=NODE, **{"sources": SOURCES, **fields})


def variables(*entries: JSONObject, env_from: list[JSONObject] | None = None, **fields: Any) -> dict[str, str]:
    main = container(env=list(entries), envFrom=env_from or [], resources={"limits": {"memory": "1Gi"}})
    built = environment.build(main, context(pod(main, metadata={"uid": "u1"}), **fields), {})
    return {name: value for name, value in built.items() if name != "HOSTNAME"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("$(A)", "1"),
        ("$$(A)", "$(A)"),
        ("$$$(A)", "$1"),
        ("$$$$(A)", "$$(A)"),
        ("$(UNKNOWN)", "$(UNKNOWN)"),
        ("$A", "$A"),
        ("$(A", "$(A"),
        ("$", "$"),
        ("a$", "a$"),
        ("$()", "$()"),
        ("$(A)$(B)", "12"),
        ("\\$(A)", "\\1"),
        ("$(A) $$ $(C)", "1 $ $(A)"),
    ],
)
def test_references_expand_as_in_kubernetes(text: str, expected: str) -> None:
    assert environment.expand(text, {"A": "1", "B": "2", "C": "$(A)"}) == expected


def test_variable_can_use_only_previous_ones() -> None:
    found = variables({"name": "B", "value": "$(A)"}, {"name": "A", "value": "1"}, {"name": "C", "value": "$(A)$(B)"})
    assert found == {"B": "$(A)", "A": "1", "C": "1$(A)"}


def test_env_overrides_env_from_and_can_refer_to_it() -> None:
    origins: list[JSONObject] = [
        {"prefix": "S_", "configMapRef": {"name": "settings"}},
        {"secretRef": {"name": "token"}},
    ]
    found = variables({"name": "S_mode", "value": "slow-$(S_level)"}, env_from=origins)
    assert found == {"S_mode": "slow-3", "S_level": "3", "value": "s3cret"}


def test_variables_omit_binary_data() -> None:
    """In upstream, `makeEnvironmentVariables` reads only the `data` of ConfigMaps."""
    config_map = {"data": {"mode": "fast"}, "binaryData": {"blob": "AAH/"}}
    found = context(sources=ReferencedObjects({"c": objects.config_map_data(config_map)}, {}))
    main = container(envFrom=[{"configMapRef": {"name": "c"}}])
    assert environment.build(main, found, {}) == {"HOSTNAME": "web-0", "mode": "fast"}


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ({"fieldRef": {"fieldPath": "metadata.name"}}, "web-0"),
        ({"fieldRef": {"fieldPath": "metadata.namespace"}}, "default"),
        ({"fieldRef": {"fieldPath": "metadata.uid"}}, "u1"),
        ({"fieldRef": {"fieldPath": "metadata.labels['app']"}}, "web"),
        ({"fieldRef": {"fieldPath": "metadata.annotations['none']"}}, ""),
        ({"fieldRef": {"fieldPath": "spec.nodeName"}}, "node-0"),
        ({"fieldRef": {"fieldPath": "status.podIP"}}, "10.0.0.1"),
        ({"fieldRef": {"fieldPath": "status.hostIP"}}, "127.0.0.1"),
        ({"resourceFieldRef": {"resource": "limits.memory", "divisor": "1Mi"}}, "1024"),
        ({"resourceFieldRef": {"resource": "requests.memory"}}, "1073741824"),
        ({"resourceFieldRef": {"resource": "limits.cpu"}}, "8"),
        ({"configMapKeyRef": {"name": "settings", "key": "mode"}}, "fast"),
        ({"secretKeyRef": {"name": "token", "key": "value"}}, "s3cret"),
    ],
)
def test_value_is_read_from_its_source(source: JSONObject, expected: str) -> None:
    assert variables({"name": "V", "valueFrom": source}) == {"V": expected}


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ({"configMapKeyRef": {"name": "no", "key": "mode"}}, 'configmap "no" not found'),
        ({"configMapKeyRef": {"name": "settings", "key": "no"}}, "couldn't find key no in configmap default/settings"),
        ({"secretKeyRef": {"name": "no", "key": "value"}}, 'secret "no" not found'),
        ({"fieldRef": {"fieldPath": "spec.color"}}, 'unsupported value "spec.color"'),
        ({"resourceFieldRef": {"resource": "limits.memory", "containerName": "no"}}, "must be a container of this pod"),
        ({"fileKeyRef": {}, "x": 1}, "valueFrom must be one of"),
    ],
)
def test_missing_source_is_named(source: JSONObject, text: str) -> None:
    with pytest.raises(SpecError, match=text.replace("/", ".")):
        variables({"name": "V", "valueFrom": source})


def test_missing_optional_references_are_omitted() -> None:
    missing = {"name": "no", "key": "k"}
    assert variables({"name": "V", "valueFrom": {"secretKeyRef": {**missing, "optional": True}}}) == {}
    assert variables({"name": "V", "valueFrom": {"secretKeyRef": missing}}, skips_missing_sources=True) == {}
    assert variables(env_from=[{"configMapRef": {"name": "no", "optional": True}}]) == {}


def test_only_named_variables_are_inherited_from_the_host() -> None:
    host = {"PATH": "/bin", "HOME": "/home/me", "AWS_SECRET_ACCESS_KEY": "x", "LANG": "C.UTF-8"}
    assert environment.host_variables(host, own_root=False) == {"PATH": "/bin", "HOME": "/home/me", "LANG": "C.UTF-8"}
    assert environment.host_variables(host, own_root=True) == {"PATH": environment.CONTAINER_PATH, "HOME": "/root"}


def test_virtual_environment_is_first_in_the_path(tmp_path: Path) -> None:
    (tmp_path / "pyvenv.cfg").touch()
    found = environment.use_environment({"PATH": "/bin"}, tmp_path)
    assert found == {"PATH": f"{tmp_path}/bin:/bin", "VIRTUAL_ENV": str(tmp_path)}


def test_references_name_the_sources_of_all_variables() -> None:
    main = container(
        env=[{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "c1", "key": "k"}}}],
        envFrom=[{"secretRef": {"name": "s1"}}, {"configMapRef": {"name": "c2"}}],
    )
    assert environment.references(main) == ({"c1", "c2"}, {"s1"})

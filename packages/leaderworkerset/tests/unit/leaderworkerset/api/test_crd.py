"""Tests the LeaderWorkerSet CRD (R-API-1 to R-API-8, contract 1.2)."""

from collections.abc import Iterator
from typing import Any

import pytest

from leaderworkerset.api.crd import leaderworkerset_crd
from leaderworkerset.api.fieldtypes import TYPES
from leaderworkerset.api.policytypes import RestartPolicy, StartupPolicy, SubdomainPolicy, SubGroupPolicyType
from leaderworkerset.api.schema import LIST_KEYS, OPTIONAL, REQUIRED, RULES, schema_of

CRD = leaderworkerset_crd()
VERSION = CRD["spec"]["versions"][0]
SCHEMA = VERSION["schema"]["openAPIV3Schema"]


def at(path: str, schema: dict[str, Any] = SCHEMA) -> dict[str, Any]:
    """Return the schema at a path. `*` represents the items of a list or the values of a map."""
    for name in path.split("."):
        schema = (schema.get("items") or schema["additionalProperties"]) if name == "*" else schema["properties"][name]
    return schema


def walk(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    yield path, schema
    for name, child in schema.get("properties", {}).items():
        yield from walk(child, f"{path}.{name}")
    for part in ("items", "additionalProperties"):
        if part in schema:
            yield from walk(schema[part], f"{path}.*")


def test_definition_has_names_scope_and_version() -> None:
    """The CRD has these names, this scope and this version, and no categories (R-API-1)."""
    assert CRD["metadata"]["name"] == "leaderworkersets.leaderworkerset.x-k8s.io"
    assert CRD["metadata"]["annotations"] == {"controller-gen.kubebuilder.io/version": "v0.17.2"}
    assert {name: value for name, value in CRD["spec"].items() if name != "versions"} == {
        "group": "leaderworkerset.x-k8s.io",
        "scope": "Namespaced",
        "names": {
            "kind": "LeaderWorkerSet",
            "listKind": "LeaderWorkerSetList",
            "plural": "leaderworkersets",
            "singular": "leaderworkerset",
            "shortNames": ["lws"],
        },
    }
    assert (VERSION["name"], VERSION["served"], VERSION["storage"]) == ("v1", True, True)
    assert "conversion" not in CRD["spec"]  # R-API-4


def test_definition_has_status_and_scale_subresources() -> None:
    """The CRD has status and scale subresources (R-API-2)."""
    assert VERSION["subresources"] == {
        "status": {},
        "scale": {
            "specReplicasPath": ".spec.replicas",
            "statusReplicasPath": ".status.replicas",
            "labelSelectorPath": ".status.hpaPodSelector",
        },
    }


def test_definition_has_no_validation_rules() -> None:
    """The CRD does not have validation rules (N-API-6)."""
    assert [path for path, schema in walk(SCHEMA) if "x-kubernetes-validations" in schema] == []


def test_definition_has_printer_columns() -> None:
    """The columns have the declared order, types and paths (R-API-3, N-API-4)."""
    assert [(c["name"], c["type"], c["jsonPath"]) for c in VERSION["additionalPrinterColumns"]] == [
        ("Ready", "integer", ".status.readyReplicas"),
        ("Desired", "integer", ".spec.replicas"),
        ("Up-to-date", "integer", ".status.updatedReplicas"),
        ("Age", "date", ".metadata.creationTimestamp"),
    ]


@pytest.mark.parametrize(
    ("path", "rules"),
    [
        ("replicas", {"default": 1, "minimum": 0, "maximum": 1000000, "format": "int32", "type": "integer"}),
        (
            "startupPolicy",
            {"default": "LeaderCreated", "enum": sorted(StartupPolicy), "type": "string"},
        ),
        ("leaderWorkerTemplate.size", {"default": 1, "format": "int32", "type": "integer"}),
        (
            "leaderWorkerTemplate.restartPolicy",
            {
                "default": "RecreateGroupOnPodRestart",
                "enum": sorted(RestartPolicy),
                "type": "string",
            },
        ),
        (
            "leaderWorkerTemplate.subGroupPolicy.subGroupPolicyType",
            {"default": "LeaderWorker", "enum": sorted(SubGroupPolicyType), "type": "string"},
        ),
        ("leaderWorkerTemplate.subGroupPolicy.subGroupSize", {"type": "integer", "format": "int32"}),
        ("leaderWorkerTemplate.persistentVolumeClaimRetentionPolicy.whenDeleted", {"type": "string"}),
        ("rolloutStrategy.type", {"default": "RollingUpdate", "enum": ["RollingUpdate"], "type": "string"}),
        ("rolloutStrategy.rollingUpdateConfiguration.partition", {"default": 0, "type": "integer", "format": "int32"}),
        ("podTerminationPolicy", {"enum": ["Default", "Parallel"], "type": "string"}),
        ("networkConfig.subdomainPolicy", {"enum": sorted(SubdomainPolicy), "type": "string"}),
    ],
)
def test_own_fields_have_types_defaults_and_bounds(path: str, rules: dict[str, Any]) -> None:
    """Fields have types, defaults, enums and limits (contract 1.2, R-KQ-2)."""
    assert at(f"spec.{path}") == rules


def test_strategy_has_a_default_before_admission() -> None:
    """Webhooks that decode and encode the object would add a strategy without a type (R-KQ-2, R-KQ-10)."""
    assert at("spec.rolloutStrategy")["default"] == {"type": "RollingUpdate"}
    assert "default" not in schema_of("LeaderWorkerSetSpec")["properties"]["rolloutStrategy"]


@pytest.mark.parametrize(("field", "default"), [("maxUnavailable", 1), ("maxSurge", 0)])
def test_budgets_are_numbers_or_percentages(field: str, default: int) -> None:
    schema = at(f"spec.rolloutStrategy.rollingUpdateConfiguration.{field}")
    assert schema["x-kubernetes-int-or-string"] is True
    assert schema["default"] == default


@pytest.mark.parametrize(
    ("path", "required"),
    [
        ("spec", ["leaderWorkerTemplate"]),
        ("spec.leaderWorkerTemplate", ["workerTemplate"]),
        ("spec.leaderWorkerTemplate.workerTemplate", None),
        ("spec.leaderWorkerTemplate.workerTemplate.spec", ["containers"]),
        ("spec.leaderWorkerTemplate.workerTemplate.spec.containers.*", ["name"]),
        ("spec.leaderWorkerTemplate.subGroupPolicy", None),
        ("spec.rolloutStrategy", ["type"]),
        ("spec.networkConfig", ["subdomainPolicy"]),
        ("status.conditions.*", ["lastTransitionTime", "message", "reason", "status", "type"]),
    ],
)
def test_required_fields_are_declared(path: str, required: list[str] | None) -> None:
    """Required fields are declared (contract 1.2)."""
    assert at(path).get("required") == required


@pytest.mark.parametrize("path", ["leaderTemplate", "workerTemplate", "volumeClaimTemplates.*"])
def test_embedded_metadata_has_five_fields(path: str) -> None:
    """`creationTimestamp: null` of templates is pruned (R-API-5)."""
    metadata = at(f"spec.leaderWorkerTemplate.{path}.metadata")
    assert sorted(metadata["properties"]) == ["annotations", "finalizers", "labels", "name", "namespace"]


@pytest.mark.parametrize(
    ("path", "default"),
    [
        ("containers.*.ports.*.protocol", "TCP"),
        ("initContainers.*.ports.*.protocol", "TCP"),
        ("ephemeralContainers.*.ports.*.protocol", "TCP"),
        ("containers.*.env.*.valueFrom.configMapKeyRef.name", ""),
        ("containers.*.env.*.valueFrom.secretKeyRef.name", ""),
        ("containers.*.env.*.valueFrom.fileKeyRef.optional", False),
        ("containers.*.envFrom.*.configMapRef.name", ""),
        ("containers.*.envFrom.*.secretRef.name", ""),
        ("containers.*.livenessProbe.grpc.service", ""),
        ("imagePullSecrets.*.name", ""),
        ("volumes.*.configMap.name", ""),
        ("volumes.*.projected.sources.*.configMap.name", ""),
        ("volumes.*.projected.sources.*.secret.name", ""),
        ("volumes.*.cephfs.secretRef.name", ""),
        ("volumes.*.azureDisk.fsType", "ext4"),
        ("volumes.*.azureDisk.readOnly", False),
        ("volumes.*.iscsi.iscsiInterface", "default"),
        ("volumes.*.rbd.keyring", "/etc/ceph/keyring"),
        ("volumes.*.rbd.pool", "rbd"),
        ("volumes.*.rbd.user", "admin"),
        ("volumes.*.scaleIO.fsType", "xfs"),
        ("volumes.*.scaleIO.storageMode", "ThinProvisioned"),
    ],
)
def test_pod_templates_have_defaults(path: str, default: Any) -> None:
    """Pod templates have defaults (R-API-7)."""
    assert at(f"spec.leaderWorkerTemplate.workerTemplate.spec.{path}")["default"] == default


def test_pod_templates_have_no_other_defaults() -> None:
    """Templates do not have defaults for imagePullPolicy, dnsPolicy and similar fields (R-API-7)."""
    names = {path.rsplit(".", 1)[1] for path, schema in walk(schema_of("PodTemplateSpec")) if "default" in schema}
    assert names == {
        *("protocol", "name", "optional", "service", "fsType", "readOnly", "iscsiInterface"),
        *("keyring", "pool", "user", "storageMode"),
    }


@pytest.mark.parametrize(
    ("path", "keys"),
    [
        ("containers", ["name"]),
        ("initContainers", ["name"]),
        ("containers.*.env", ["name"]),
        ("containers.*.ports", ["containerPort", "protocol"]),
        ("containers.*.volumeMounts", ["mountPath"]),
        ("containers.*.volumeDevices", ["devicePath"]),
        ("containers.*.resources.claims", ["name"]),
        ("volumes", ["name"]),
        ("hostAliases", ["ip"]),
        ("topologySpreadConstraints", ["topologyKey", "whenUnsatisfiable"]),
        ("imagePullSecrets", ["name"]),
        ("resourceClaims", ["name"]),
        ("schedulingGates", ["name"]),
    ],
)
def test_lists_have_map_keys(path: str, keys: list[str]) -> None:
    """Lists have map keys (R-API-8)."""
    schema = at(f"spec.leaderWorkerTemplate.workerTemplate.spec.{path}")
    assert schema["x-kubernetes-list-type"] == "map"
    assert schema["x-kubernetes-list-map-keys"] == keys


def test_list_keys_are_required_or_have_defaults() -> None:
    for path, schema in walk(SCHEMA):
        for key in schema.get("x-kubernetes-list-map-keys", []):
            item = schema["items"]
            assert key in item.get("required", []) or "default" in item["properties"][key], path


def test_every_schema_node_has_a_type() -> None:
    """The schema is structural (R-API-5)."""
    for path, schema in walk(SCHEMA):
        assert "type" in schema or schema.get("x-kubernetes-int-or-string"), path


def test_tables_name_existing_fields_only() -> None:
    for struct, field in OPTIONAL | REQUIRED | RULES.keys():
        assert field in TYPES.fields(struct), f"{struct}.{field}"
    for struct, keys in LIST_KEYS.items():
        assert set(keys) <= TYPES.fields(struct).keys()

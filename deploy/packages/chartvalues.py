"""Defines the chart values (R-OP-52) with their defaults, schemas and descriptions."""

import json
from dataclasses import dataclass
from typing import Any, Final

import msgspec
from deploy.packages import dashboarddeployment

from kuberuntime.objects.duration import Duration
from kuberuntime.objects.meta import JSON, JSONObject
from leaderworkerset.capabilities.backoff.backoffsettings import MOST_RESTARTS
from leaderworkerset.install import installsettings, rendering
from leaderworkerset.install.installsettings import InstallSettings
from leaderworkerset.install.workload import CONTAINER_SECURITY, POD_SECURITY, deployment
from leaderworkerset.manager.config.configuration import (
    DisruptionBudgets,
    FeatureGates,
    GroupRestarts,
    Maintenance,
    PodAdmission,
    RecorderSettings,
)
from leaderworkerset.manager.config.configurationrules import GANG_PROVIDERS

TEXT: Final[JSONObject] = {"type": "string"}
ADDRESS: Final[JSONObject] = TEXT | {"pattern": "^(https?://.+)?$"}
"""A URL, or an empty string."""
SWITCH: Final[JSONObject] = {"type": "boolean"}
MAP: Final[JSONObject] = {"type": "object"}
LIST: Final[JSONObject] = {"type": "array"}
DIGEST: Final[JSONObject] = TEXT | {"pattern": "^(sha256:[0-9a-f]{64})?$"}
TYPES: Final[dict[type, JSONObject]] = {
    bool: SWITCH,
    str: TEXT,
    int: {"type": "integer", "minimum": 0, "maximum": MOST_RESTARTS},
    Duration: TEXT | {"pattern": r"^(0|([0-9]+(\.[0-9]+)?(ms|s|m|h))+)$"},
}
"""The schema of a configuration field, by type."""

HEAD: Final = """\
# lws

The manager of LeaderWorkerSets as a Helm chart. The templates are generated from the objects that `lws install` applies.

```text
helm install lws deploy/helm/lws --namespace lws-system --create-namespace
```

Install one release per cluster, because the webhook Service, Secret and configurations have fixed names.

| value | default | description |
|---|---|---|
"""


@dataclass(frozen=True, slots=True)
class Value:
    """One value. Dots in its name separate levels."""

    name: str
    default: JSON
    schema: JSONObject
    about: str


def values() -> tuple[Value, ...]:
    """Return all values."""
    return (*_identity(), *_pods(), *_parts())


def _identity() -> tuple[Value, ...]:
    repository, _, tag = installsettings.IMAGE.rpartition(":")
    pull_policy = TEXT | {"enum": ["Always", "IfNotPresent", "Never"]}
    return (
        Value("nameOverride", "", TEXT, "Replaces the chart name in object names."),
        Value("fullnameOverride", "", TEXT, "Replaces the prefix of object names."),
        Value(
            "replicaCount",
            2,
            {"type": "integer", "minimum": 1},
            "The number of managers, of which one is the leader. Without a manager, pods of groups cannot be created.",
        ),
        Value("image.manager.repository", repository, TEXT | {"minLength": 1}, "The image of the manager."),
        Value("image.manager.tag", tag, TEXT, "The image tag. If empty, the app version of the chart is used."),
        Value("image.manager.digest", "", DIGEST, "The image digest, which takes precedence over the tag."),
        Value("image.manager.pullPolicy", "IfNotPresent", pull_policy, "The pull policy of the image."),
        Value("imagePullSecrets", [], LIST, "The Secrets for the image registry."),
    )


def _pods() -> tuple[Value, ...]:
    (container,) = deployment(InstallSettings())["spec"]["template"]["spec"]["containers"]
    service = TEXT | {"enum": ["ClusterIP", "NodePort", "LoadBalancer"]}
    return (
        Value("podAnnotations", {}, MAP, "Additional annotations for the pods."),
        Value("podLabels", {}, MAP, "Additional labels for the pods."),
        Value("logging.level", "info", TEXT | {"enum": ["debug", "info", "error"]}, "The minimum level of log lines."),
        Value(
            "logging.format",
            "console",
            TEXT | {"enum": ["console", "json"]},
            "The log format: text for users, or JSON for tools.",
        ),
        Value("extraArgs", [], LIST | {"items": TEXT}, "Additional arguments for the manager, which take precedence."),
        Value("extraEnv", [], LIST, "Environment variables of the manager."),
        Value("podSecurityContext", POD_SECURITY, MAP, "The security context of the pods."),
        Value("securityContext", CONTAINER_SECURITY, MAP, "The security context of the container."),
        Value("service.type", "ClusterIP", service, "The type of the metrics Service."),
        Value("service.port", 9443, {"type": "integer", "enum": [9443]}, "The webhook port, which cannot be changed."),
        Value("resources", container["resources"], MAP, "The resource requests and limits."),
        Value("priorityClassName", "", TEXT, "The priority class of the pods."),
        Value("nodeSelector", {}, MAP, "The node labels that the pods require."),
        Value("tolerations", [], LIST, "The tolerations of the pods."),
        Value("affinity", {}, MAP, "The affinity of the pods."),
    )


def _parts() -> tuple[Value, ...]:
    restarts = "The configuration of the manager for the recreation of failed groups."
    accepted = "Accepted for compatibility with the Go chart, without effect."
    repository, _, tag = dashboarddeployment.IMAGE.rpartition(":")
    return (
        Value(
            "enableCertManager",
            False,
            SWITCH,
            "Whether cert-manager issues the certificates. Otherwise, the manager issues them.",
        ),
        Value(
            "enablePrometheus",
            False,
            SWITCH,
            "Whether to create a ServiceMonitor, a PrometheusRule, and the roles for Prometheus.",
        ),
        Value("prometheus.namespace", "monitoring", TEXT | {"minLength": 1}, "The namespace of Prometheus."),
        Value(
            "prometheus.labels",
            {},
            MAP,
            "The labels by which Prometheus selects the ServiceMonitor and the PrometheusRule.",
        ),
        Value("prometheus.alerts", True, SWITCH, "Whether enablePrometheus includes a PrometheusRule with all alerts."),
        Value(
            "prometheus.runbooks",
            "",
            ADDRESS,
            "The URL at which you publish docs/how-to/alerts.md, for runbook_url.",
        ),
        Value("enableDisaggregatedSet", False, SWITCH, accepted),
        Value("gangSchedulingManagement", {}, _gang(), "The corresponding section of the manager configuration."),
        Value("groupRestarts", {}, section(GroupRestarts), restarts),
        Value(
            "recorder",
            {},
            section(RecorderSettings),
            "The configuration of the manager for recording failures.",
        ),
        Value(
            "disruptionBudgets",
            {},
            section(DisruptionBudgets),
            "The configuration of the manager for disruption budgets of groups.",
        ),
        Value(
            "maintenance",
            {},
            section(Maintenance),
            "The configuration of the manager for moving groups from nodes under maintenance.",
        ),
        Value(
            "podAdmission",
            PodAdmission.WEBHOOK.value,
            TEXT | {"enum": [admission.value for admission in PodAdmission]},
            "Whether the webhook or a policy of kube-apiserver admits pods.",
        ),
        Value("featureGates", {}, section(FeatureGates), "The corresponding section of the manager configuration."),
        Value(
            "dashboard.enable",
            False,
            SWITCH,
            "Whether to install the dashboard, in which users log in with cluster tokens.",
        ),
        Value("dashboard.image.repository", repository, TEXT | {"minLength": 1}, "The image of the `lws` command."),
        Value("dashboard.image.tag", tag, TEXT, "The image tag. If empty, the app version of the chart is used."),
        Value("dashboard.image.digest", "", DIGEST, "The image digest, which takes precedence over the tag."),
        Value(
            "dashboard.resources",
            dashboarddeployment.RESOURCES,
            MAP,
            "The resource requests and limits of the dashboard.",
        ),
        Value(
            "podDisruptionBudget.enable", True, SWITCH, "Whether at most one manager can be evicted at the same time."
        ),
        Value(
            "userRoles.enable",
            True,
            SWITCH,
            "Whether the view and edit roles of a namespace include the kinds of this chart.",
        ),
        Value(
            "networkPolicy.enable", True, SWITCH, "Whether all ports except the webhook and metrics ports are closed."
        ),
    )


def defaults() -> JSONObject:
    """Return the defaults as a nested object."""
    root: dict[str, Any] = {}
    for value in values():
        _put(root, value.name.split("."), value.default)
    return root


def text() -> str:
    """Return `values.yaml`, with a description above each value."""
    lines: list[str] = []
    for name, default in defaults().items():
        lines += [f"# {value.name}: {value.about}" for value in values() if value.name.split(".")[0] == name]
        lines.append(rendering.document({name: default}))
    return "\n".join(lines)


def readme() -> str:
    """Return the README with the table of all values."""
    rows = [f"| `{value.name}` | `{_short(value.default)}` | {value.about} |" for value in values()]
    return HEAD + "\n".join(rows) + "\n"


def _short(default: object) -> str:
    text = repr(default).replace("'", "")
    return text if len(text) < 60 else "see values.yaml"


def schema() -> str:
    """Return `values.schema.json`, which rejects unknown values."""
    root: JSONObject = {"$schema": "http://json-schema.org/draft-07/schema#", **_closed()}
    for value in values():
        *above, last = value.name.split(".")
        place = root
        for level in above:
            place = place["properties"].setdefault(level, _closed())
        place["properties"][last] = value.schema | {"description": value.about}
    # The values that an umbrella chart passes: the global values, and the condition that includes this chart.
    root["properties"] |= {"global": MAP, "enabled": SWITCH}
    return json.dumps(root, indent=2) + "\n"


def section(of: type[msgspec.Struct]) -> JSONObject:
    """Return the schema of a configuration section, which rejects unknown fields."""
    fields = {field.encode_name: dict(TYPES[field.type]) for field in msgspec.structs.fields(of)}
    return _closed() | {"properties": fields}


def _gang() -> JSONObject:
    """Return the schema of the gang scheduling section, because the manager exits if the provider is unknown."""
    return _closed() | {"properties": {"schedulerProvider": TEXT | {"enum": list(GANG_PROVIDERS)}}}


def _closed() -> JSONObject:
    return {"type": "object", "additionalProperties": False, "properties": {}}


def _put(root: dict[str, Any], path: list[str], leaf: JSON) -> None:
    for level in path[:-1]:
        root = root.setdefault(level, {})
    root[path[-1]] = leaf

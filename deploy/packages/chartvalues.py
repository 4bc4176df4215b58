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

The manager of LeaderWorkerSets, as a chart. The templates are generated from the objects that `lws install` applies.

```text
helm install lws deploy/helm/lws --namespace lws-system --create-namespace
```

One release per cluster: the webhooks' service, secret and configurations have fixed names.

| value | default | what it does |
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
        Value("nameOverride", "", TEXT, "Replaces the chart's name in names."),
        Value("fullnameOverride", "", TEXT, "Replaces what names begin with."),
        Value(
            "replicaCount",
            2,
            {"type": "integer", "minimum": 1},
            "How many managers run; one of them leads. Without one, no pod of a group can be created.",
        ),
        Value("image.manager.repository", repository, TEXT | {"minLength": 1}, "The image of the manager."),
        Value("image.manager.tag", tag, TEXT, "Its tag; empty means the version of the chart's app."),
        Value("image.manager.digest", "", DIGEST, "Its digest, before any tag."),
        Value("image.manager.pullPolicy", "IfNotPresent", pull_policy, "When it is pulled."),
        Value("imagePullSecrets", [], LIST, "Secrets of the registry."),
    )


def _pods() -> tuple[Value, ...]:
    (container,) = deployment(InstallSettings())["spec"]["template"]["spec"]["containers"]
    service = TEXT | {"enum": ["ClusterIP", "NodePort", "LoadBalancer"]}
    return (
        Value("podAnnotations", {}, MAP, "Further annotations of the pods."),
        Value("podLabels", {}, MAP, "Further labels of the pods."),
        Value("logging.level", "info", TEXT | {"enum": ["debug", "info", "error"]}, "Which lines are logged."),
        Value("logging.format", "console", TEXT | {"enum": ["console", "json"]}, "Lines for people, or for programs."),
        Value("extraArgs", [], LIST | {"items": TEXT}, "Further arguments of the manager; they count over the others."),
        Value("extraEnv", [], LIST, "Environment variables of the manager."),
        Value("podSecurityContext", POD_SECURITY, MAP, "The security context of the pods."),
        Value("securityContext", CONTAINER_SECURITY, MAP, "The security context of the container."),
        Value("service.type", "ClusterIP", service, "Of the metrics."),
        Value("service.port", 9443, {"type": "integer", "enum": [9443]}, "The port of the webhooks, which is fixed."),
        Value("resources", container["resources"], MAP, "Requests and limits."),
        Value("priorityClassName", "", TEXT, "The priority of the pods."),
        Value("nodeSelector", {}, MAP, "On which nodes the pods run."),
        Value("tolerations", [], LIST, "Which taints the pods tolerate."),
        Value("affinity", {}, MAP, "The placement of the pods relative to other pods."),
    )


def _parts() -> tuple[Value, ...]:
    restarts = "This block of the manager's configuration: how groups that fail are recreated."
    accepted = "Accepted for the Go project's charts: kinds are served as built in."
    repository, _, tag = dashboarddeployment.IMAGE.rpartition(":")
    return (
        Value("enableCertManager", False, SWITCH, "cert-manager issues the certificates; else the manager does."),
        Value("enablePrometheus", False, SWITCH, "A ServiceMonitor, a PrometheusRule, and the roles of Prometheus."),
        Value("prometheus.namespace", "monitoring", TEXT | {"minLength": 1}, "The namespace of Prometheus."),
        Value("prometheus.labels", {}, MAP, "By which a Prometheus finds ServiceMonitor and PrometheusRule."),
        Value("prometheus.alerts", True, SWITCH, "With enablePrometheus: the PrometheusRule with all alerts."),
        Value(
            "prometheus.runbooks",
            "",
            ADDRESS,
            "The URL of docs/how-to/alerts.md where you publish it, for runbook_url.",
        ),
        Value("enableDisaggregatedSet", False, SWITCH, accepted),
        Value("gangSchedulingManagement", {}, _gang(), "This block of the manager's configuration."),
        Value("groupRestarts", {}, section(GroupRestarts), restarts),
        Value(
            "recorder",
            {},
            section(RecorderSettings),
            "This block of the manager's configuration: what is kept of failures.",
        ),
        Value(
            "disruptionBudgets",
            {},
            section(DisruptionBudgets),
            "This block of the manager's configuration: budgets of groups that may be evicted.",
        ),
        Value(
            "maintenance",
            {},
            section(Maintenance),
            "This block of the manager's configuration: groups that are moved off closed nodes.",
        ),
        Value(
            "podAdmission",
            PodAdmission.WEBHOOK.value,
            TEXT | {"enum": [admission.value for admission in PodAdmission]},
            "This field of the manager's configuration: the webhook, or a policy of kube-apiserver, admits pods.",
        ),
        Value("featureGates", {}, section(FeatureGates), "This block of the manager's configuration."),
        Value("dashboard.enable", False, SWITCH, "The dashboard, in which users log in with tokens of the cluster."),
        Value("dashboard.image.repository", repository, TEXT | {"minLength": 1}, "The image of the command `lws`."),
        Value("dashboard.image.tag", tag, TEXT, "Its tag; empty means the version of the chart's app."),
        Value("dashboard.image.digest", "", DIGEST, "Its digest, before any tag."),
        Value("dashboard.resources", dashboarddeployment.RESOURCES, MAP, "Its requests and limits."),
        Value("podDisruptionBudget.enable", True, SWITCH, "Evict one manager at a time only."),
        Value(
            "userRoles.enable",
            True,
            SWITCH,
            "Users who may view or edit a namespace may do so with the kinds of this chart.",
        ),
        Value("networkPolicy.enable", True, SWITCH, "Close all ports but those of webhooks and metrics."),
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

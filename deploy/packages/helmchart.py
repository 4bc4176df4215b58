"""Builds the Helm chart `lws` (R-OP-52 to R-OP-54, R-OP-56) from the objects that `lws install` applies.

The templates without an object of an installation are written by hand: names, notes, refusals and the test.

Names begin with the release's name, except for objects that the manager finds by name: there is one release per
cluster. Unlike the Go project's chart it binds the role that reads metrics, renders the roles of Prometheus only if
they are enabled, and refuses values that would have no effect.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from deploy.packages import alerts, chartvalues, dashboarddeployment, userroles
from deploy.packages.templating import block, either, expressions, inline, items, only_if, value

import leaderworkerset
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import (
    CONFIG_MAPS,
    CUSTOM_RESOURCE_DEFINITIONS,
    DEPLOYMENTS,
    NAMESPACES,
    NETWORK_POLICIES,
    POD_DISRUPTION_BUDGETS,
    SECRETS,
    SERVICES,
    Resource,
)
from leaderworkerset.api import labels, metadata
from leaderworkerset.core.gang import gate
from leaderworkerset.install import rendering
from leaderworkerset.install.installsettings import (
    CERTIFICATES,
    CONFIGURATION,
    ISSUERS,
    MOUNTED_CERTIFICATES,
    PROMETHEUS_RULES,
    SERVICE_MONITORS,
    Certificates,
    InstallSettings,
)
from leaderworkerset.install.objects import KindDeclarations, build_all
from leaderworkerset.manager.config.configuration import PodAdmission
from leaderworkerset.webhooks.configurations import SERVICE_NAME

PREFIX: Final = "lws-"
NAMESPACE: Final = "__NAMESPACE__"
IMAGE: Final = "__IMAGE__"
COMMAND_IMAGE: Final = "__COMMAND_IMAGE__"
SECTIONS: Final = (
    "gangSchedulingManagement",
    "groupRestarts",
    "featureGates",
    "recorder",
    "disruptionBudgets",
    "maintenance",
)
"""The values that are sections of the manager configuration. Empty sections are omitted."""

_SECTION_VALUES: Final = " ".join(f".Values.{section}" for section in SECTIONS)
WORDS: Final[Mapping[str, str]] = {
    NAMESPACE: "{{ .Release.Namespace }}",
    IMAGE: '{{ include "lws.image" . }}',
    COMMAND_IMAGE: '{{ include "lws.commandImage" . }}',
    "__CHART__": '{{ include "lws.chart" . }}',
    "__SERVICE__": "{{ .Release.Service }}",
    "__VERSION__": "{{ .Chart.AppVersion | quote }}",
    "__HASH__": f"{{{{ list .Values.enableCertManager .Values.podAdmission {_SECTION_VALUES} | toJson | sha256sum | trunc 16 }}}}",
}
CERT_MANAGER: Final = ".Values.enableCertManager"
PROMETHEUS: Final = ".Values.enablePrometheus"
RECORDER: Final = ".Values.recorder.enable"
DISRUPTION: Final = ".Values.disruptionBudgets.enable"
MAINTENANCE: Final = ".Values.maintenance.enable"
POD_POLICIES: Final = f'ne .Values.podAdmission "{PodAdmission.WEBHOOK.value}"'
DASHBOARD: Final = ".Values.dashboard.enable"
USER_ROLES: Final = ".Values.userRoles.enable"
SCHEDULER: Final = ".Values.gangSchedulingManagement.schedulerProvider"
GATED: Final = f'eq (toString {SCHEDULER}) "{gate.BUILT_IN_NAME}"'
MANAGER_ROLE: Final = "clusterrole-manager-role"
MARK: Final = "sections: __BLOCKED__\n"
"""The placeholder in the configuration for its sections."""

TOGGLES: Final[Mapping[Resource, str]] = {
    POD_DISRUPTION_BUDGETS: ".Values.podDisruptionBudget.enable",
    NETWORK_POLICIES: ".Values.networkPolicy.enable",
}
FIXED: Final = (CUSTOM_RESOURCE_DEFINITIONS, SECRETS, ISSUERS, CERTIFICATES)
"""The kinds with fixed names, in addition to the Service and configurations of the webhooks."""


@dataclass(frozen=True, slots=True)
class Served:
    """The kinds in variants with different permissions: without gang scheduling, with it, with the built-in gate."""

    plain: KindDeclarations
    gang: KindDeclarations
    gate: KindDeclarations
    recording: Sequence[JSONObject]
    """The additional rules of the manager role if failures are recorded."""
    disruption: Sequence[JSONObject]
    """The additional rules if groups have disruption budgets."""
    maintaining: Sequence[JSONObject]
    """The additional rules if groups are moved from cordoned nodes."""
    admitting: Sequence[JSONObject]
    """The additional rules if kube-apiserver admits pods with a policy."""


def files(served: Served, definitions: Mapping[str, str]) -> dict[str, str]:
    """Return every generated file of the chart with its content. `definitions` contains the files of `crds/`."""
    chart = {
        "apiVersion": "v2",
        "name": "lws",
        "description": (
            "The manager of LeaderWorkerSets, which are groups of pods for multi-node inference and training"
        ),
        "type": "application",
        "version": leaderworkerset.__version__,
        "appVersion": leaderworkerset.__version__,
        "kubeVersion": f">={metadata.OLDEST_KUBERNETES}-0",
        "keywords": ["kubernetes", "leaderworkerset", "inference", "training"],
    }
    return {
        "Chart.yaml": rendering.document(chart, sort_keys=False),
        "values.yaml": chartvalues.text(),
        "values.schema.json": chartvalues.schema(),
        "README.md": chartvalues.readme(),
        **{f"templates/{name}.yaml": text for name, text in templates(served).items()},
        **{f"crds/{name}": text for name, text in definitions.items()},
    }


def templates(served: Served) -> dict[str, str]:
    """Return the templates by kind and name."""
    plain, ganged, gated = (_conditional(declared) for declared in (served.plain, served.gang, served.gate))
    texts = {name: either(SCHEDULER, ganged[name], text) for name, text in plain.items()}
    switched = {
        name: text if gated[name] == ganged[name] else _switched(gated[name], text) for name, text in texts.items()
    }
    switched[MANAGER_ROLE] += only_if(RECORDER, rendering.document(served.recording))
    switched[MANAGER_ROLE] += only_if(DISRUPTION, rendering.document(served.disruption))
    switched[MANAGER_ROLE] += only_if(MAINTENANCE, rendering.document(served.maintaining))
    switched[MANAGER_ROLE] += only_if(POD_POLICIES, rendering.document(served.admitting))
    return switched | _user_roles(served.plain) | _dashboard() | _alerts()


def _switched(gated: str, otherwise: str) -> str:
    """Return one template for the built-in gate, and a second one with separate conditions for other settings."""
    return f"{{{{- if {GATED} }}}}\n{gated}{{{{- else }}}}\n{otherwise}{{{{- end }}}}\n"


def _user_roles(declared: KindDeclarations) -> dict[str, str]:
    objects = userroles.build(declared)
    names = _released(objects)
    return {_file(kind, meta.name(obj)): only_if(USER_ROLES, _text(kind, obj, names)) for kind, obj in objects}


def _dashboard() -> dict[str, str]:
    """Return the dashboard templates, with a NetworkPolicy like the manager."""
    objects = dashboarddeployment.build_dashboard(NAMESPACE, COMMAND_IMAGE)
    names = _released(objects)
    texts = {_file(kind, meta.name(obj)): _text(kind, obj, names) for kind, obj in objects}
    policy = _file(NETWORK_POLICIES, dashboarddeployment.NAME)
    texts[policy] = only_if(TOGGLES[NETWORK_POLICIES], texts[policy])
    return {name: only_if(DASHBOARD, text) for name, text in texts.items()}


def _alerts() -> dict[str, str]:
    """Return the rule with the alerts, in which Prometheus expressions are escaped for Helm."""
    rule = alerts.prometheus_rule(NAMESPACE, value("prometheus.runbooks"))
    text = _text(PROMETHEUS_RULES, rule, [alerts.NAME, metadata.METRICS_SERVICE])
    escaped = re.sub(r"\{\{ \$labels\.\w+ }}", r'{{ "\g<0>" }}', text)
    escaped = re.sub(
        r"^ *runbook_url: .*\n",
        lambda line: only_if(".Values.prometheus.runbooks", line[0]),
        escaped,
        flags=re.MULTILINE,
    )
    return {_file(PROMETHEUS_RULES, alerts.NAME): only_if(f"and {PROMETHEUS} .Values.prometheus.alerts", escaped)}


def _file(kind: Resource, name: str) -> str:
    return f"{kind.kind.lower()}-{name.removeprefix(PREFIX)}"


def _conditional(declared: KindDeclarations) -> dict[str, str]:
    """Return the templates of all objects, with conditions for the certificate issuer and the enabled options."""
    internal, external = _rendered(declared, "internal"), _rendered(declared, "cert-manager")
    unmonitored = {(kind, meta.name(obj)) for kind, obj in build_all(declared, _settings("cert-manager", ""))}
    texts: dict[str, str] = {}
    for identity in dict.fromkeys([*internal, *external]):
        kind, name = identity
        text = _joined(internal.get(identity), external.get(identity))
        if identity not in unmonitored and identity in external:
            text = only_if(PROMETHEUS, text)
        if kind in TOGGLES:
            text = only_if(TOGGLES[kind], text)
        texts[_file(kind, name)] = text
    return texts


def _joined(internal: str | None, external: str | None) -> str:
    if internal is None or external is None:
        return only_if(CERT_MANAGER if external else f"not {CERT_MANAGER}", (external or internal or ""))
    return either(CERT_MANAGER, external, internal)


def _settings(certificates: Certificates, prometheus: str) -> InstallSettings:
    configuration = CONFIGURATION if certificates == "internal" else MOUNTED_CERTIFICATES
    return InstallSettings(
        namespace=NAMESPACE,
        image=IMAGE,
        configuration=configuration,
        certificates=certificates,
        prometheus=prometheus,
    )


def _rendered(declared: KindDeclarations, certificates: Certificates) -> dict[tuple[Resource, str], str]:
    """Return the template of every object, by kind and name."""
    settings = _settings(certificates, value("prometheus.namespace"))
    objects = [
        (kind, obj)
        for kind, obj in build_all(declared, settings)
        if kind not in {NAMESPACES, CUSTOM_RESOURCE_DEFINITIONS}
    ]
    names = _released(objects)
    return {(kind, meta.name(obj)): _text(kind, obj, names) for kind, obj in objects}


def _released(objects: Iterable[tuple[Resource, JSONObject]]) -> Sequence[str]:
    """Return the names that start with the release name, longest first."""
    names = {
        meta.name(obj)
        for kind, obj in objects
        if kind not in FIXED and not kind.plural.endswith("webhookconfigurations")
    }
    return sorted((name for name in names - {SERVICE_NAME} if name.startswith(PREFIX)), key=len, reverse=True)


def _text(kind: Resource, obj: JSONObject, names: Sequence[str]) -> str:
    text = expressions(rendering.document(_labeled(_valued(kind, obj))))
    tails = "|".join(re.escape(name.removeprefix(PREFIX)) for name in names)
    text = re.sub(rf"(?<![\w-]){PREFIX}({tails})(?![\w-])", r'{{ include "lws.fullname" . }}-\1', text)
    for word, expression in WORDS.items():
        text = text.replace(word, expression)
    return _quoted(_selected(_with_sections(text)))


def _labeled(obj: JSONObject) -> JSONObject:
    """Add the chart labels. The selectors of the Deployment and its Services do not include them."""
    own = meta.metadata(obj)
    more = {
        "helm.sh/chart": "__CHART__",
        "app.kubernetes.io/managed-by": "__SERVICE__",
        "app.kubernetes.io/version": "__VERSION__",
    }
    if obj["kind"] in {SERVICE_MONITORS.kind, PROMETHEUS_RULES.kind}:
        more |= inline("prometheus.labels")
    return obj | {"metadata": own | {"labels": {**meta.labels(obj), **more}}}


def _selected(text: str) -> str:
    """Replace the instance label by the release label."""
    return re.sub(r"(app\.kubernetes\.io/instance): lws$", r"\1: {{ .Release.Name }}", text, flags=re.MULTILINE)


def _quoted(text: str) -> str:
    """Quote user-defined names that are complete values, because YAML would parse the namespace 456 as a number."""
    return re.sub(
        r"(?<=[:-] )\{\{ \.Release\.(Name|Namespace) \}\}$", r"{{ .Release.\1 | quote }}", text, flags=re.MULTILINE
    )


def _valued(kind: Resource, obj: JSONObject) -> JSONObject:
    """Replace fields in an object by chart values."""
    if kind == DEPLOYMENTS:
        is_manager = meta.name(obj) == metadata.MANAGER
        return _valued_deployment(obj) if is_manager else _valued_dashboard(obj)
    if kind == SERVICES and meta.name(obj) == metadata.METRICS_SERVICE:
        return obj | {"spec": meta.spec(obj) | {"type": value("service.type")}}
    if kind == CONFIG_MAPS:
        return obj | {"data": {name: f"{text}{MARK}" for name, text in obj["data"].items()}}
    return obj


def _with_sections(text: str) -> str:
    """Add the configured sections to the configuration file."""
    indent = "    "
    expressions = [
        f"{indent}{{{{- with .Values.{section} }}}}\n{indent}{section}:\n"
        f"{indent}  {{{{- toYaml . | nindent 6 }}}}\n{indent}{{{{- end }}}}\n"
        for section in SECTIONS
    ]
    expressions.append(
        f"{indent}{{{{- if {POD_POLICIES} }}}}\n{indent}podAdmission: {{{{ .Values.podAdmission }}}}\n{indent}{{{{- end }}}}\n"
    )
    return text.replace(f"{indent}{MARK}", "".join(expressions))


def _valued_dashboard(obj: JSONObject) -> JSONObject:
    """Replace the resources of the dashboard pod, and the fields that it shares with manager pods."""
    spec: dict[str, Any] = meta.spec(obj)
    pod = spec["template"]["spec"]
    (container,) = pod["containers"]
    valued = container | {
        "imagePullPolicy": value("image.manager.pullPolicy"),
        "resources": block("dashboard.resources"),
        "securityContext": block("securityContext"),
    }
    placed = {
        name: block(name)
        for name in ("imagePullSecrets", "nodeSelector", "tolerations", "affinity", "priorityClassName")
    }
    own = pod | placed | {"securityContext": block("podSecurityContext"), "containers": [valued]}
    return obj | {"spec": spec | {"template": spec["template"] | {"spec": own}}}


def _valued_deployment(obj: JSONObject) -> JSONObject:
    spec: dict[str, Any] = meta.spec(obj)
    template = spec["template"]
    pod = template["spec"]
    (container,) = pod["containers"]
    annotations = template["metadata"]["annotations"] | {labels.CONFIGURATION_HASH: "__HASH__"}
    config, *_ = container["args"]
    logging = (f"--zap-log-level={value('logging.level')}", f"--zap-encoder={value('logging.format')}")
    valued = container | {
        "args": [config, *logging, items("extraArgs")],
        "env": block("extraEnv"),
        "imagePullPolicy": value("image.manager.pullPolicy"),
        "resources": block("resources"),
        "securityContext": block("securityContext"),
    }
    placed = {
        "imagePullSecrets": block("imagePullSecrets"),
        "securityContext": block("podSecurityContext"),
        "nodeSelector": block("nodeSelector"),
        "tolerations": block("tolerations"),
        "affinity": block("affinity"),
        "priorityClassName": block("priorityClassName"),
        "topologySpreadConstraints": pod["topologySpreadConstraints"],
        "containers": [valued],
    }
    own = {
        "annotations": {**annotations, **inline("podAnnotations")},
        "labels": {**template["metadata"]["labels"], **inline("podLabels")},
    }
    return obj | {
        "spec": spec | {"replicas": value("replicaCount"), "template": {"metadata": own, "spec": pod | placed}}
    }

"""Tests that the rendered Helm chart equals the objects of `lws install`."""

import json
import subprocess
from collections.abc import Iterator
from datetime import timedelta
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import yaml
from deploy.packages import alerts, dashboarddeployment, userroles
from testkit.repository import ROOT
from tests.kubernetes.programs import build
from tests.shipped import factors, pairs

from kuberuntime.manifests.yamltext import SafeLoader
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSON, JSONObject
from leaderworkerset.api import labels, metadata
from leaderworkerset.core.policies.recreation import RestartSettings
from leaderworkerset.install.installsettings import MOUNTED_CERTIFICATES, InstallSettings
from leaderworkerset.install.objects import build_all
from leaderworkerset.kinds.managedkinds import MANAGED, managed_kinds
from leaderworkerset.kinds.registry import Registry
from leaderworkerset.manager import goflags, managerflags
from leaderworkerset.manager.config import configuration, configurationfile

HELM = build.HELM.find()
CHART = ROOT / "deploy" / "helm" / "lws"
OF_CHARTS = ("helm.sh/chart", "app.kubernetes.io/managed-by", "app.kubernetes.io/version")
NOT_RENDERED = {"Namespace", "CustomResourceDefinition"}
INTERNAL = InstallSettings()
EXTERNAL = InstallSettings(certificates="cert-manager", configuration=MOUNTED_CERTIFICATES)
MONITORED = InstallSettings(certificates="cert-manager", configuration=MOUNTED_CERTIFICATES, prometheus="monitoring")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(HELM is None, reason=build.HELM.missing),
]


def helm(*words: str, code: int = 0) -> str:
    result = subprocess.run([str(HELM), *words], capture_output=True, text=True, check=False, timeout=60)
    assert result.returncode == code, result.stderr
    return result.stdout if code == 0 else result.stderr


def render(*words: str, release: str = "lws", namespace: str = "lws-system") -> dict[tuple[str, str], JSONObject]:
    flags = ("-n", namespace, "--kube-version=1.36.0", "--skip-tests")
    objects = yaml.load_all(helm("template", release, str(CHART), *flags, *words), SafeLoader)
    return {(obj["kind"], meta.name(obj)): plain(obj) for obj in objects if obj}


def plain(obj: JSONObject) -> JSONObject:
    """Remove chart-specific fields, and the configuration hash of the pods, which has different inputs."""
    own = meta.metadata(obj)
    kept = {name: text for name, text in meta.labels(obj).items() if name not in OF_CHARTS}
    template: dict[str, Any] = meta.spec(obj).get("template", {}).get("metadata", {}).get("annotations", {})
    template.pop(labels.CONFIGURATION_HASH, None)
    for container in meta.spec(obj).get("template", {}).get("spec", {}).get("containers", ()):
        container["args"] = container["args"][:1]  # others are values
    if meta.name(obj).endswith("metrics-service"):
        meta.spec(obj).pop("type", None)
    return obj | {"metadata": own | {"labels": kept}}


def built(settings: InstallSettings, kinds: Registry = MANAGED) -> dict[tuple[str, str], JSONObject]:
    objects = [obj for _, obj in build_all(kinds, settings) if obj["kind"] not in NOT_RENDERED]
    objects += [obj for _, obj in userroles.build(MANAGED)]
    objects += [alerts.prometheus_rule("lws-system")] if settings.prometheus else []
    return {(obj["kind"], meta.name(obj)): plain(obj) for obj in objects}


@pytest.mark.parametrize(
    ("words", "settings"),
    [
        ((), INTERNAL),
        (("--set", "enableCertManager=true"), EXTERNAL),
        (("--set", "enableCertManager=true,enablePrometheus=true"), MONITORED),
    ],
    ids=["internal", "cert-manager", "prometheus"],
)
def test_chart_renders_the_installation(words: tuple[str, ...], settings: InstallSettings) -> None:
    """The metrics role is bound, and Prometheus roles are optional (R-OP-52, R-OP-53, R-OP-56, R-OP-82)."""
    assert render(*words) == built(settings)


def test_release_name_renames_only_renamable_objects() -> None:
    """Fixed names do not change, and other names start with the release name (R-OP-52)."""
    found = render(release="serving", namespace="serving")
    assert ("Deployment", "serving-lws-controller-manager") in found
    assert ("Service", "lws-webhook-service") in found
    assert ("Secret", "lws-webhook-server-cert") in found
    deployment = found["Deployment", "serving-lws-controller-manager"]
    assert deployment["spec"]["selector"]["matchLabels"]["app.kubernetes.io/instance"] == "serving"
    assert deployment["spec"]["template"]["spec"]["serviceAccountName"] == "serving-lws-controller-manager"
    names = {one["name"] for obj in found.values() for one in obj.get("subjects", [])}
    assert names == {"serving-lws-controller-manager"}


def test_the_dashboard_is_an_option_of_the_chart() -> None:
    """The value adds the kustomize objects, and no other object changes. The account may not write."""
    words = ("--set=dashboard.enable=true,dashboard.image.repository=example.com/lws,dashboard.image.tag=v7",)
    found, before = render(*words), render(words[0].replace("true", "false", 1))
    objects = [obj for _, obj in dashboarddeployment.build_dashboard("lws-system", "example.com/lws:v7")]
    added = {(obj["kind"], meta.name(obj)): plain(obj) for obj in objects}
    assert {key: obj for key, obj in found.items() if key not in before} == added
    assert {key: found[key] for key in before} == before
    flags = ("-n", "lws-system", "--kube-version=1.36.0", "--show-only=templates/deployment-dashboard.yaml")
    text = helm("template", "lws", str(CHART), *flags, *words)
    (container,) = yaml.load(text, SafeLoader)["spec"]["template"]["spec"]["containers"]
    assert tuple(container["args"]) == dashboarddeployment.ARGUMENTS


def test_the_account_of_the_dashboard_only_reads_in_any_release() -> None:
    """The account has only roles with read verbs, and the pod has no other account."""
    found = render("--set=dashboard.enable=true", release="serving", namespace="serving")
    name = "serving-lws-dashboard"
    (pod,) = [meta.spec(obj)["template"]["spec"] for key, obj in found.items() if key == ("Deployment", name)]
    assert pod["serviceAccountName"] == name
    assert ("ServiceAccount", name) in found
    account = {"kind": "ServiceAccount", "name": name, "namespace": "serving"}
    given = [obj["roleRef"] for obj in found.values() if account in obj.get("subjects", [])]
    assert [one["kind"] for one in given] == ["ClusterRole"]
    rules = [rule for one in given for rule in found[one["kind"], one["name"]]["rules"]]
    assert {verb for rule in rules for verb in rule["verbs"]} == {"get", "list", "watch"}


def test_numeric_names_stay_texts() -> None:
    objects = render("--set=enableCertManager=true,enablePrometheus=true", release="1e3", namespace="456")
    places = [found for key, obj in objects.items() for found in named(obj, key)]
    assert [found for found in places if not isinstance(found[1], str)] == []
    assert {"1e3", "456"} <= {value for _, value in places}


def named(value: JSON, place: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], JSON]]:
    """Return all values of namespaces and instance labels."""
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, part in parts:
        if name in {"namespace", "app.kubernetes.io/instance"} and not isinstance(part, dict | list):
            yield (*place, str(name)), part
        yield from named(part, (*place, str(name)))


def test_values_are_applied_to_the_pods() -> None:
    """Pod values are used in the same way as in other charts (R-OP-52)."""
    words = ["--set", "nodeSelector.pool=infra,priorityClassName=high,podAnnotations.a=b,replicaCount=3"]
    deployment = render(*words, "--set", "image.manager.digest=sha256:" + "0a" * 32)[
        "Deployment", "lws-controller-manager"
    ]
    pod = deployment["spec"]["template"]
    assert deployment["spec"]["replicas"] == 3
    assert pod["spec"]["nodeSelector"] == {"pool": "infra"}
    assert pod["spec"]["priorityClassName"] == "high"
    assert pod["metadata"]["annotations"]["a"] == "b"
    assert pod["spec"]["containers"][0]["image"].endswith("@sha256:" + "0a" * 32)


def test_arguments_environment_and_labels_reach_the_manager() -> None:
    """The configuration file and the selector labels cannot be changed."""
    words = (
        "extraArgs[0]=--kube-api-qps=50,logging.level=debug,logging.format=json,extraEnv[0].name=A,extraEnv[0].value=b"
    )
    text = helm("template", "lws", str(CHART), "--kube-version=1.36.0", "--set", f"{words},podLabels.team=serving")
    (pod,) = [obj["spec"]["template"] for obj in yaml.load_all(text, SafeLoader) if obj and obj["kind"] == "Deployment"]
    (container,) = pod["spec"]["containers"]
    logging = ["--zap-log-level=debug", "--zap-encoder=json"]
    assert container["args"] == ["--config=/controller_manager_config.yaml", *logging, "--kube-api-qps=50"]
    goflags.parse(container["args"], managerflags.FLAGS)
    assert container["env"] == [{"name": "A", "value": "b"}]
    assert pod["metadata"]["labels"] == {**metadata.SELECTOR, "team": "serving"}


def test_alerts_name_the_release_and_the_runbooks() -> None:
    """Prometheus selects the monitor and the rule by configured labels (R-OP-76)."""
    words = "enablePrometheus=true,prometheus.labels.release=kps,prometheus.runbooks=https://runbooks.example.com/lws"
    found = render("--set", words, release="serving")
    rule = found["PrometheusRule", "serving-lws-controller-manager"]
    monitor = found["ServiceMonitor", "serving-lws-controller-manager-metrics-monitor"]
    assert meta.labels(rule)["release"] == meta.labels(monitor)["release"] == "kps"
    first, *_ = rule["spec"]["groups"][0]["rules"]
    assert first["expr"] == 'absent(up{job="serving-lws-controller-manager-metrics-service"} == 1)'
    assert first["annotations"]["runbook_url"] == "https://runbooks.example.com/lws#lwsmanagerdown"
    unpublished = render("--set", "enablePrometheus=true")["PrometheusRule", "lws-controller-manager"]
    first, *_ = unpublished["spec"]["groups"][0]["rules"]
    assert first["annotations"].keys() == {"summary", "runbook"}
    assert not [
        key for key in render("--set", "enablePrometheus=true,prometheus.alerts=false") if key[0] == rule["kind"]
    ]


def test_gang_scheduling_sets_configuration_and_roles() -> None:
    """Without gang scheduling, no permissions for PodGroups are granted (R-OP-52)."""
    found = render("--set", "gangSchedulingManagement.schedulerProvider=volcano")
    text = found["ConfigMap", "lws-manager-config"]["data"]["controller_manager_config.yaml"]
    assert yaml.safe_load(text)["gangSchedulingManagement"] == {"schedulerProvider": "volcano"}

    def groups(objects: dict[tuple[str, str], JSONObject]) -> set[str]:
        return {group for rule in objects["ClusterRole", "lws-manager-role"]["rules"] for group in rule["apiGroups"]}

    assert groups(found) - groups(render()) >= {"scheduling.volcano.sh"}


def test_group_restarts_set_the_configuration_and_roll_the_pods() -> None:
    """The manager accepts the rendered file, and no other part of the chart changes."""
    chosen = "groupRestarts.backoff=false,groupRestarts.releaseLostPodsAfter=5m,groupRestarts.maxGroupRestarts=3"
    found, plain = render("--set", chosen), render()
    key = ("ConfigMap", "lws-manager-config")
    text = found[key]["data"]["controller_manager_config.yaml"]
    read = configuration.parse(text.encode())
    configurationfile.check(read)
    assert read.restarts == RestartSettings(has_backoff=False, max_restarts=3)
    assert read.release_after == timedelta(minutes=5)
    assert {one for one in found if found[one] != plain[one]} == {key}
    assert hashed(chosen) != hashed("groupRestarts.backoff=true")


def test_feature_gates_set_the_configuration() -> None:
    """Feature gates are chart values (N-CFG-1)."""
    found = render("--set", "featureGates.WorkloadAwareScheduling=true")
    text = found["ConfigMap", "lws-manager-config"]["data"]["controller_manager_config.yaml"]
    assert configuration.parse(text.encode()).feature_gates.workload_aware_scheduling


def granted(role: JSONObject) -> set[tuple[str, ...]]:
    """Return single permissions (group, resource, object name, verb), because rules combine them differently."""
    return {
        right
        for rule in role["rules"]
        for right in product(rule["apiGroups"], rule["resources"], rule.get("resourceNames") or [""], rule["verbs"])
    }


@pytest.mark.parametrize("row", pairs.rows())
def test_every_tested_setting_can_be_rendered(row: factors.Row, tmp_path: Path) -> None:
    """Sections that are chart values appear in the file as in the matrix, with the required permissions."""
    wanted = {
        name: section
        for name, section in factors.document(row, directory="", metrics=0, probes=0).items()
        if name in {"gangSchedulingManagement", "groupRestarts", "featureGates"}
    }
    external = row["internalCertManagement.enable"] is False
    values = tmp_path / "values.yaml"
    values.write_text(json.dumps(wanted | {"enableCertManager": external}))
    found = render("-f", str(values))
    text = found["ConfigMap", "lws-manager-config"]["data"]["controller_manager_config.yaml"]
    configurationfile.check(configuration.parse(text.encode()))
    rendered = yaml.safe_load(text)
    assert {name: rendered[name] for name in wanted} == wanted
    assert rendered["internalCertManagement"]["enable"] is not external
    provider = wanted.get("gangSchedulingManagement", {}).get("schedulerProvider", "")
    settings = EXTERNAL if external else INTERNAL
    (role,) = (one for key, one in built(settings, managed_kinds(provider)).items() if key[1] == "lws-manager-role")
    assert granted(role) <= granted(found["ClusterRole", "lws-manager-role"])


def hashed(values: str) -> str:
    """Return the line that restarts the pods when their configuration changes."""
    flags = ("-n", "lws-system", "--kube-version=1.36.0", "--skip-tests", "--set", values)
    text = helm("template", "lws", str(CHART), *flags)
    (line,) = [line for line in text.splitlines() if labels.CONFIGURATION_HASH in line]
    return line


@pytest.mark.parametrize(
    "words",
    [
        "replicas=3",
        "service.port=443",
        "image.manager.pullPolicy=Sometimes",
        "groupRestarts.backof=false",
        "featureGates.Workload=true",
        "groupRestarts.firstDelay=ten",
        "groupRestarts.maxGroupRestarts=2000",
        "prometheus.runbooks=docs/how-to/alerts.md",
    ],
)
def test_values_without_effect_are_rejected(words: str) -> None:
    """The schema rejects values that have no effect (R-OP-53, R-OP-82)."""
    assert words.split("=", maxsplit=1)[0].rsplit(".", maxsplit=1)[-1] in helm(
        "template", "lws", str(CHART), "--set", words, code=1
    )


def test_guards_can_be_disabled() -> None:
    """Budgets, policies and user roles are optional (R-OP-74)."""
    found = render("--set", "podDisruptionBudget.enable=false,networkPolicy.enable=false,userRoles.enable=false")
    assert not {kind for kind, _ in found} & {"PodDisruptionBudget", "NetworkPolicy"}
    assert not [name for _, name in found if name.endswith(("-editor-role", "-viewer-role"))]


def test_chart_passes_the_linter() -> None:
    assert "0 chart(s) failed" in helm("lint", "--strict", str(CHART))

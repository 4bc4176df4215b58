"""Tests the operator on a real control plane: installation, reconciliation, configuration, and removal."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from deploy.packages.operatordeployment import cluster
from tests.kubernetes.lwsoperator import certmanager
from tests.kubernetes.lwsoperator.certmanager import definition
from tests.kubernetes.lwsoperator.conftest import IMAGE, IN, MANAGER, OBJECT, PROGRAMS, OperatorCluster
from tests.kubernetes.lwsoperator.waiting import until

from leaderworkerset.install.certmanager import SERVING
from leaderworkerset.install.installsettings import SERVICE_MONITORS
from leaderworkerset.install.operatornames import DELETE_CRDS, OPERATOR, OWNED_BY, OWNED_LABEL
from leaderworkerset.operator.openshift import API_SERVERS, INFRASTRUCTURES

pytestmark = pytest.mark.slow

DEFINITION = "crd/leaderworkersets.leaderworkerset.x-k8s.io"
OWNED = (
    "clusterroles,clusterrolebindings,roles,rolebindings,services,configmaps,serviceaccounts,deployments,"
    "networkpolicies,poddisruptionbudgets,mutatingwebhookconfigurations,validatingwebhookconfigurations"
)


def owned(site: OperatorCluster) -> dict[str, str]:
    """Return resource versions of operand objects, without objects whose status changes."""
    listed = site.administrator.get(OWNED, *IN, "-l", f"{OWNED_LABEL}={OWNED_BY}") or {"items": []}
    found = listed.get("items", [listed])
    return {
        f"{obj['kind']}/{obj['metadata']['name']}": obj["metadata"]["resourceVersion"]
        for obj in found
        if obj["kind"] not in ("Deployment", "PodDisruptionBudget")
    }


def test_missing_dependency_is_reported_until_it_is_installed(site: OperatorCluster) -> None:
    """The test runs without cert-manager and then with it. ServiceMonitors are optional.

    R-OP-63, R-OP-64, R-OP-68, AT-001-1, AT-001-2, AT-003-1.
    """
    site.create()
    site.await_condition("Degraded", "True", "MissingDependency")
    assert site.conditions()["TargetConfigControllerDegraded"] == ("True", "SyncError")
    assert site.conditions()["Available"] == ("False", "DeploymentUnavailable")
    assert site.administrator.get(*MANAGER) is None
    assert site.administrator.get(DEFINITION) is None

    site.await_installed()
    site.await_condition("Available", "False", "WebhooksUnreachable")
    site.await_available()
    status = site.cluster()["status"]
    manager = site.manager()
    assert status["readyReplicas"] == 2
    assert status["generations"][0]["lastGeneration"] == manager["metadata"]["generation"]
    assert manager["spec"]["template"]["spec"]["containers"][0]["image"] == IMAGE
    assert site.administrator.get(DEFINITION) is not None
    events = site.administrator.there("events.events.k8s.io", *IN)["items"]
    assert "DeploymentCreated" in {event["reason"] for event in events}


def test_second_object_is_rejected(site: OperatorCluster) -> None:
    """The operator supports one object, which is named `cluster` (R-OP-2, R-OP-64, AT-001-2)."""
    other = cluster() | {"metadata": {"name": "other"}}
    assert "singleton" in site.administrator.kubectl("create", "-f", "-", objects=[other], code=1)


def test_namespace_of_the_object_is_dropped(available: OperatorCluster) -> None:
    """Published samples have a namespace although the kind is cluster-scoped (R-OP-3)."""
    before = generation(available)
    sample = cluster()
    sample["metadata"]["namespace"] = OPERATOR
    words = ("apply", "--server-side", "--force-conflicts", "-f", "-")
    available.administrator.kubectl(*words, objects=[sample])
    found = available.cluster()["metadata"]
    assert "namespace" not in found
    assert found["generation"] == before


def test_idle_operator_writes_nothing_and_reads_served_kinds(available: OperatorCluster) -> None:
    """Defaults from the API server and fields of other managers are not drift. Custom objects wait for their CRDs."""
    before, mark = owned(available), available.administrator.audit.mark()
    available.patch(operatorLogLevel="Debug")  # the operator reconciles again, because the generation has changed
    until(lambda: available.cluster()["status"]["observedGeneration"] == generation(available), "the new generation")
    assert owned(available) == before
    asked = {event["objectRef"]["resource"] for event in available.administrator.audit.events(mark)}
    assert "leaderworkersetoperators" in asked
    assert asked.isdisjoint((API_SERVERS.plural, INFRASTRUCTURES.plural, SERVICE_MONITORS.plural))


def generation(site: OperatorCluster) -> int:
    return int(site.cluster()["metadata"]["generation"])


def test_drift_is_reverted_within_seconds(available: OperatorCluster) -> None:
    """A user scales, edits and deletes objects manually (R-OP-13, R-OP-25, R-OP-66, AT-001-4)."""
    kubectl = available.administrator.kubectl
    before = available.administrator.there("clusterrole/lws-manager-role")["rules"]
    kubectl("scale", *MANAGER, "--replicas=5")
    kubectl("delete", "configmap/lws-manager-config", "networkpolicy/lws-controller-manager", *IN)
    kubectl("patch", "clusterrole/lws-manager-role", "--type=merge", "-p", '{"rules": []}')
    until(lambda: available.manager()["spec"]["replicas"] == 2, "replicas")
    until(lambda: available.administrator.get("configmap/lws-manager-config", *IN) is not None, "the ConfigMap")
    until(lambda: available.administrator.get("networkpolicy/lws-controller-manager", *IN) is not None, "the policy")
    until(lambda: available.administrator.there("clusterrole/lws-manager-role")["rules"] == before, "the rules")


def test_edited_lists_are_reverted(available: OperatorCluster) -> None:
    """Server-side apply alone does not remove an added port, or one of two volume sources (R-OP-25, R-OP-82)."""
    administrator = available.administrator
    services = ("lws-webhook-service", "lws-controller-manager-metrics-service")
    edits: list[tuple[str, str]] = [
        (f"service/{name}", '[{"op": "replace", "path": "/spec/ports/0/port", "value": 444}]') for name in services
    ]
    volume = '{"name": "tmp", "hostPath": {"path": "/tmp"}}'
    edits += [(MANAGER[0], f'[{{"op": "replace", "path": "/spec/template/spec/volumes/0", "value": {volume}}}]')]

    def lists() -> list[object]:
        found = [administrator.there(name, *IN)["spec"] for name, _ in edits]
        return [spec.get("ports") or spec["template"]["spec"]["volumes"] for spec in found]

    available.await_condition("Progressing", "False", "AsExpected")
    before = lists()
    for name, patch in edits:
        administrator.kubectl("patch", name, *IN, "--type=json", "-p", patch)
    until(lambda: lists() == before, "the lists as before")
    available.await_condition("TargetConfigControllerDegraded", "False", "AsExpected")


def test_log_level_and_node_placement_are_applied_and_removed(available: OperatorCluster) -> None:
    """Both settings are fields of the operator object (R-OP-20, R-OP-21, R-OP-43b, R-OP-66, AT-001-4)."""
    toleration = {"key": "infra", "operator": "Exists", "effect": "NoSchedule"}

    def pod_spec() -> dict[str, object]:
        spec: dict[str, object] = available.manager()["spec"]["template"]["spec"]
        return spec

    available.patch(
        logLevel="Debug", nodePlacement={"nodeSelector": {"kubernetes.io/os": "linux"}, "tolerations": [toleration]}
    )
    until(lambda: pod_spec().get("nodeSelector") == {"kubernetes.io/os": "linux"}, "the node selector")
    assert pod_spec()["tolerations"] == [toleration]
    assert "--zap-log-level=4" in available.manager()["spec"]["template"]["spec"]["containers"][0]["args"]
    available.patch(logLevel="Normal", nodePlacement=None)
    until(lambda: "nodeSelector" not in pod_spec() and "tolerations" not in pod_spec(), "no placement")


def test_renewed_certificate_rolls_the_manager(available: OperatorCluster) -> None:
    """The pods have an annotation with the hash of the certificate (R-OP-26, R-OP-66, AT-001-4)."""
    name = "secrets/webhook-server-cert"

    def hashed() -> str:
        return str(available.manager()["spec"]["template"]["metadata"]["annotations"][name])

    before = hashed()
    available.administrator.kubectl("delete", "secret/webhook-server-cert", *IN)
    certmanager.issue(available.administrator, SERVING, OPERATOR)
    until(lambda: hashed() != before, "another template")
    available.await_available()


@pytest.mark.parametrize("state", ["Unmanaged", "Removed"])
def test_unmanaged_operand_is_unchanged(available: OperatorCluster, state: str) -> None:
    """The operand can be scaled manually until it is managed (R-OP-24, R-OP-43d, R-OP-43e, R-OP-66, AT-001-4)."""
    available.patch(managementState=state)
    until(lambda: available.cluster()["status"]["observedGeneration"] == generation(available), "the state")
    available.administrator.kubectl("scale", *MANAGER, "--replicas=3")
    until(lambda: available.cluster()["status"].get("readyReplicas") == 3, "three replicas in the status")
    assert available.manager()["spec"]["replicas"] == 3
    available.patch(managementState="Managed")
    until(lambda: available.manager()["spec"]["replicas"] == 2, "two replicas")


def test_service_monitor_is_created_with_its_kind(available: OperatorCluster) -> None:
    """A missing kind is not an error, and its creation does not cause a restart (R-OP-23c)."""
    words = (f"{SERVICE_MONITORS.group_resource}/lws-controller-manager-metrics-monitor", *IN)
    kind = certmanager.definition(SERVICE_MONITORS)
    available.administrator.kubectl("apply", "--server-side", "-f", "-", objects=[kind])
    available.administrator.await_kind(SERVICE_MONITORS.plural)
    until(lambda: available.administrator.get(*words) is not None, "the ServiceMonitor")
    (endpoint,) = available.administrator.there(*words)["spec"]["endpoints"]
    assert endpoint["tlsConfig"]["serverName"] == f"lws-controller-manager-metrics-service.{OPERATOR}.svc"


def test_certificates_can_be_issued_by_the_manager(available: OperatorCluster) -> None:
    """The annotation selects the issuer, and objects of the other issuer are removed (R-OP-22, R-OP-83 (D4))."""
    issuer = ("issuers.cert-manager.io/lws-selfsigned-issuer", *IN)
    configuration = ("configmap/lws-manager-config", *IN)
    available.administrator.kubectl("annotate", OBJECT, "lws.x-k8s.io/certificates=internal")
    until(lambda: available.administrator.get(*issuer) is None, "no issuer")
    (text,) = available.administrator.there(*configuration)["data"].values()
    assert "enable: true" in text
    available.administrator.kubectl("annotate", OBJECT, "lws.x-k8s.io/certificates-")
    until(lambda: available.administrator.get(*issuer) is not None, "the issuer")


def configured(site: OperatorCluster) -> str:
    """Return the manager configuration as a string."""
    (text,) = site.administrator.there("configmap/lws-manager-config", *IN)["data"].values()
    return str(text)


def test_overrides_are_applied_or_rejected(available: OperatorCluster) -> None:
    """Overrides are merged into the configuration file, and the manager is updated.

    Invalid overrides have no effect (R-OP-41).
    """
    available.patch(unsupportedConfigOverrides={"clientConnection": {"qps": 20}})
    until(lambda: "qps: 20" in configured(available), "the override")
    until(lambda: available.conditions()["Upgradeable"] == ("False", "UnsupportedConfigOverrides"), "not upgradeable")
    available.patch(unsupportedConfigOverrides={"clientConnection": {"qps": None}, "replicas": 3})
    available.await_condition("TargetConfigControllerDegraded", "True", "SyncError")
    assert "qps: 20" in configured(available)
    available.patch(unsupportedConfigOverrides=None)
    until(lambda: "qps" not in configured(available), "no override")
    available.await_condition("Upgradeable", "True", "AsExpected")


def test_group_restarts_are_set_by_an_annotation(available: OperatorCluster) -> None:
    """The configuration file contains the restarts, and the pods are updated. `Upgradeable` does not change."""

    def annotate(words: str) -> None:
        available.administrator.kubectl("annotate", OBJECT, "--overwrite", f"lws.x-k8s.io/group-restarts{words}")

    before = available.manager()["spec"]["template"]["metadata"]["annotations"]
    annotate('={"releaseLostPodsAfter": "5m"}')
    until(lambda: "releaseLostPodsAfter: 5m" in configured(available), "the section")
    until(lambda: available.manager()["spec"]["template"]["metadata"]["annotations"] != before, "another template")
    annotate('={"releaseLostPodsAfter": "5 minutes"}')
    available.await_condition("TargetConfigControllerDegraded", "True", "SyncError")
    assert "releaseLostPodsAfter: 5m" in configured(available)
    assert available.conditions()["Upgradeable"] == ("True", "AsExpected")
    annotate("-")
    until(lambda: "groupRestarts" not in configured(available), "no section")
    available.await_condition("Degraded", "False", "AsExpected")


def test_tls_profile_of_the_cluster_is_applied(available: OperatorCluster) -> None:
    """After the OpenShift kind is served, the profile applies to the spec and the configuration (R-OP-28)."""
    kubectl = available.administrator.kubectl
    defined = definition(API_SERVERS) | {"metadata": {"name": API_SERVERS.group_resource}}
    defined["spec"]["scope"] = "Cluster"
    kubectl("apply", "--server-side", "-f", "-", objects=[defined])
    kubectl("wait", "--for=condition=established", f"crd/{API_SERVERS.group_resource}")
    profile = {
        "apiVersion": API_SERVERS.api_version,
        "kind": API_SERVERS.kind,
        "metadata": {"name": "cluster"},
        "spec": {"tlsSecurityProfile": {"type": "Modern"}},
    }
    kubectl("apply", "--server-side", "-f", "-", objects=[profile])
    until(lambda: "minVersion: VersionTLS13" in configured(available), "TLS 1.3")
    assert available.cluster()["spec"]["observedConfig"] == {"tls": {"minVersion": "VersionTLS13"}}
    kubectl("delete", "crd", API_SERVERS.group_resource)
    available.patch(observedConfig=None)
    until(lambda: "minVersion" not in configured(available), "no profile")


def test_removed_operand_is_deleted_if_enabled(available: OperatorCluster) -> None:
    """The operand is recreated when it is managed again (R-OP-24, R-OP-83 (D5))."""
    available.administrator.kubectl("annotate", OBJECT, "lws.x-k8s.io/remove-operand=true")
    available.patch(managementState="Removed")
    until(lambda: available.administrator.get(*MANAGER) is None, "no Deployment")
    until(lambda: owned(available) == {}, "nothing owned")
    assert available.administrator.get(DEFINITION) is not None
    until(lambda: "version" not in available.cluster()["status"], "no version")
    available.patch(managementState="Managed")
    until(lambda: available.administrator.get(*MANAGER) is not None, "the Deployment")
    available.administrator.kubectl("annotate", OBJECT, "lws.x-k8s.io/remove-operand-")


def test_must_gather_omits_secrets(available: OperatorCluster, tmp_path: Path) -> None:
    """`oc adm must-gather` runs this command in the image (R-OP-42)."""
    directory = tmp_path / "gathered"
    words = [sys.executable, "-IBu", str(PROGRAMS / "gather"), f"--dest-dir={directory}"]
    environment = os.environ | {"KUBECONFIG": str(available.administrator.plane.kubeconfig)}
    printed = subprocess.run(words, env=environment, check=True, capture_output=True, text=True).stdout
    assert printed.startswith(f"{directory}: ")
    namespace = directory / "namespaces" / OPERATOR
    cluster_wide = directory / "cluster-scoped-resources"
    for path in (
        cluster_wide / "operator.openshift.io/leaderworkersetoperators/cluster.yaml",
        cluster_wide / "rbac.authorization.k8s.io/clusterroles/lws-manager-role.yaml",
        namespace / "apps/deployments/lws-controller-manager.yaml",
        namespace / "cert-manager.io/certificates/lws-serving-cert.yaml",
        namespace / "core/secrets/webhook-server-cert.yaml",
    ):
        assert path.exists(), path
    key = available.administrator.there("secret/webhook-server-cert", *IN)["data"]["tls.key"]
    assert "a certificate that expires at" in (namespace / "core/secrets/webhook-server-cert.yaml").read_text()
    assert not [path for path in directory.rglob("*") if path.is_file() and key in path.read_text()]
    assert {path.stat().st_mode & 0o777 for path in directory.rglob("*") if path.is_file()} == {0o600}
    refused = available.administrator.lws("must-gather", "--dest-dir", str(directory), code=2)
    assert "is not empty" in refused


@pytest.mark.parametrize("words", [["install"], ["uninstall", "--keep-crd"]])
def test_installation_next_to_the_operator_is_rejected(available: OperatorCluster, words: list[str]) -> None:
    """The operator would revert the installation within seconds. The error message contains the alternative."""
    refused = available.administrator.lws(*words, "-n", OPERATOR, code=1)
    assert "the operator manages this installation" in refused


def test_definition_is_deleted_only_if_both_objects_allow(available: OperatorCluster) -> None:
    """A user who may edit the object may not annotate CRDs. The status has a warning (R-OP-30, R-OP-83 (D1))."""
    kubectl, name = available.administrator.kubectl, DEFINITION.partition("/")[2]

    def owners() -> int:
        return len(available.administrator.there(DEFINITION)["metadata"].get("ownerReferences") or [])

    kubectl("annotate", OBJECT, f"{DELETE_CRDS}=true")
    available.await_condition("DeletesDefinitions", "False", "NotConfirmed")
    assert owners() == 0
    words = ("--verb=delete", "--resource=customresourcedefinitions", f"--resource-name={name}")
    kubectl("create", "clusterrole", "deletes-definitions", *words)
    account = f"--serviceaccount={OPERATOR}:{OPERATOR}"
    kubectl("create", "clusterrolebinding", "deletes-definitions", "--clusterrole=deletes-definitions", account)
    kubectl("annotate", DEFINITION, f"{DELETE_CRDS}=true")
    available.await_condition("DeletesDefinitions", "True", "Annotated")
    until(lambda: owners() == 1, "the owner")
    kubectl("annotate", OBJECT, f"{DELETE_CRDS}-")
    until(lambda: owners() == 0, "no owner")
    available.await_condition("DeletesDefinitions", "False", "AsExpected")
    kubectl("annotate", DEFINITION, f"{DELETE_CRDS}-")
    kubectl("delete", "clusterrole/deletes-definitions", "clusterrolebinding/deletes-definitions")


def test_deleted_object_removes_the_operand_but_no_workloads(available: OperatorCluster) -> None:
    """The CRD and all LeaderWorkerSets remain.

    Rules: R-OP-30, R-OP-31, R-OP-67, R-OP-82, R-OP-83 (D1), AT-001-5.

    So another installer can install into another namespace, and the operator again after it.
    """
    administrator = available.administrator
    identity = administrator.there(DEFINITION)["metadata"]["uid"]
    administrator.kubectl("delete", OBJECT)
    until(lambda: administrator.get(*MANAGER) is None, "no Deployment")
    until(lambda: owned(available) == {}, "nothing owned")
    administrator.lws("install")
    administrator.lws("uninstall", "--keep-crd")
    available.create()
    available.await_available()
    assert administrator.there(DEFINITION)["metadata"]["uid"] == identity


def test_operator_was_not_denied_any_request(available: OperatorCluster) -> None:
    """The roles of the operator allow all its requests (R-OP-29, R-OP-32)."""
    refused = [
        f"{event['verb']} {event['requestURI']}"
        for event in available.administrator.audit.events()
        if event["annotations"].get("authorization.k8s.io/decision") == "forbid"
        or event.get("responseStatus", {}).get("code") == 403
    ]
    assert refused == []

"""Tests the objects of the operand, and the effect of the `cluster` object on them."""

from typing import Any

import pytest
import yaml
from tests.unit.leaderworkerset.operator.clusters import ISSUED, PLACE, cluster

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import CLUSTER_ROLE_BINDINGS, CONFIG_MAPS, DEPLOYMENTS, ROLE_BINDINGS, SERVICES
from leaderworkerset.install.installsettings import CERTIFICATES, ISSUERS, SERVICE_MONITORS
from leaderworkerset.install.operatornames import OWNED_BY, OWNED_LABEL, SPEC_HASH
from leaderworkerset.operator import operand, operatorspec
from leaderworkerset.operator.operand import ClusterState

HASHES = {name: operand.certificate_hash(secret) for name, secret in ISSUED.items()}


def build(found: JSONObject, hashes: dict[str, str] | None = None) -> operand.Objects:
    around = ClusterState(hashes=HASHES if hashes is None else hashes)
    return operand.build(PLACE, operatorspec.read(found), found, around)


def deployment(found: JSONObject, hashes: dict[str, str] | None = None) -> JSONObject:
    return dict(build(found, hashes))[DEPLOYMENTS]


def template(found: JSONObject, hashes: dict[str, str] | None = None) -> JSONObject:
    pod: JSONObject = deployment(found, hashes)["spec"]["template"]
    return pod


def test_every_object_is_labeled_and_hashed() -> None:
    """Each object has labels and a hash (R-OP-25, R-OP-75)."""
    for _, obj in build(cluster()):
        assert meta.labels(obj)[OWNED_LABEL] == OWNED_BY
        assert len(meta.annotations(obj)[SPEC_HASH]) == 64


def test_every_kind_of_the_operand_has_a_position() -> None:
    """This applies to both certificate issuers. A kind without a position would never be watched."""
    for annotations in ({}, {"lws.x-k8s.io/certificates": "internal"}):
        assert {kind for kind, _ in build(cluster(annotations))} <= set(operand.ORDER)


@pytest.mark.parametrize(
    ("level", "verbosity"), [("Normal", 2), ("Debug", 4), ("Trace", 6), ("TraceAll", 9), ("", 2), ("other", 2)]
)
def test_log_level_is_an_argument(level: str, verbosity: int) -> None:
    """The log level is a command-line argument (R-OP-20)."""
    (container,) = template(cluster(logLevel=level))["spec"]["containers"]
    assert container["args"] == ["--config=/controller_manager_config.yaml", f"--zap-log-level={verbosity}"]
    assert container["image"] == PLACE.image
    assert container["command"] == ["/manager"]


def test_log_format_is_set_by_an_annotation() -> None:
    (container,) = template(cluster({"lws.x-k8s.io/log-format": "json"}))["spec"]["containers"]
    assert container["args"][1:] == ["--zap-log-level=2", "--zap-encoder=json"]
    (container,) = template(cluster({"lws.x-k8s.io/log-format": "console"}))["spec"]["containers"]
    assert container["args"][1:] == ["--zap-log-level=2"]


TOLERATION = {"key": "gpu", "operator": "Exists"}


@pytest.mark.parametrize(
    ("placement", "expected"),
    [
        (None, {}),
        ({}, {}),
        ({"nodeSelector": {}}, {}),
        ({"nodeSelector": {"pool": "infra"}}, {"nodeSelector": {"pool": "infra"}}),
        ({"tolerations": []}, {"tolerations": []}),
        ({"tolerations": [TOLERATION]}, {"tolerations": [TOLERATION]}),
        (
            {"nodeSelector": {"pool": "infra"}, "tolerations": [TOLERATION]},
            {"nodeSelector": {"pool": "infra"}, "tolerations": [TOLERATION]},
        ),
    ],
)
def test_node_placement_replaces_the_given_fields(placement: JSONObject | None, expected: JSONObject) -> None:
    """The test covers the seven cases of the contract (R-OP-21, R-OP-43)."""
    found = cluster() if placement is None else cluster(nodePlacement=placement)
    pod = template(found)["spec"]
    assert {name: pod[name] for name in ("nodeSelector", "tolerations") if name in pod} == expected


def test_operand_has_two_replicas() -> None:
    """The operand has two replicas (R-OP-20)."""
    assert deployment(cluster())["spec"]["replicas"] == 2


def test_certificate_and_configuration_changes_roll_the_pods() -> None:
    """The keys equal the Go operator's keys. Content hashes replace resource versions (R-OP-26)."""
    before = template(cluster())["metadata"]["annotations"]
    names = {"secrets/webhook-server-cert", "secrets/metrics-server-cert", "configmaps/lws-manager-config"}
    assert names <= before.keys()
    renewed = template(cluster(), HASHES | {"webhook-server-cert": "renewed"})["metadata"]["annotations"]
    assert {name for name in names if renewed[name] != before[name]} == {"secrets/webhook-server-cert"}


def test_certificate_hash_depends_on_the_content_only() -> None:
    """A label on the Secret does not cause a restart (R-OP-26, R-OP-82)."""
    secret = {"metadata": {"resourceVersion": "1"}, "data": {"tls.crt": "a", "tls.key": "b"}}
    relabeled = secret | {"metadata": {"resourceVersion": "2", "labels": {"x": "y"}}}
    assert operand.certificate_hash(secret) == operand.certificate_hash(relabeled) != ""


def test_certificates_name_the_services_of_the_namespace() -> None:
    """All names depend on the namespace, as in the ServiceMonitor (R-OP-17, R-OP-23, R-OP-82)."""
    objects = {(kind, meta.name(obj)): obj for kind, obj in build(cluster())}
    serving = objects[CERTIFICATES, "lws-serving-cert"]["spec"]
    assert serving["dnsNames"] == [
        "lws-webhook-service.operators.svc",
        "lws-webhook-service.operators.svc.cluster.local",
    ]
    assert serving["issuerRef"] == {"group": "cert-manager.io", "kind": "Issuer", "name": "lws-selfsigned-issuer"}
    assert objects[CERTIFICATES, "lws-metrics-cert"]["spec"]["commonName"] == "lws-metrics"
    assert objects[ISSUERS, "lws-selfsigned-issuer"]["spec"] == {"selfSigned": {}}
    (endpoint,) = objects[SERVICE_MONITORS, "lws-controller-manager-metrics-monitor"]["spec"]["endpoints"]
    assert endpoint["tlsConfig"]["serverName"] == "lws-controller-manager-metrics-service.operators.svc"
    assert endpoint["path"] == "/metrics"


def test_webhooks_call_the_namespace_and_get_an_authority() -> None:
    """Webhooks refer to the namespace, and a CA bundle is injected (R-OP-18)."""
    for kind, obj in build(cluster()):
        if kind.plural.endswith("webhookconfigurations"):
            assert meta.annotations(obj)["cert-manager.io/inject-ca-from"] == "operators/lws-serving-cert"
            assert {one["clientConfig"]["service"]["namespace"] for one in obj["webhooks"]} == {"operators"}


def test_certificates_are_mounted() -> None:
    """The certificates are mounted into the pods (R-OP-20)."""
    pod = template(cluster())["spec"]
    secrets = {one["secret"]["secretName"] for one in pod["volumes"] if "secret" in one}
    assert secrets == {"webhook-server-cert", "metrics-server-cert"}
    (configuration,) = [obj for kind, obj in build(cluster()) if kind == CONFIG_MAPS]
    assert "enable: false" in configuration["data"]["controller_manager_config.yaml"]


def test_roles_are_bound_to_the_account_of_the_namespace() -> None:
    """The permission to read metrics is assigned to the scraper, not to the manager (R-OP-15)."""
    bindings = {meta.name(obj): obj["subjects"] for kind, obj in build(cluster()) if kind == CLUSTER_ROLE_BINDINGS}
    (reader,) = bindings.pop("lws-metrics-reader-rolebinding")
    assert (reader["name"], reader["namespace"]) == ("prometheus-k8s", "openshift-monitoring")
    assert {(one["name"], one["namespace"]) for subjects in bindings.values() for one in subjects} == {
        ("lws-controller-manager", "operators")
    }


def test_prometheus_role_is_bound_to_accounts_of_openshift() -> None:
    """The Prometheus role is bound to OpenShift ServiceAccounts (R-OP-15)."""
    objects = {meta.name(obj): obj for kind, obj in build(cluster()) if kind == ROLE_BINDINGS}
    bound = {name: [(one["name"], one["namespace"]) for one in obj["subjects"]] for name, obj in objects.items()}
    assert bound == {
        "lws-leader-election-rolebinding": [("lws-controller-manager", "operators")],
        "lws-prometheus-k8s": [
            ("prometheus-k8s", "openshift-monitoring"),
            ("prometheus-operator", "openshift-monitoring"),
        ],
    }


def test_namespaced_objects_are_in_the_operator_namespace() -> None:
    """Namespaced objects are created in the operator's namespace (R-OP-10)."""
    for kind, obj in build(cluster()):
        assert meta.namespace(obj) == (PLACE.namespace if kind.namespaced else "")


MEMBERS = {"matchExpressions": [{"key": "leaderworkerset.sigs.k8s.io/name", "operator": "Exists"}]}
OF_SETS = "leaderworkerset-x-k8s-io-v1-leaderworkerset"
OF_DISAGGREGATED = "disaggregatedset-x-k8s-io-v1-disaggregatedset"


def test_webhooks_equal_those_of_the_go_operator() -> None:
    """Webhooks equal the webhooks of the Go operator (R-OP-19)."""
    found = {
        one["name"]: (
            one["clientConfig"]["service"]["path"],
            one["rules"],
            one.get("objectSelector"),
            (one["failurePolicy"], one["sideEffects"], one["admissionReviewVersions"]),
            one.keys() & {"timeoutSeconds", "matchPolicy"},
        )
        for kind, obj in build(cluster())
        if kind.plural.endswith("webhookconfigurations")
        for one in obj["webhooks"]
    }

    def rules(group: str, plural: str, *operations: str) -> list[dict[str, list[str]]]:
        head = {"apiGroups": [group], "apiVersions": ["v1"]}
        return [{**head, "operations": list(operations), "resources": [plural]}]

    sets = rules("leaderworkerset.x-k8s.io", "leaderworkersets", "CREATE", "UPDATE")
    disaggregated = rules("disaggregatedset.x-k8s.io", "disaggregatedsets", "CREATE", "UPDATE")
    common: tuple[Any, ...] = (("Fail", "None", ["v1"]), set())
    assert found == {
        "mleaderworkerset.kb.io": (f"/mutate-{OF_SETS}", sets, None, *common),
        "mpod.kb.io": ("/mutate--v1-pod", rules("", "pods", "CREATE"), MEMBERS, *common),
        "vleaderworkerset.kb.io": (f"/validate-{OF_SETS}", sets, None, *common),
        "vpod.kb.io": ("/validate--v1-pod", rules("", "pods", "CREATE", "UPDATE"), MEMBERS, *common),
        "vdisaggregatedset.kb.io": (f"/validate-{OF_DISAGGREGATED}", disaggregated, None, *common),
    }


def test_pods_equal_those_of_the_go_operator() -> None:
    """Pods equal the pods of the Go operator (R-OP-20)."""
    labels = {
        "app.kubernetes.io/name": "lws",
        "app.kubernetes.io/instance": "lws",
        "control-plane": "controller-manager",
    }
    assert deployment(cluster())["spec"]["selector"] == {"matchLabels": labels}
    assert template(cluster())["metadata"]["labels"] == labels
    pod = template(cluster())["spec"]
    (container,) = pod["containers"]
    assert (pod["serviceAccountName"], pod["terminationGracePeriodSeconds"]) == ("lws-controller-manager", 10)
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
    }
    assert container["name"] == "manager"
    assert {one["name"]: one["containerPort"] for one in container["ports"]} == {
        "metrics": 8443,
        "webhook-server": 9443,
    }
    probes = {
        name: (one["httpGet"], one["initialDelaySeconds"], one["periodSeconds"])
        for name, one in container.items()
        if name.endswith("Probe")
    }
    assert probes == {
        "livenessProbe": ({"path": "/healthz", "port": 8081}, 15, 20),
        "readinessProbe": ({"path": "/readyz", "port": 8081}, 5, 10),
    }
    assert container["resources"]["requests"] == {"cpu": "100m", "memory": "1Gi"}


def test_pods_mount_configuration_and_certificates() -> None:
    """Pods mount the configuration and the certificates (R-OP-20)."""
    pod = template(cluster())["spec"]
    volumes = {one["name"]: one for one in pod["volumes"]}
    (container,) = pod["containers"]
    mounted = {one["mountPath"]: (volumes[one["name"]], one.get("subPath")) for one in container["volumeMounts"]}
    configuration, key = mounted["/controller_manager_config.yaml"]
    assert (configuration["configMap"], key) == ({"name": "lws-manager-config"}, "controller_manager_config.yaml")
    serving, _ = mounted["/tmp/k8s-webhook-server/serving-certs"]
    assert serving["secret"] == {"secretName": "webhook-server-cert", "defaultMode": 0o644}
    metrics, _ = mounted["/tmp/k8s-metrics-server/serving-certs"]
    assert metrics["secret"] == {
        "secretName": "metrics-server-cert",
        "items": [{"key": name, "path": name} for name in ("ca.crt", "tls.crt", "tls.key")],
        "optional": False,
    }


def test_manager_configuration_names_the_certificate_issuer() -> None:
    """The manager configuration contains the certificate issuer (R-OP-20)."""
    (config,) = [obj for kind, obj in build(cluster()) if kind == CONFIG_MAPS]
    assert yaml.safe_load(config["data"]["controller_manager_config.yaml"]) == {
        "apiVersion": "config.lws.x-k8s.io/v1",
        "kind": "Configuration",
        "leaderElection": {"leaderElect": True},
        "internalCertManagement": {"enable": False},
    }


def test_services_have_ports_of_webhooks_and_metrics() -> None:
    """Both Services have their ports (R-OP-15)."""
    ports = {meta.name(obj): obj["spec"]["ports"] for kind, obj in build(cluster()) if kind == SERVICES}
    assert ports == {
        "lws-webhook-service": [{"port": 443, "targetPort": 9443, "protocol": "TCP"}],
        "lws-controller-manager-metrics-service": [
            {"name": "https", "port": 8443, "targetPort": 8443, "protocol": "TCP"}
        ],
    }


def test_two_managers_are_spread_and_evicted_one_by_one() -> None:
    """Two managers run on different nodes, and are evicted one at a time (R-OP-73, R-OP-82)."""
    constraints = template(cluster())["spec"]["topologySpreadConstraints"]
    keys = [(one["topologyKey"], one["whenUnsatisfiable"]) for one in constraints]
    assert keys == [
        ("kubernetes.io/hostname", "ScheduleAnyway"),
        ("topology.kubernetes.io/zone", "ScheduleAnyway"),
    ]
    (budget,) = [obj for kind, obj in build(cluster()) if kind.kind == "PodDisruptionBudget"]
    assert budget["spec"]["maxUnavailable"] == 1
    assert template(cluster())["spec"]["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}


def test_metrics_are_scraped_with_tls() -> None:
    """The URL has one slash. The request uses the scraper's token and the certificate's CA (R-OP-23, R-OP-82)."""
    (monitor,) = [obj for kind, obj in build(cluster()) if kind == SERVICE_MONITORS]
    (endpoint,) = monitor["spec"]["endpoints"]
    assert monitor["spec"]["selector"]["matchLabels"]["control-plane"] == "controller-manager"
    assert endpoint == {
        "port": "https",
        "scheme": "https",
        "path": "/metrics",
        "honorLabels": True,
        "bearerTokenFile": "/var/run/secrets/kubernetes.io/serviceaccount/token",
        "tlsConfig": {
            "ca": {"secret": {"name": "metrics-server-cert", "key": "ca.crt"}},
            "serverName": "lws-controller-manager-metrics-service.operators.svc",
        },
    }


@pytest.mark.parametrize("placement", [5, {"tolerations": 5}, {"tolerations": [5]}, {"nodeSelector": "a"}])
def test_invalid_placement_is_ignored(placement: Any) -> None:
    assert operatorspec.read(cluster(nodePlacement=placement)).placement == operatorspec.read(cluster()).placement

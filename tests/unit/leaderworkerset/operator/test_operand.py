"""The objects of the operand: what the object `cluster` changes of them."""

from typing import Any

import pytest
from tests.unit.leaderworkerset.operator.clusters import ISSUED, PLACE, cluster

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import CLUSTER_ROLE_BINDINGS, CONFIG_MAPS, DEPLOYMENTS
from leaderworkerset.install.foreign import CERTIFICATES, ISSUERS, SERVICE_MONITORS
from leaderworkerset.kinds.managed import MANAGED
from leaderworkerset.operator import desired, operand
from leaderworkerset.operator.operand import Surroundings
from leaderworkerset.operator.operatornames import OWNED_BY, OWNED_LABEL, SPEC_HASH

HASHES = {name: operand.certificate_hash(secret) for name, secret in ISSUED.items()}


def build(found: JSONObject, hashes: dict[str, str] | None = None) -> operand.Objects:
    around = Surroundings(hashes=HASHES if hashes is None else hashes)
    return operand.build(MANAGED, PLACE, desired.read(found), found, around)


def deployment(found: JSONObject, hashes: dict[str, str] | None = None) -> JSONObject:
    return dict(build(found, hashes))[DEPLOYMENTS]


def template(found: JSONObject, hashes: dict[str, str] | None = None) -> JSONObject:
    pod: JSONObject = deployment(found, hashes)["spec"]["template"]
    return pod


def test_every_object_is_labeled_and_hashed() -> None:
    """R-OP-25, R-OP-75."""
    for _, obj in build(cluster()):
        assert meta.labels(obj)[OWNED_LABEL] == OWNED_BY
        assert len(meta.annotations(obj)[SPEC_HASH]) == 64


def test_every_kind_of_the_operand_has_its_place() -> None:
    """Both choices of certificates: a kind without a place would never be watched."""
    for annotations in ({}, {"lws.x-k8s.io/certificates": "internal"}):
        assert {kind for kind, _ in build(cluster(annotations))} <= set(operand.ORDER)


@pytest.mark.parametrize(
    ("level", "verbosity"), [("Normal", 2), ("Debug", 4), ("Trace", 6), ("TraceAll", 9), ("", 2), ("other", 2)]
)
def test_the_log_level_is_an_argument(level: str, verbosity: int) -> None:
    """R-OP-20."""
    (container,) = template(cluster(logLevel=level))["spec"]["containers"]
    assert container["args"] == ["--config=/controller_manager_config.yaml", f"--zap-log-level={verbosity}"]
    assert container["image"] == PLACE.image
    assert container["command"] == ["/manager"]


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
def test_node_placement_replaces_what_it_names(placement: JSONObject | None, expected: JSONObject) -> None:
    """R-OP-21: the seven cases of R-OP-43."""
    found = cluster() if placement is None else cluster(nodePlacement=placement)
    pod = template(found)["spec"]
    assert {name: pod[name] for name in ("nodeSelector", "tolerations") if name in pod} == expected


def test_two_replicas_are_fixed() -> None:
    """R-OP-20."""
    assert deployment(cluster())["spec"]["replicas"] == 2


def test_certificate_and_configuration_roll_the_deployment_by_content() -> None:
    """R-OP-26: the keys of the Go operator, and hashes of contents in place of resource versions."""
    before = template(cluster())["metadata"]["annotations"]
    names = {"secrets/webhook-server-cert", "secrets/metrics-server-cert", "configmaps/lws-manager-config"}
    assert names <= before.keys()
    renewed = template(cluster(), HASHES | {"webhook-server-cert": "renewed"})["metadata"]["annotations"]
    assert {name for name in names if renewed[name] != before[name]} == {"secrets/webhook-server-cert"}


def test_only_the_content_of_a_certificate_counts() -> None:
    """R-OP-26: a label on the secret restarts nobody."""
    secret = {"metadata": {"resourceVersion": "1"}, "data": {"tls.crt": "a", "tls.key": "b"}}
    relabeled = secret | {"metadata": {"resourceVersion": "2", "labels": {"x": "y"}}}
    assert operand.certificate_hash(secret) == operand.certificate_hash(relabeled) != ""


def test_certificates_are_for_the_services_of_this_namespace() -> None:
    """R-OP-17, R-OP-23: every name follows the namespace, that of the ServiceMonitor's server, too."""
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


def test_webhooks_are_called_in_this_namespace_and_get_their_authority_injected() -> None:
    """R-OP-18."""
    for kind, obj in build(cluster()):
        if kind.plural.endswith("webhookconfigurations"):
            assert meta.annotations(obj)["cert-manager.io/inject-ca-from"] == "operators/lws-serving-cert"
            assert {one["clientConfig"]["service"]["namespace"] for one in obj["webhooks"]} == {"operators"}


def test_the_certificates_are_mounted() -> None:
    """R-OP-20."""
    pod = template(cluster())["spec"]
    secrets = {one["secret"]["secretName"] for one in pod["volumes"] if "secret" in one}
    assert secrets == {"webhook-server-cert", "metrics-server-cert"}
    (configuration,) = [obj for kind, obj in build(cluster()) if kind == CONFIG_MAPS]
    assert "enable: false" in configuration["data"]["controller_manager_config.yaml"]


def test_roles_are_bound_to_the_account_of_this_namespace() -> None:
    """R-OP-15."""
    subjects = [one for kind, obj in build(cluster()) if kind == CLUSTER_ROLE_BINDINGS for one in obj["subjects"]]
    assert {(one["name"], one["namespace"]) for one in subjects} == {("lws-controller-manager", "operators")}


@pytest.mark.parametrize("placement", [5, {"tolerations": 5}, {"tolerations": [5]}, {"nodeSelector": "a"}])
def test_a_placement_that_the_schema_refuses_means_none(placement: Any) -> None:
    assert desired.read(cluster(nodePlacement=placement)).placement == desired.read(cluster()).placement

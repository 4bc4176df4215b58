"""Tests the plans for the `cluster` object, depending on the existing objects."""

from copy import deepcopy
from typing import Any

import pytest
from tests.unit.leaderworkerset.operator.clusters import (
    ALL,
    ISSUED,
    PLACE,
    actions,
    applied,
    cluster,
    conditions,
    deleted,
    failure_of,
    installed,
    observed,
    plan,
    status_of,
)

from kuberuntime.controller.contention import content_hash, describe_conflicts, write_target
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import (
    CLUSTER_ROLES,
    CONFIG_MAPS,
    CUSTOM_RESOURCE_DEFINITIONS,
    DEPLOYMENTS,
    SERVICES,
    Resource,
)
from kuberuntime.plan import Apply, Delete, Plan, Put
from leaderworkerset.api import metadata
from leaderworkerset.install import certmanager
from leaderworkerset.install.installsettings import SERVICE_MONITORS, InstallSettings
from leaderworkerset.install.objects import build_all
from leaderworkerset.install.operatornames import CERTIFICATES, DELETE_CRDS, OWNED_BY, OWNED_LABEL, REMOVE_OPERAND
from leaderworkerset.kinds.managedkinds import MANAGED
from leaderworkerset.operator import operand

ORDER = [
    "ClusterRole/lws-manager-role",
    "ClusterRole/lws-proxy-role",
    "ClusterRole/lws-metrics-reader",
    "ClusterRoleBinding/lws-manager-rolebinding",
    "ClusterRoleBinding/lws-proxy-rolebinding",
    "ClusterRoleBinding/lws-metrics-reader-rolebinding",
    "Role/lws-leader-election-role",
    "Role/lws-prometheus-k8s",
    "RoleBinding/lws-leader-election-rolebinding",
    "RoleBinding/lws-prometheus-k8s",
    "Service/lws-webhook-service",
    "Service/lws-controller-manager-metrics-service",
    "Issuer/lws-selfsigned-issuer",
    "Certificate/lws-serving-cert",
    "Certificate/lws-metrics-cert",
    "ConfigMap/lws-manager-config",
    "ServiceAccount/lws-controller-manager",
    "NetworkPolicy/lws-controller-manager",
    "PodDisruptionBudget/lws-controller-manager",
    "MutatingWebhookConfiguration/lws-mutating-webhook-configuration",
    "ValidatingWebhookConfiguration/lws-validating-webhook-configuration",
    "ServiceMonitor/lws-controller-manager-metrics-monitor",
    "Deployment/lws-controller-manager",
]


def without_definitions(names: list[str]) -> list[str]:
    return [name for name in names if not name.startswith("CustomResourceDefinition/")]


def test_sync_does_nothing_without_the_object() -> None:
    """No objects are created if the object is being deleted (R-OP-31)."""
    assert plan(observed(None)) == Plan()


def test_sync_does_nothing_while_the_object_is_deleted() -> None:
    """The garbage collector removes the owned objects (R-OP-30)."""
    found = cluster()
    found["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert plan(observed(found)) == Plan()


def test_objects_are_applied_in_order() -> None:
    """Objects are applied in order (R-OP-15)."""
    names = applied(plan(observed(cluster())))
    assert without_definitions(names) == ORDER
    config, definition = "ConfigMap/lws-manager-config", "CustomResourceDefinition/leaderworkersets."
    place = next(index for index, name in enumerate(names) if name.startswith(definition))
    assert names.index(config) < place < names.index("ServiceAccount/lws-controller-manager")


def test_sync_writes_nothing_at_rest() -> None:
    """An unchanged status is not written. All objects are compared every five minutes (R-OP-7, R-OP-13)."""
    found = cluster()
    live = installed(found)
    settled = cluster(status=status_of(plan(observed(found, live))))
    again = plan(observed(settled, live))
    assert again.actions == ()
    assert again.requeue_after == 300


def test_missing_object_is_created_and_reported() -> None:
    """A missing object is created and reported (R-OP-14, R-OP-25)."""
    found = cluster()
    live = dict(installed(found))
    del live[SERVICES, ObjectKey("operators", "lws-webhook-service")]
    (again,) = [one for one in actions(plan(observed(found, live))) if isinstance(one, Apply | Put)]
    assert [event.reason for event in again.on_success] == ["ServiceCreated"]
    assert again.on_success[0].note.startswith("Created Service/lws-webhook-service -n operators")
    assert [event.reason for event in again.on_failure] == ["ServiceCreateFailed"]
    assert again.on_success[0].regarding["namespace"] == "operators"


DRIFT: dict[str, tuple[Resource, str, dict[str, Any]]] = {
    "a scaled Deployment": (DEPLOYMENTS, "lws-controller-manager", {"spec": {"replicas": 5}}),
    "an edited role": (CLUSTER_ROLES, "lws-manager-role", {"rules": []}),
    "an edited port": (SERVICES, "lws-webhook-service", {"spec": {"ports": [{"port": 444}]}}),
}


@pytest.mark.parametrize(("kind", "name", "change"), DRIFT.values(), ids=DRIFT)
def test_drift_is_reverted(kind: Resource, name: str, change: dict[str, Any]) -> None:
    """An example is the port of a Service, whose drift the Go operator ignores (R-OP-14, R-OP-25, R-OP-82)."""
    found = cluster()
    live = dict(installed(found))
    key = next(key for one, key in live if one == kind and key.name == name)
    obj = live[kind, key]
    live[kind, key] = obj | {
        field: {**obj[field], **new} if isinstance(new, dict) else new for field, new in change.items()
    }
    again = plan(observed(found, live))
    assert applied(again) == [f"{kind.kind}/{name}"]
    (action,) = [one for one in actions(again) if isinstance(one, Apply | Put)]
    reasons = [event.reason for event in (*action.on_success, *action.on_failure)]
    assert reasons == [f"{kind.kind}Updated", f"{kind.kind}UpdateFailed"]


def test_drift_that_another_writer_repeats_is_slowed_down() -> None:
    """Replacements are counted together, regardless of the object's version.

    The other writer is reported (LWS-E120).
    """
    found = cluster()
    live = dict(installed(found))
    key = next(key for one, key in live if one == DEPLOYMENTS)
    drifted = deepcopy(live[DEPLOYMENTS, key])
    (container,) = drifted["spec"]["template"]["spec"]["containers"]
    container["image"] = "mirror.example/lws"
    fields: JSONObject = {"f:image": {}}
    for name in (f'k:{{"name":"{container["name"]}"}}', "f:containers", "f:spec", "f:template", "f:spec"):
        fields = {name: fields}
    entry = {"manager": "argocd", "operation": "Update", "fieldsV1": fields}
    puts = []
    for version in (1, 2):
        drifted["metadata"] |= {"generation": version, "resourceVersion": str(version), "managedFields": [entry]}
        live[DEPLOYMENTS, key] = deepcopy(drifted)
        puts += [one for one in actions(plan(observed(found, live))) if isinstance(one, Put)]
    first, second = puts
    assert (write_target(first), content_hash(first)) == (write_target(second), content_hash(second))
    assert describe_conflicts(second, drifted) == (
        f"spec.template.spec.containers[name={container['name']}].image is written by this process and by argocd (Update)"
    )
    assert [(event.type, event.reason) for event in second.on_contention] == [("Warning", "FieldContention")]


def test_owner_references_contain_the_uid_of_a_recreated_owner() -> None:
    """The owner reference contains the new UID (R-OP-31)."""
    before, after = cluster(), cluster()
    after["metadata"]["uid"] = "u-new"
    found = [one.object for one in actions(plan(observed(after, installed(before)))) if isinstance(one, Apply | Put)]
    assert [f"{obj['kind']}/{meta.name(obj)}" for obj in found] == ORDER
    assert {owner["uid"] for obj in found for owner in meta.metadata(obj)["ownerReferences"]} == {"u-new"}


def test_additions_of_others_are_kept() -> None:
    """An injected CA bundle, labels and annotations are unchanged, and there are no writes (R-OP-18, R-OP-25)."""
    found = cluster()
    live = {
        key: obj | {"metadata": obj["metadata"] | {"annotations": {**meta.annotations(obj), "theirs": "kept"}}}
        for key, obj in installed(found).items()
    }
    for (kind, _), obj in live.items():
        if kind.plural.endswith("webhookconfigurations"):
            for webhook in obj["webhooks"]:
                webhook["clientConfig"] = webhook["clientConfig"] | {"caBundle": "injected"}
    assert applied(plan(observed(found, live))) == []


def test_missing_cert_manager_prevents_the_installation() -> None:
    """If cert-manager is not installed, the operand is not installed (R-OP-22)."""
    again = plan(observed(cluster(), served=()))
    assert applied(again) == []
    found = conditions(status_of(again))
    assert found["Degraded"] == ("True", "MissingDependency")
    assert found["TargetConfigControllerDegraded"] == ("True", "SyncError")
    assert found["Available"] == ("False", "DeploymentUnavailable")
    texts = [one["message"] for one in status_of(again)["conditions"] if one["type"] == "Degraded"]
    assert "cert-manager" in texts[0]


def test_removed_cert_manager_leaves_the_operand_running() -> None:
    """A running operand continues. `Degraded` reports the missing dependency (R-OP-22)."""
    found = cluster()
    again = plan(observed(found, installed(found), served=()))
    assert (applied(again), deleted(again)) == ([], [])
    assert conditions(status_of(again))["Available"] == ("True", "AsExpected")
    assert conditions(status_of(again))["Degraded"] == ("True", "MissingDependency")


def test_internal_certificates_need_no_cert_manager() -> None:
    """An annotation selects internal certificates (R-OP-22, R-OP-83 (D4))."""
    again = plan(observed(cluster({CERTIFICATES: "internal"}), secrets={}, served=()))
    names = applied(again)
    assert "Secret/lws-webhook-server-cert" in names
    assert names[-1] == "Deployment/lws-controller-manager"
    assert not [name for name in names if name.startswith(("Issuer", "Certificate/"))]


@pytest.mark.parametrize(
    ("secrets", "last"),
    [
        ({}, "Certificate/lws-serving-cert"),
        ({certmanager.SERVING_SECRET: ISSUED[certmanager.SERVING_SECRET]}, "Certificate/lws-metrics-cert"),
        (
            {**ISSUED, certmanager.METRICS_SECRET: {"data": {"tls.crt": "", "tls.key": ""}}},
            "Certificate/lws-metrics-cert",
        ),
    ],
)
def test_pending_certificate_delays_later_objects(secrets: Any, last: str) -> None:
    """A pending certificate delays the subsequent objects (R-OP-15, R-OP-17)."""
    again = plan(observed(cluster(), secrets=secrets))
    assert applied(again)[-1] == last
    found = conditions(status_of(again))
    assert found["TargetConfigControllerDegraded"] == ("True", "SyncError")
    assert "Degraded" not in found


def test_missing_service_monitor_kind_is_not_an_error() -> None:
    """If the ServiceMonitor kind is not installed, there is no error (R-OP-23c, R-OP-82)."""
    served = ALL - {SERVICE_MONITORS.group_resource}
    again = plan(observed(cluster(), served=served))
    assert without_definitions(applied(again)) == [name for name in ORDER if not name.startswith("ServiceMonitor")]
    status = status_of(again)
    assert conditions(status)["Degraded"] == ("False", "AsExpected")
    texts = [one["message"] for one in status["conditions"] if one["type"] == "Progressing"]
    assert "ServiceMonitor" in texts[0]


@pytest.mark.parametrize("state", ["Unmanaged", "Removed", "Force"])
def test_unmanaged_operand_is_only_reported(state: str) -> None:
    """The conditions are current, unlike in the Go operator (R-OP-6, R-OP-24, R-OP-82)."""
    found = cluster(managementState=state)
    again = plan(observed(found, installed(cluster())))
    assert (applied(again), deleted(again)) == ([], [])
    assert conditions(status_of(again))["Available"] == ("True", "AsExpected")
    assert conditions(status_of(again))["TargetConfigControllerDegraded"] == ("False", "AsExpected")


def test_removed_state_deletes_the_operand_when_requested() -> None:
    """Webhooks are deleted first. CRDs are never deleted (R-OP-24, R-OP-31, R-OP-83 (D5))."""
    found = cluster({REMOVE_OPERAND: "true"}, managementState="Removed")
    live = installed(found)
    names = deleted(plan(observed(found, live)))
    assert names[:2] == [
        "ValidatingWebhookConfiguration/lws-validating-webhook-configuration",
        "MutatingWebhookConfiguration/lws-mutating-webhook-configuration",
    ]
    assert names[2] == "Deployment/lws-controller-manager"
    assert sorted(names) == sorted(ORDER)


def test_internal_certificates_remove_cert_manager_objects() -> None:
    """No issuer remains. Unlike in the Go operator, each deletion causes an event (R-OP-14, R-OP-75)."""
    live = installed(cluster())
    again = plan(observed(cluster({CERTIFICATES: "internal"}), live))
    reasons = [event.reason for one in actions(again) if isinstance(one, Delete) for event in one.on_success]
    assert sorted(reasons) == ["CertificateDeleted", "CertificateDeleted", "IssuerDeleted"]
    assert sorted(deleted(again)) == [
        "Certificate/lws-metrics-cert",
        "Certificate/lws-serving-cert",
        "Issuer/lws-selfsigned-issuer",
    ]


def left_by_an_installer() -> dict[tuple[Resource, ObjectKey], dict[str, Any]]:
    """Return the objects of `lws install` in the operator's namespace, as an API server stores them."""
    objects = build_all(MANAGED, InstallSettings(namespace=PLACE.namespace))
    return {
        (kind, meta.key(obj)): obj | {"metadata": obj["metadata"] | {"uid": f"u-{meta.name(obj)}"}}
        for kind, obj in objects
        if kind in operand.ORDER
    }


def test_installation_by_the_command_is_adopted() -> None:
    """cert-manager now issues certificates, so the manager's own role and Secret are deleted (R-OP-75)."""
    again = plan(observed(cluster(), left_by_an_installer()))
    assert sorted(deleted(again)) == [
        "Role/lws-certificates-role",
        "RoleBinding/lws-certificates-rolebinding",
        "Secret/lws-webhook-server-cert",
    ]
    assert without_definitions(applied(again)) == ORDER
    internal = cluster({CERTIFICATES: "internal"})
    assert deleted(plan(observed(internal, left_by_an_installer(), secrets={}))) == []


@pytest.mark.parametrize("owned", [{}, {OWNED_LABEL: OWNED_BY}])
@pytest.mark.parametrize("found", [cluster(), cluster({REMOVE_OPERAND: "true"}, managementState="Removed")])
def test_labeled_objects_of_others_are_kept(found: dict[str, Any], owned: dict[str, str]) -> None:
    """Only objects of an installation may be deleted, because a rejected deletion would abort each sync."""
    name = ObjectKey(PLACE.namespace, "theirs")
    labels = {**metadata.LABELS, **owned}
    theirs = {"metadata": {"name": name.name, "namespace": name.namespace, "labels": labels, "uid": "u"}}
    again = plan(observed(found, {**installed(cluster()), (CONFIG_MAPS, name): theirs}))
    assert "ConfigMap/theirs" not in deleted(again)


def test_older_definitions_are_never_deleted() -> None:
    """The deletion of the CRD would delete all objects of the kind (R-OP-83 (D1))."""
    found = cluster()
    live = dict(installed(found))
    old = {"metadata": {"name": "widgets.example.com", "uid": "u-9"}}
    live[CUSTOM_RESOURCE_DEFINITIONS, ObjectKey("", "widgets.example.com")] = old
    assert deleted(plan(observed(found, live))) == []


@pytest.mark.parametrize("agrees", [False, True])
@pytest.mark.parametrize("asked", [False, True])
def test_definitions_are_owned_only_when_both_sides_agree(asked: bool, agrees: bool) -> None:
    """A user who may only edit the `cluster` object cannot delete them (R-OP-16, R-OP-30, R-OP-83 (D1))."""
    live = dict(installed(cluster()))
    annotated = {"annotations": {DELETE_CRDS: "true"}} if agrees else {}
    for kind, key in [place for place in live if place[0] == CUSTOM_RESOURCE_DEFINITIONS]:
        obj = live[kind, key]
        own = obj["metadata"] | {"annotations": {**meta.annotations(obj), **annotated.get("annotations", {})}}
        live[kind, key] = obj | {"metadata": own}
    again = plan(observed(cluster({DELETE_CRDS: "true"} if asked else {}), live))
    written = [one.object for one in actions(again) if isinstance(one, Put)]
    reference = {
        "apiVersion": "operator.openshift.io/v1",
        "kind": "LeaderWorkerSetOperator",
        "name": "cluster",
        "uid": "u-1",
    }
    owners = [meta.metadata(obj)["ownerReferences"] for obj in written]
    assert owners == ([[reference]] * 3 if asked and agrees else [])
    reason = {(True, True): "Annotated", (True, False): "NotConfirmed"}.get((asked, agrees), "AsExpected")
    assert conditions(status_of(again))["DeletesDefinitions"][1] == reason


def test_all_objects_except_definitions_are_owned() -> None:
    """The owner reference neither controls the object nor blocks its owner's deletion (R-OP-16)."""
    found = [one.object for one in actions(plan(observed(cluster()))) if isinstance(one, Apply)]
    owned = {obj["kind"]: len(meta.metadata(obj).get("ownerReferences") or []) for obj in found}
    assert owned.pop("CustomResourceDefinition") == 0
    assert set(owned.values()) == {1}


def test_removed_annotation_ends_the_ownership() -> None:
    """The operator's owner reference is removed, and the references to other owners are retained (R-OP-30)."""
    live = dict(installed(cluster()))
    place = next(place for place in live if place[0] == CUSTOM_RESOURCE_DEFINITIONS)
    theirs = {"apiVersion": "v1", "kind": "ConfigMap", "name": "theirs", "uid": "u-3"}
    ours = {
        "apiVersion": "operator.openshift.io/v1",
        "kind": "LeaderWorkerSetOperator",
        "name": "cluster",
        "uid": "u-1",
    }
    live[place] = live[place] | {"metadata": live[place]["metadata"] | {"ownerReferences": [ours, theirs]}}
    (written,) = [one.object for one in actions(plan(observed(cluster(), live))) if isinstance(one, Put)]
    assert written["metadata"]["ownerReferences"] == [theirs]


def test_rejected_write_is_reported_in_the_status() -> None:
    """The status contains `SyncError` with the error message (R-OP-6)."""
    report = failure_of(plan(observed(cluster())))
    assert report.subresource == "status"
    found = {one["type"]: one for one in report.patch["status"]["conditions"]}
    assert found["TargetConfigControllerDegraded"]["status"] == "True"
    assert found["TargetConfigControllerDegraded"]["message"] == "{error}"
    assert "Degraded" not in found


def test_definition_of_a_different_owner_is_adopted() -> None:
    """No field of the existing CRD is read, and no conversion is set (R-OP-18, R-OP-82)."""
    for one in actions(plan(observed(cluster()))):
        if isinstance(one, Apply | Put) and one.resource == CUSTOM_RESOURCE_DEFINITIONS:
            assert "conversion" not in one.object["spec"]

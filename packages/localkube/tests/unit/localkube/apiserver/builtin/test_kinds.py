"""Tests the defaults, errors and updates of the remaining kinds."""

import base64
from collections.abc import Callable
from typing import Any

import pytest

from kuberuntime.objects import resources
from kuberuntime.objects.resources import Resource
from localkube.apiserver.model.kind import Kind

Api = Any
Make = Callable[[str], Api]

PORT = {"port": 80}
WEBHOOK = {
    "name": "a.b.c",
    "clientConfig": {"url": "https://127.0.0.1:1/x"},
    "sideEffects": "None",
    "admissionReviewVersions": ["v1"],
    "rules": [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}],
}
CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}


ONLY_ON_CLUSTERS = {
    resources.MUTATING_ADMISSION_POLICIES,
    resources.MUTATING_ADMISSION_POLICY_BINDINGS,
    resources.NETWORK_POLICIES,
    resources.ROLES,
    resources.ROLE_BINDINGS,
    resources.CLUSTER_ROLES,
    resources.CLUSTER_ROLE_BINDINGS,
    resources.TOKEN_REVIEWS,
    resources.SUBJECT_ACCESS_REVIEWS,
}
"""Tests kinds that are required for the installation of the manager.

A local cluster has one user, and does not need an installation.
"""


MEASURED = {resources.POD_METRICS, resources.NODE_METRICS}
"""Tests kinds that are not stored, because their values are measured for each request."""


def test_every_other_resource_is_served(kinds: dict[str, Kind]) -> None:
    known = {value for value in vars(resources).values() if isinstance(value, Resource)}
    served = known - ONLY_ON_CLUSTERS - MEASURED
    assert set(kinds) == {resource.group_resource for resource in served}


DEFAULTS: list[tuple[str, dict[str, Any], str, Any]] = [
    ("services", {"spec": {"clusterIP": "None", "selector": {"a": "b"}}}, "spec", {
        "selector": {"a": "b"}, "clusterIP": "None", "clusterIPs": ["None"], "type": "ClusterIP",
        "sessionAffinity": "None", "ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack",
        "internalTrafficPolicy": "Cluster"}),
    ("services", {"spec": {"ports": [PORT], "selector": {"a": "b"}}}, "spec", {
        "ports": [{"port": 80, "targetPort": 80, "protocol": "TCP"}], "selector": {"a": "b"},
        "type": "ClusterIP", "sessionAffinity": "None", "ipFamilies": ["IPv4"],
        "ipFamilyPolicy": "SingleStack", "internalTrafficPolicy": "Cluster"}),
    ("services", {"spec": {"type": "LoadBalancer", "sessionAffinity": "ClientIP", "ports": [PORT]}}, "spec", {
        "ports": [{"port": 80, "targetPort": 80, "protocol": "TCP"}], "type": "LoadBalancer",
        "sessionAffinity": "ClientIP", "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 10800}},
        "ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack", "internalTrafficPolicy": "Cluster",
        "externalTrafficPolicy": "Cluster", "allocateLoadBalancerNodePorts": True}),
    ("services", {"spec": {"type": "ExternalName", "externalName": "x.y"}}, "spec", {
        "type": "ExternalName", "externalName": "x.y", "sessionAffinity": "None"}),
    ("secrets", {"stringData": {"a": "b"}}, "data", {"a": base64.b64encode(b"b").decode()}),
    ("secrets", {}, "type", "Opaque"),
    ("persistentvolumeclaims", {"spec": CLAIM}, "status", {"phase": "Pending"}),
    ("persistentvolumeclaims", {"spec": CLAIM}, "spec", CLAIM | {"volumeMode": "Filesystem"}),
    ("persistentvolumes", {"spec": {"hostPath": {"path": "/x"}}}, "spec", {
        "hostPath": {"path": "/x", "type": ""}, "persistentVolumeReclaimPolicy": "Retain", "volumeMode": "Filesystem"}),
    ("storageclasses.storage.k8s.io", {"provisioner": "x"}, "volumeBindingMode", "Immediate"),
    ("priorityclasses.scheduling.k8s.io", {"value": 1}, "preemptionPolicy", "PreemptLowerPriority"),
    ("namespaces", {}, "spec", {"finalizers": ["kubernetes"]}),
    ("namespaces", {}, "status", {"phase": "Active"}),
    ("nodes", {"status": {"capacity": {"cpu": "2"}}}, "status", {
        "capacity": {"cpu": "2"}, "allocatable": {"cpu": "2"}, "daemonEndpoints": {"kubeletEndpoint": {"Port": 0}},
        "nodeInfo": dict.fromkeys(("machineID", "systemUUID", "bootID", "kernelVersion", "osImage",
                                   "containerRuntimeVersion", "kubeletVersion", "kubeProxyVersion", "operatingSystem",
                                   "architecture"), "")}),
    ("endpoints", {"subsets": [{"ports": [PORT]}]}, "subsets", [{"ports": [PORT | {"protocol": "TCP"}]}]),
    ("endpointslices.discovery.k8s.io", {"addressType": "IPv4", "ports": [{"port": 1}]}, "ports", [
        {"port": 1, "name": "", "protocol": "TCP"}]),
]  # fmt: skip


@pytest.mark.parametrize(("plural", "given", "field", "expected"), DEFAULTS)
def test_defaults_are_set_once(api: Make, plural: str, given: dict[str, Any], field: str, expected: Any) -> None:
    stored = api(plural).create(given)
    assert stored[field] == expected
    assert api(plural).update(stored, {}) == stored


def test_webhooks_receive_defaults(api: Make) -> None:
    plural = "mutatingwebhookconfigurations.admissionregistration.k8s.io"
    (webhook,) = api(plural).create({"webhooks": [WEBHOOK]})["webhooks"]
    defaults = {
        "failurePolicy": "Fail",
        "matchPolicy": "Equivalent",
        "namespaceSelector": {},
        "objectSelector": {},
        "timeoutSeconds": 10,
        "reinvocationPolicy": "Never",
        "rules": [WEBHOOK["rules"][0] | {"scope": "*"}],  # type: ignore[index]  # a literal of this file
    }
    assert webhook == WEBHOOK | defaults
    assert api(plural).errors({"webhooks": [WEBHOOK]}) == []


EVENT = {
    "regarding": {"namespace": "default"}, "eventTime": "2026-01-01T00:00:00.000000Z", "reportingController": "lws",
    "reportingInstance": "i", "action": "Create", "reason": "Made", "type": "Normal",
}  # fmt: skip
VALIDATING = "validatingwebhookconfigurations.admissionregistration.k8s.io"

ERRORS: list[tuple[str, dict[str, Any], str]] = [
    ("services", {"spec": {"type": "Magic", "clusterIP": "None"}}, 'spec.type: Unsupported value: "Magic": supported values: "ClusterIP", "ExternalName", "LoadBalancer", "NodePort"'),
    ("services", {"spec": {"type": "ExternalName"}}, "spec.externalName: Required value"),
    ("services", {"spec": {"clusterIP": "here", "ports": [{"port": 80}]}}, 'spec.clusterIPs[0]: Invalid value: "here": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)'),
    ("configmaps", {"data": {"a": "x" * (1024 * 1024 + 1)}}, ": Too long: may not be more than 1048576 bytes"),
    ("persistentvolumeclaims", {"spec": {}}, "spec.accessModes: Required value: at least 1 access mode is required"),
    ("persistentvolumeclaims", {"spec": CLAIM | {"resources": {}}}, "spec.resources[storage]: Required value"),
    ("persistentvolumes", {"spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"]}}, "spec: Required value: must specify a volume type"),
    ("leases.coordination.k8s.io", {"spec": {"leaseDurationSeconds": 0}}, "spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0"),
    ("nodes", {"spec": {"taints": [{"key": "a", "effect": "Maybe"}]}}, 'spec.taints[0].effect: Unsupported value: "Maybe": supported values: "NoExecute", "NoSchedule", "PreferNoSchedule"'),
    ("priorityclasses.scheduling.k8s.io", {"value": 2 * 10**9}, "value: Forbidden: maximum allowed value of a user defined priority is 1000000000"),
    ("storageclasses.storage.k8s.io", {}, "provisioner: Required value"),
    ("endpointslices.discovery.k8s.io", {"endpoints": [{}]}, "addressType: Required value"),
    ("events", {"involvedObject": {"namespace": "other"}}, 'involvedObject.namespace: Invalid value: "other": does not match event.namespace'),
    ("events.events.k8s.io", {"regarding": {"namespace": "default"}}, "eventTime: Required value"),
    ("events.events.k8s.io", {"regarding": {"namespace": "default"}, "eventTime": "2026-01-01T00:00:00.000000Z"}, "reportingController: Required value"),
    (VALIDATING, {"webhooks": [WEBHOOK | {"name": "a"}]}, 'webhooks[0].name: Invalid value: "a": should be a domain with at least three segments separated by dots'),
    (VALIDATING, {"webhooks": [WEBHOOK | {"sideEffects": "Some"}]}, 'webhooks[0].sideEffects: Unsupported value: "Some": supported values: "None", "NoneOnDryRun"'),
    (VALIDATING, {"webhooks": [WEBHOOK | {"timeoutSeconds": 40}]}, "webhooks[0].timeoutSeconds: Invalid value: 40: the timeout value must be between 1 and 30 seconds"),
    (VALIDATING, {"webhooks": [WEBHOOK | {"clientConfig": {"url": "http://x"}}]}, "webhooks[0].clientConfig.url: Invalid value: \"http://x\": 'https' is the only allowed URL scheme; desired format: https://host[/path]"),
    (VALIDATING, {"webhooks": [WEBHOOK | {"clientConfig": {}}]}, "webhooks[0].clientConfig: Required value: exactly one of url or service is required"),
    (VALIDATING, {"webhooks": [WEBHOOK | {"matchConditions": [{"name": "x", "expression": "true"}]}]}, 'webhooks[0].matchConditions[0].expression: Unsupported value: "true": supported values: "object == null || !has(object.metadata.deletionTimestamp)", "false"'),
    ("services", {"spec": {"type": "NodePort", "clusterIP": "None", "ports": [PORT]}}, "spec.clusterIPs[0]: Invalid value: \"None\": may not be set to 'None' for NodePort services"),
    ("services", {"spec": {"ports": [PORT | {"name": "a"}, {"port": 80, "name": "a"}]}}, 'spec.ports[1].name: Duplicate value: "a"'),
    ("services", {"spec": {"ports": [PORT | {"name": "a"}, {"port": 80, "name": "b"}]}}, 'spec.ports[1]: Duplicate value: {"port":80,"protocol":"TCP"}'),
    ("services", {"spec": {"ports": [PORT | {"name": "A"}]}}, 'spec.ports[0].name: Invalid value: "A": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or \'-\', and must start and end with an alphanumeric character (e.g. \'my-name\',  or \'123-abc\', regex used for validation is \'[a-z0-9]([-a-z0-9]*[a-z0-9])?\')'),
    ("services", {"spec": {"ports": [PORT | {"targetPort": "UP"}]}}, 'spec.ports[0].targetPort: Invalid value: "UP": must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)'),
    ("configmaps", {"data": {"..a": ""}}, "data[..a]: Invalid value: \"..a\": must not start with '..'"),
    ("configmaps", {"data": {"a" * 254: ""}}, f"data[{'a' * 254}]: Invalid value: \"{'a' * 254}\": must be no more than 253 characters"),
    ("persistentvolumeclaims", {"spec": CLAIM | {"resources": {"requests": {"storage": "0"}}}}, 'spec.resources[storage]: Invalid value: "0": must be greater than zero'),
    ("persistentvolumes", {"spec": {"hostPath": {"path": "/x"}, "nfs": {}}}, "spec.nfs: Forbidden: may not specify more than 1 volume type"),
    ("persistentvolumes", {"spec": {"hostPath": {"path": "/x"}}}, "spec.accessModes: Required value"),
    ("nodes", {"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}] * 2}}, 'spec.taints[1]: Duplicate value: {"key":"a","effect":"NoSchedule"}'),
    ("nodes", {"spec": {"taints": [{"key": "a b", "value": "c d", "effect": "NoSchedule"}]}}, 'spec.taints[0].value: Invalid value: "c d": a valid label must be an empty string or consist of alphanumeric characters, \'-\', \'_\' or \'.\', and must start and end with an alphanumeric character (e.g. \'MyValue\',  or \'my_value\',  or \'12345\', regex used for validation is \'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?\')'),
    ("nodes", {"status": {"capacity": {"cpu": "-1"}}}, 'status.capacity.cpu: Invalid value: "-1": must be greater than or equal to 0'),
    ("endpointslices.discovery.k8s.io", {"addressType": "IPv4", "endpoints": [{}]}, "endpoints[0].addresses: Required value: must contain at least 1 address"),
    ("endpointslices.discovery.k8s.io", {"addressType": "IPv4", "endpoints": [{"addresses": ["10.0.0.1"] * 101}]}, "endpoints[0].addresses: Too many: 101: must have at most 100 items"),
    ("events.events.k8s.io", EVENT | {"note": "x" * 1025}, 'note: Invalid value: "": can have at most 1024 characters'),
    ("events.events.k8s.io", EVENT | {"action": "x" * 129}, 'action: Invalid value: "": can have at most 128 characters'),
    ("events.events.k8s.io", EVENT | {"type": "Sad"}, 'type: Invalid value: "": has invalid value: Sad'),
    ("events.events.k8s.io", EVENT | {"reportingController": "a b"}, 'reportingController: Invalid value: "a b": name part must consist of alphanumeric characters, \'-\', \'_\' or \'.\', and must start and end with an alphanumeric character (e.g. \'MyName\',  or \'my.name\',  or \'123-abc\', regex used for validation is \'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]\')'),
    (VALIDATING, {"webhooks": [WEBHOOK, WEBHOOK]}, 'webhooks[1].name: Duplicate value: "a.b.c"'),
    (VALIDATING, {"webhooks": [WEBHOOK | {"name": ""}]}, "webhooks[0].name: Required value"),
    (VALIDATING, {"webhooks": [WEBHOOK | {"admissionReviewVersions": []}]}, "webhooks[0].admissionReviewVersions: Required value: must specify one of v1, v1beta1"),
    (VALIDATING, {"webhooks": [WEBHOOK | {"admissionReviewVersions": ["v9"]}]}, 'webhooks[0].admissionReviewVersions: Invalid value: ["v9"]: must include at least one of v1, v1beta1'),
    (VALIDATING, {"webhooks": [WEBHOOK | {"sideEffects": None}]}, "webhooks[0].sideEffects: Required value: must specify one of None, NoneOnDryRun"),
    (VALIDATING, {"webhooks": [WEBHOOK | {"rules": [{}]}]}, "webhooks[0].rules[0].operations: Required value"),
    (VALIDATING, {"webhooks": [WEBHOOK | {"rules": [{"resources": ["a/b/c"], "operations": ["LOOK"]}]}]}, 'webhooks[0].rules[0].resources[0]: Invalid value: "a/b/c": must be a resource, or resource/subresource'),
    (VALIDATING, {"webhooks": [WEBHOOK | {"clientConfig": {"url": "https://u@h/x?y"}}]}, 'webhooks[0].clientConfig.url: Invalid value: "https://u@h/x?y": user information, query and fragment are not permitted'),
    (VALIDATING, {"webhooks": [WEBHOOK | {"clientConfig": {"url": "https:///x"}}]}, 'webhooks[0].clientConfig.url: Invalid value: "https:///x": host must be specified; desired format: https://host[/path]'),
]  # fmt: skip


@pytest.mark.parametrize(
    ("plural", "given", "text"), ERRORS, ids=[f"{plural} {text[:40]}" for plural, _, text in ERRORS]
)
def test_invalid_objects_are_rejected(api: Make, plural: str, given: dict[str, Any], text: str) -> None:
    assert text in api(plural).errors(given)


CHANGES: list[tuple[str, dict[str, Any], dict[str, Any], str]] = [
    ("services", {"spec": {"clusterIP": "None"}}, {"spec": {"clusterIP": "10.0.0.1"}}, 'spec.clusterIPs[0]: Invalid value: ["10.0.0.1"]: may not change once set'),
    ("services", {"spec": {"ports": [PORT]}}, {"spec": {"clusterIP": "None"}}, 'spec.clusterIPs[0]: Invalid value: ["None"]: may not change once set'),
    ("configmaps", {"data": {"a": "b"}, "immutable": True}, {"data": {}}, "data: Forbidden: field is immutable when `immutable` is set"),
    ("configmaps", {"immutable": True}, {"immutable": False}, "immutable: Forbidden: field is immutable when `immutable` is set"),
    ("secrets", {}, {"type": "x/y"}, 'type: Invalid value: "x/y": field is immutable'),
    ("priorityclasses.scheduling.k8s.io", {"value": 1}, {"value": 2}, "value: Forbidden: may not be changed in an update."),
    ("storageclasses.storage.k8s.io", {"provisioner": "x"}, {"provisioner": "y"}, "provisioner: Forbidden: updates to provisioner are forbidden."),
    ("persistentvolumeclaims", {"spec": CLAIM}, {"spec": CLAIM | {"volumeMode": "Block"}}, "spec: Forbidden: spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"),
    ("persistentvolumes", {"spec": {"hostPath": {"path": "/x"}}}, {"spec": {"hostPath": {"path": "/y"}}}, "spec.persistentvolumesource: Forbidden: spec.persistentvolumesource is immutable after creation"),
    ("endpointslices.discovery.k8s.io", {"addressType": "IPv4"}, {"addressType": "IPv6"}, 'addressType: Invalid value: "IPv6": field is immutable'),
]  # fmt: skip


@pytest.mark.parametrize(("plural", "given", "change", "text"), CHANGES)
def test_forbidden_changes_are_rejected(
    api: Make, plural: str, given: dict[str, Any], change: dict[str, Any], text: str
) -> None:
    assert text in api(plural).update_faults(api(plural).create(given), change)


def test_events_are_the_same_objects_in_both_groups(kinds: dict[str, Kind], api: Make) -> None:
    alias = kinds["events.events.k8s.io"].alias
    assert alias is not None
    event = api("events.events.k8s.io").create(
        {
            "eventTime": "2026-01-01T00:00:00.000000Z",
            "regarding": {"kind": "Pod", "namespace": "default"},
            "note": "hello",
            "reportingController": "lws",
            "reportingInstance": "i",
            "action": "Create",
            "reason": "Made",
            "type": "Normal",
        }
    )
    stored = alias.to_stored(event)
    assert (stored["message"], stored["involvedObject"]["kind"], stored["apiVersion"]) == ("hello", "Pod", "v1")
    assert kinds["events"].validate("create", stored, None) == []
    assert api("events").update(stored, {}) == stored
    shown = alias.from_stored(stored)
    assert api("events.events.k8s.io").update(shown, {}) == event

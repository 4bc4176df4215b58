"""Defines pods that the API server rejects or the scheduler cannot place."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from tests.node.objects import container, pod
from tests.node.situations.situation import Situation, asking, codes, main

from kuberuntime.objects.meta import JSONObject


def in_namespace(kind: str, spec: JSONObject) -> tuple[JSONObject]:
    """Return an object in a namespace."""
    return ({"apiVersion": "v1", "kind": kind, "metadata": {"name": "limit"}, "spec": spec},)


def policy(name: str, message: str) -> tuple[JSONObject, ...]:
    """Return an admission policy that denies all pods in namespaces with a label of the same name."""
    api = "admissionregistration.k8s.io/v1"
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    spec = {
        "matchConstraints": {"resourceRules": [rule]},
        "validations": [{"expression": "false", "message": message}],
    }
    selected = {"namespaceSelector": {"matchLabels": {name: "true"}}}
    bound = {"policyName": name, "validationActions": ["Deny"], "matchResources": selected}
    return tuple(
        {"apiVersion": api, "kind": kind, "metadata": {"name": name}, "spec": content}
        for kind, content in (("ValidatingAdmissionPolicy", spec), ("ValidatingAdmissionPolicyBinding", bound))
    )


def webhook(name: str) -> tuple[JSONObject]:
    """Return a webhook without a server for pods in namespaces with a label of the same name."""
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    called = {
        "name": f"{name}.example.com",
        "clientConfig": {"service": {"namespace": "default", "name": "absent"}},
        "rules": [rule],
        "namespaceSelector": {"matchLabels": {name: "true"}},
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    kind = "ValidatingWebhookConfiguration"
    api = "admissionregistration.k8s.io/v1"
    return ({"apiVersion": api, "kind": kind, "metadata": {"name": name}, "webhooks": [called]},)


APART: Final = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {
                "topologyKey": "kubernetes.io/os",
                "labelSelector": {
                    "matchExpressions": [{"key": "leaderworkerset.sigs.k8s.io/name", "operator": "Exists"}]
                },
            }
        ]
    }
}

PLACED: Final[Mapping[str, Situation]] = {
    "accelerators": Situation(asking(**{"nvidia.com/gpu": "8"}), codes(35), ("nvidia.com/gpu",)),
    "cpu": Situation(asking(cpu="4000"), codes(36), ("cpu",)),
    "memory": Situation(asking(memory="4000Gi"), codes(37), ("memory",)),
    "ephemeral-storage": Situation(asking(ephemeral_storage="4000Ti"), codes(48), ("ephemeral",)),
    "node-label": Situation(pod(container(), nodeSelector={"pool": "absent"}), codes(40), ("pool",)),
    "anti-affinity": Situation(pod(container(), affinity=APART), codes(42), ()),
    "scheduler": Situation(
        pod(container(), schedulerName="absent"),
        codes(33),
        ("absent",),
        frozenset({"stuck", "progressing"}),
        gives_up=False,
    ),
    "scheduling-gate": Situation(
        pod(container(), schedulingGates=[{"name": "example.com/gate"}]),
        codes(31),
        ("example.com/gate",),
        frozenset({"stuck", "progressing"}),
        gives_up=False,
    ),
    "host-port": Situation(main(ports=[{"containerPort": 8080, "hostPort": 28080}]), codes(47), ("host port",), size=3),
    "service-account": Situation(pod(container(), serviceAccountName="absent"), codes(25), ("absent",)),
    "priority-class": Situation(pod(container(), priorityClassName="absent"), codes(26), ("absent",)),
    "quota": Situation(main(), codes(20), ("limit",), objects=in_namespace("ResourceQuota", {"hard": {"pods": "1"}})),
    "quota-wants-requests": Situation(
        main(resources={}),
        codes(21),
        ("limit",),
        objects=in_namespace("ResourceQuota", {"hard": {"requests.cpu": "1"}}),
    ),
    "limit-range": Situation(
        main(),
        codes(22),
        ("memory",),
        objects=in_namespace("LimitRange", {"limits": [{"type": "Container", "max": {"memory": "16Mi"}}]}),
    ),
    "admission-policy": Situation(
        main(),
        codes(10),
        ("no team may run this",),
        objects=policy("situation-admission-policy", "no team may run this"),
        labels=MappingProxyType({"situation-admission-policy": "true"}),
    ),
    "webhook-without-server": Situation(
        main(),
        codes(8),
        ("situation-webhook.example.com",),
        objects=webhook("situation-webhook"),
        labels=MappingProxyType({"situation-webhook": "true"}),
    ),
    "pod-security": Situation(
        main(),
        codes(23),
        ("restricted",),
        labels=MappingProxyType({"pod-security.kubernetes.io/enforce": "restricted"}),
    ),
}

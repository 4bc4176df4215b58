"""Defines the names of the operator and of its custom resource (docs/reference/contract-operator.md)."""

from typing import Final

from kuberuntime.objects.meta import ObjectKey
from kuberuntime.objects.resources import Resource

OPERATORS: Final = Resource(
    "operator.openshift.io", "v1", "leaderworkersetoperators", "LeaderWorkerSetOperator", namespaced=False
)
SINGLETON: Final = ObjectKey("", "cluster")
"""The key of the only supported object. Other objects are ignored (R-OP-2)."""

OPERATOR: Final = "openshift-lws-operator"
"""The default namespace, and the name of the operator's Deployment, ServiceAccount, roles and bindings (R-OP-10)."""

LEASE: Final = "openshift-lws-operator-lock"
FIELD_MANAGER: Final = "lws-operator"
REPORTER: Final = "lws-operator"
"""The `reportingController` of events."""

OWNED_LABEL: Final = "operator.openshift.io/owned-by"
OWNED_BY: Final = "leaderworkersetoperator"
SPEC_HASH: Final = "operator.openshift.io/spec-hash"

PREFIX: Final = "lws.x-k8s.io/"
DELETE_CRDS: Final = PREFIX + "delete-crds"
"""If `true`, the CRDs and all LeaderWorkerSets are deleted with the `cluster` object (R-OP-30, D1)."""

REMOVE_OPERAND: Final = PREFIX + "remove-operand"
"""If `true`, the `Removed` management state removes the operand except for the CRDs (R-OP-24, D5)."""

CERTIFICATES: Final = PREFIX + "certificates"
"""If `internal`, the operand issues its certificates, and cert-manager is not required (R-OP-22, D4)."""

GROUP_RESTARTS: Final = PREFIX + "group-restarts"
"""The `groupRestarts` section of the operand's configuration, as JSON. Overrides can change it."""

POD_ADMISSION: Final = PREFIX + "pod-admission"
"""The `podAdmission` field of the operand's configuration. Overrides can change it."""

LOG_FORMAT: Final = PREFIX + "log-format"
"""If `json`, the operand writes JSON logs, like the operator."""

IMAGE_VARIABLE: Final = "RELATED_IMAGE_OPERAND_IMAGE"

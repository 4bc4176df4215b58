"""Builds the operand for the `cluster` object, in the order in which the operator applies it (R-OP-15).

The objects are equal to the objects that `lws install` applies (`install/objects.py`). The operator adds an owner, a label
for watching and pruning, and hashes that trigger a rollout of the Deployment when a certificate or the configuration
changes (R-OP-26).
"""

from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

from msgspec import Struct, field

from kuberuntime.objects import meta, resources
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import Resource
from leaderworkerset.api import metadata
from leaderworkerset.install import certmanager
from leaderworkerset.install.installsettings import CERTIFICATES, ISSUERS, SERVICE_MONITORS, InstallSettings
from leaderworkerset.install.objects import KindDeclarations, build_all
from leaderworkerset.install.operatornames import OWNED_BY, OWNED_LABEL
from leaderworkerset.operator import driftcorrection, operandconfig
from leaderworkerset.operator.operatorspec import OperatorSettings

PROMETHEUS: Final = "openshift-monitoring"
"""The namespace of the Prometheus server that can scrape the operand (R-OP-15)."""

ORDER: Final[Mapping[Resource, int]] = {
    kind: rank
    for rank, kind in enumerate(
        (
            resources.CLUSTER_ROLES,
            resources.CLUSTER_ROLE_BINDINGS,
            resources.ROLES,
            resources.ROLE_BINDINGS,
            resources.SERVICES,
            ISSUERS,
            CERTIFICATES,
            resources.SECRETS,
            resources.CONFIG_MAPS,
            resources.CUSTOM_RESOURCE_DEFINITIONS,
            resources.SERVICE_ACCOUNTS,
            resources.NETWORK_POLICIES,
            resources.POD_DISRUPTION_BUDGETS,
            resources.MUTATING_WEBHOOK_CONFIGURATIONS,
            resources.VALIDATING_WEBHOOK_CONFIGURATIONS,
            SERVICE_MONITORS,
            resources.DEPLOYMENTS,
        )
    )
}
"""The kinds of the operand, in the order in which they are applied. A failed object blocks later objects."""

OPTIONAL: Final = (ISSUERS, CERTIFICATES, SERVICE_MONITORS)
"""The kinds that some clusters do not serve."""

ISSUED: Final[Mapping[str, str]] = {
    certmanager.SERVING: certmanager.SERVING_SECRET,
    certmanager.METRICS: certmanager.METRICS_SECRET,
}
"""The Secrets with issued certificates."""

Objects: TypeAlias = Sequence[tuple[Resource, JSONObject]]


class ClusterState(Struct, frozen=True, kw_only=True):
    """The cluster state that affects the operand.

    `hashes` are the hashes of issued certificates by the name of their Secret. `tls` is the cluster's TLS profile as a
    configuration section. `is_single` is true if the control plane is one node, where one manager is as available as
    two. `terminating` are the names of the CRDs that are deleted with the object.
    """

    hashes: Mapping[str, str] = field(default_factory=dict)
    tls: JSONObject = field(default_factory=dict)
    is_single: bool = False
    terminating: frozenset[str] = frozenset()


class OperatorPlace(Struct, frozen=True, kw_only=True):
    """The operator's namespace, and the image, version and kinds of the operand."""

    namespace: str
    image: str
    version: str
    declared: KindDeclarations


def build(
    place: OperatorPlace,
    desired: OperatorSettings,
    cluster: JSONObject,
    around: ClusterState,
) -> Objects:
    """Build all objects of the operand. Raise `OverrideError` if its configuration is invalid."""
    settings = InstallSettings(
        namespace=place.namespace,
        image=place.image,
        configuration=operandconfig.render(desired, around.tls),
        replicas=1 if around.is_single else 2,
        spread=not around.is_single,
        certificates=desired.certificates,
        verbosity=desired.verbosity,
        log_format=desired.log_format,
        placement=desired.placement,
        prometheus=PROMETHEUS,
    )
    contents = {f"secrets/{name}": value for name, value in around.hashes.items()}
    contents[f"configmaps/{metadata.CONFIGURATION}"] = driftcorrection.digest(settings.configuration)
    objects = [(kind, obj) for kind, obj in build_all(place.declared, settings) if kind != resources.NAMESPACES]
    rolling = [
        (kind, _with_input_hashes(obj, contents) if kind == resources.DEPLOYMENTS else obj) for kind, obj in objects
    ]
    owned = [(kind, _with_owner(kind, obj, cluster, around.terminating)) for kind, obj in rolling]
    return sorted(owned, key=lambda pair: ORDER[pair[0]])


def possible_objects(place: OperatorPlace) -> frozenset[tuple[Resource, ObjectKey]]:
    """Return the objects of all installation variants in the operator's namespace.

    Only these may be written and deleted. A name that a release no longer uses must be kept while older releases can be
    upgraded.
    """
    choices = (
        InstallSettings(namespace=place.namespace, spread=True),
        InstallSettings(namespace=place.namespace, certificates="cert-manager", prometheus=PROMETHEUS),
    )
    return frozenset((kind, meta.key(obj)) for choice in choices for kind, obj in build_all(place.declared, choice))


def certificate_hash(secret: JSONObject) -> str:
    """Return the hash of an issued certificate, or an empty string if the certificate or key is missing (R-OP-17).

    >>> certificate_hash({"data": {"tls.crt": "", "tls.key": "a2V5"}})
    ''
    """
    data: Mapping[str, str] = secret.get("data") or {}
    certificate, key = data.get("tls.crt"), data.get("tls.key")
    return driftcorrection.digest([certificate, key]) if certificate and key else ""


def _with_owner(kind: Resource, obj: JSONObject, cluster: JSONObject, ending: frozenset[str]) -> JSONObject:
    own = meta.metadata(obj) | {"labels": {**meta.labels(obj), OWNED_LABEL: OWNED_BY}}
    # CRDs have no owner. Otherwise, deleting the owner would delete all LeaderWorkerSets.
    if kind != resources.CUSTOM_RESOURCE_DEFINITIONS or meta.name(obj) in ending:
        own["ownerReferences"] = [_owner(cluster)]
    return driftcorrection.with_content_hash(obj | {"metadata": own})


def _owner(cluster: JSONObject) -> JSONObject:
    """Build an owner reference that is not a controller reference and does not block deletion (R-OP-16)."""
    return {name: cluster[name] for name in ("apiVersion", "kind")} | {
        "name": meta.name(cluster),
        "uid": meta.uid(cluster),
    }


def _with_input_hashes(deployment: JSONObject, contents: Mapping[str, str]) -> JSONObject:
    """Return the Deployment with hashes of its inputs as pod annotations, so that changes trigger a rollout."""
    spec = meta.spec(deployment)
    template = spec["template"]
    own = template["metadata"]
    annotated = own | {"annotations": {**(own.get("annotations") or {}), **contents}}
    return deployment | {"spec": spec | {"template": template | {"metadata": annotated}}}

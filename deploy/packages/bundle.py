"""Builds the operator bundle for the Operator Lifecycle Manager (R-OP-36, R-OP-37).

There are two packages of the same operator: `leader-worker-set`, which is installed into its own namespace, and
`lws-operator`, which serves the whole cluster from any namespace, so that the published recipe works as printed (D2).
"""

import base64
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from deploy.packages import operatordeployment
from deploy.packages.alerts import OPERATOR_ALERTS, groups
from deploy.packages.operatordeployment import OperatorSettings

import leaderworkerset
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api.metadata import OLDEST_KUBERNETES
from leaderworkerset.install import objects
from leaderworkerset.install.installsettings import PROMETHEUS_RULES, SERVICE_MONITORS
from leaderworkerset.install.objects import KindDeclarations
from leaderworkerset.install.operatornames import OPERATOR, OPERATORS
from leaderworkerset.kinds.registry import Registry
from leaderworkerset.operator.operatorcrd import operator_crd

FORMER: Final = "1.0.0"
"""The version of every bundle up to release 0.2.0, regardless of the release (docs/adr/0032-what-a-release-says.md)."""

API_HOME: Final = "https://github.com/kubernetes-sigs/lws"
"""The project that defines the API."""

ARCHITECTURES: Final = ("amd64", "arm64")
"""The architectures for which all dependencies are published as wheels."""
MODES: Final = ("OwnNamespace", "SingleNamespace", "MultiNamespace", "AllNamespaces")
OPENSHIFT: Final = "v4.14"
"""The first OpenShift version with this Kubernetes version."""

FEATURES: Final = {
    "disconnected": True,
    "fips-compliant": False,
    "proxy-aware": False,
    "tls-profiles": True,
    "token-auth-aws": False,
    "token-auth-azure": False,
    "token-auth-gcp": False,
    "cnf": False,
    "cni": False,
    "csi": False,
}
"""The features by which consoles filter. This project implements all of these features."""

_SELECT: Final = "urn:alm:descriptor:com.tectonic.ui:select:"
_LEVELS: Final = [f"{_SELECT}{level}" for level in ("Normal", "Debug", "Trace", "TraceAll")]
WIDGETS: Final[dict[str, list[str]]] = {
    "managementState": [f"{_SELECT}{state}" for state in ("Managed", "Unmanaged", "Removed")],
    "logLevel": _LEVELS,
    "operatorLogLevel": _LEVELS,
    "observedConfig": ["urn:alm:descriptor:com.tectonic.ui:hidden"],
    "unsupportedConfigOverrides": ["urn:alm:descriptor:com.tectonic.ui:advanced"],
    "conditions": ["urn:alm:descriptor:io.kubernetes.conditions"],
    "readyReplicas": ["urn:alm:descriptor:text"],
}
"""The display hints of consoles for fields other than plain text."""

OPTIONAL: Final = (SERVICE_MONITORS, PROMETHEUS_RULES)
"""The kinds of the bundle that a cluster might not serve. The installation continues without their objects."""

DESCRIPTION: Final = """\
Installs the manager of LeaderWorkerSets, which run groups of pods for multi-node inference and training. The operator
reconciles the manager with the object `cluster` of kind LeaderWorkerSetOperator.

Before you create this object, install cert-manager, or annotate the object with `lws.x-k8s.io/certificates: internal`.
If you delete the object, the manager is removed. CRDs and LeaderWorkerSets are retained, unless the object and each CRD
have the annotation `lws.x-k8s.io/delete-crds: "true"`.
"""
ICON: Final = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 40 40"><circle cx="20" cy="9" r="6" fill="#326ce5"/>'
    '<path d="M20 15v6M20 21H8v6M20 21v6M20 21h12v6" stroke="#326ce5" stroke-width="2" fill="none"/>'
    '<circle cx="8" cy="31" r="4"/><circle cx="20" cy="31" r="4"/><circle cx="32" cy="31" r="4"/></svg>'
)


@dataclass(frozen=True, slots=True)
class Publication:
    """A release, with its version, its date, and the URLs of its sources and of docs/how-to/alerts.md."""

    version: str = leaderworkerset.__version__
    created: str = "1970-01-01T00:00:00Z"
    repository: str = ""
    runbooks: str = ""


@dataclass(frozen=True, slots=True)
class Package:
    """A package of the catalog, with its name, its install modes and its channels."""

    name: str
    modes: tuple[str, ...]
    channels: tuple[str, ...]

    def version_name(self, version: str) -> str:
        """Return the ClusterServiceVersion name of a release."""
        return f"{self.name}.v{version}"


LEADER_WORKER_SET: Final = Package("leader-worker-set", ("OwnNamespace",), ("stable-v1.0",))
ALIAS: Final = Package("lws-operator", ("OwnNamespace", "AllNamespaces"), ("stable",))
PACKAGES: Final = (LEADER_WORKER_SET, ALIAS)


def version(
    package: Package, kinds: Registry, declared: KindDeclarations, settings: OperatorSettings, publication: Publication
) -> JSONObject:
    """Build the ClusterServiceVersion of a package."""
    repository = {"repository": publication.repository} if publication.repository else {}
    return {
        "apiVersion": "operators.coreos.com/v1alpha1",
        "kind": "ClusterServiceVersion",
        "metadata": {
            "name": package.version_name(publication.version),
            "namespace": "placeholder",
            "labels": {f"operatorframework.io/arch.{name}": "supported" for name in ARCHITECTURES}
            | {"operatorframework.io/os.linux": "supported"},
            "annotations": annotations(settings, publication) | repository,
        },
        "spec": {
            "displayName": "Leader Worker Set Operator (lws)",
            "description": DESCRIPTION,
            "version": publication.version,
            "maturity": "alpha",
            "minKubeVersion": OLDEST_KUBERNETES,
            "provider": {"name": "LeaderWorkerSet in Python"},
            "maintainers": [{"name": "LeaderWorkerSet in Python", "email": "maintainers@example.com"}],
            "keywords": ["leader-worker-set", "inference", "training"],
            "links": [{"name": "The API of LeaderWorkerSets", "url": API_HOME}],
            "icon": [{"base64data": _base64(ICON), "mediatype": "image/svg+xml"}],
            "installModes": [{"type": mode, "supported": mode in package.modes} for mode in MODES],
            "customresourcedefinitions": {"owned": [_owned()]},
            "relatedImages": related_images(settings),
            "install": {"strategy": "deployment", "spec": _install(kinds, declared, settings)},
        },
    }


def annotations(settings: OperatorSettings, publication: Publication) -> dict[str, str]:
    """Return the annotations for consoles and catalogs."""
    infra = {
        "nodeSelector": {"node-role.kubernetes.io/infra": ""},
        "tolerations": [{"key": "node-role.kubernetes.io/infra", "operator": "Exists", "effect": "NoSchedule"}],
    }
    sample = operatordeployment.cluster()
    placed = operatordeployment.cluster(nodePlacement=infra)
    return {
        "alm-examples": json.dumps([sample, placed], indent=2),
        "capabilities": "Seamless Upgrades",
        "categories": "AI/Machine Learning, Integration & Delivery",
        "containerImage": settings.image,
        "createdAt": publication.created,
        "description": "Installs and reconciles the manager of LeaderWorkerSets.",
        "support": "community",
        "olm.skipRange": f">=0.0.1 <{publication.version}",
        "operatorframework.io/cluster-monitoring": "true",
        "operatorframework.io/suggested-namespace": OPERATOR,
        "operatorframework.io/initialization-resource": json.dumps(sample),
        "console.openshift.io/operator-monitoring-default": "true",
        **({"operators.openshift.io/must-gather-image": settings.command_image} if settings.command_image else {}),
        **{f"features.operators.openshift.io/{name}": str(value).lower() for name, value in FEATURES.items()},
    }


def related_images(settings: OperatorSettings) -> list[JSONObject]:
    """Return the images that a registry mirror must contain."""
    images = {"lws": settings.operand_image, "lws-command": settings.command_image, "lws-operator": settings.image}
    return [{"name": name, "image": image} for name, image in images.items() if image]


def metadata(package: Package) -> JSONObject:
    """Build `metadata/annotations.yaml`."""
    return {
        "annotations": {
            "operators.operatorframework.io.bundle.mediatype.v1": "registry+v1",
            "operators.operatorframework.io.bundle.manifests.v1": "manifests/",
            "operators.operatorframework.io.bundle.metadata.v1": "metadata/",
            "operators.operatorframework.io.bundle.package.v1": package.name,
            "operators.operatorframework.io.bundle.channels.v1": ",".join(package.channels),
            "operators.operatorframework.io.bundle.channel.default.v1": package.channels[0],
            "com.redhat.openshift.versions": OPENSHIFT,
        }
    }


def properties() -> JSONObject:
    """Build `metadata/properties.yaml`."""
    optional = [{"group": kind.group, "kind": kind.kind, "name": OPERATOR} for kind in OPTIONAL]
    return {"properties": [{"type": "olm.manifests.optional", "value": {"manifests": optional}}]}


def containerfile(package: Package) -> str:
    """Return the Containerfile of a bundle image, which repeats the annotations as labels."""
    labels: dict[str, str] = metadata(package)["annotations"]
    lines = [f"LABEL {name}={value}" for name, value in labels.items()]
    return "\n".join(["FROM scratch", *lines, "COPY manifests /manifests/", "COPY metadata /metadata/", ""])


def beside(publication: Publication) -> Sequence[JSONObject]:
    """Return the objects of `manifests/` without the version, such as the CRDs of the operand (R-OP-36)."""
    scraped = objects.service_monitor("", verified=False)["spec"] | {"selector": {"matchLabels": {"name": OPERATOR}}}
    return [
        operator_crd(),
        operatordeployment.metrics_service(""),
        operatordeployment.build(SERVICE_MONITORS, OPERATOR, spec=scraped),
        operatordeployment.build(
            PROMETHEUS_RULES, OPERATOR, spec=groups("lws-operator", OPERATOR_ALERTS, publication.runbooks)
        ),
    ]


def _owned() -> JSONObject:
    spec = {
        "managementState": "Whether the operator manages the installation",
        "logLevel": "The log level of the manager",
        "operatorLogLevel": "The log level of the operator",
        "nodePlacement": "The nodes on which the manager runs",
        "observedConfig": "The TLS profile of the cluster, set by the operator",
        "unsupportedConfigOverrides": "A merge patch for the configuration of the manager. It blocks upgrades",
    }
    status = {
        "conditions": "Current conditions",
        "readyReplicas": "The number of available managers",
        "version": "The installed version",
    }
    return {
        "name": OPERATORS.group_resource,
        "kind": OPERATORS.kind,
        "version": OPERATORS.version,
        "displayName": "Leader Worker Set Operator",
        "description": "The installation of the manager. The name must be cluster.",
        "resources": [
            {"kind": kind, "name": "", "version": "v1"} for kind in ("Deployment", "ConfigMap", "Service", "Pod")
        ],
        "specDescriptors": [_descriptor(path, text) for path, text in spec.items()],
        "statusDescriptors": [_descriptor(path, text) for path, text in status.items()],
    }


def _descriptor(path: str, text: str) -> JSONObject:
    name = path[0].upper() + path[1:]
    return {"path": path, "displayName": name, "description": text, "x-descriptors": WIDGETS.get(path, [])}


def _install(kinds: Registry, declared: KindDeclarations, settings: OperatorSettings) -> JSONObject:
    own, handed = operatordeployment.own_rights(kinds), operatordeployment.handed_rights(declared)
    deployment = operatordeployment.deployment(settings)
    return {
        "deployments": [
            {"name": meta.name(deployment), "label": meta.labels(deployment), "spec": meta.spec(deployment)}
        ],
        "clusterPermissions": [{"serviceAccountName": OPERATOR, "rules": [*own.cluster, *handed.cluster]}],
        "permissions": [{"serviceAccountName": OPERATOR, "rules": [*own.namespace, *handed.namespace]}],
    }


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()

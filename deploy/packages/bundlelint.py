"""Finds errors in a bundle for the Operator Lifecycle Manager, offline (R-OP-69, R-OP-70).

In: the manifests and annotations of a bundle as values. Out: one line for each error; a valid bundle has none.
The validators of the operator framework check the same facts and more, if they are available.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject

REQUIRED: Final = (
    "capabilities",
    "categories",
    "containerImage",
    "createdAt",
    "description",
    "support",
    "alm-examples",
)
CATEGORIES: Final = frozenset(
    {
        "AI/Machine Learning",
        "Application Runtime",
        "Cloud Provider",
        "Integration & Delivery",
        "Monitoring",
        "Networking",
        "OpenShift Optional",
        "Security",
        "Storage",
    }
)
CAPABILITIES: Final = ("Basic Install", "Seamless Upgrades", "Full Lifecycle", "Deep Insights", "Auto Pilot")
MODES: Final = frozenset({"OwnNamespace", "SingleNamespace", "MultiNamespace", "AllNamespaces"})
PREFIX: Final = "operators.operatorframework.io.bundle."
SEMVER: Final = re.compile(r"\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?")
DIGEST: Final = re.compile(r"[^\s@]+@sha256:[0-9a-f]{64}")
LEFT_OVER: Final = re.compile(r"\$\{\w+\}|SERVICE_NAMESPACE|CERTIFICATE_NAMESPACE")
LIMIT: Final = 1_000_000
"""The maximum size of a bundle as JSON in bytes, because it is unpacked into a ConfigMap."""


@dataclass(frozen=True, slots=True)
class Bundle:
    """A bundle, with its ClusterServiceVersion, its CRDs and its annotations."""

    version: JSONObject
    definitions: Sequence[JSONObject]
    annotations: JSONObject


def errors(bundle: Bundle, *, released: bool = False) -> list[str]:
    """Return the errors. A released bundle must specify all images by digest."""
    spec = meta.spec(bundle.version)
    return [
        *_identity(bundle),
        *_annotated(meta.annotations(bundle.version)),
        *_modes(spec),
        *_owned(spec, bundle.definitions),
        *_installed(spec),
        *_images(spec, released=released),
        *_bundle_errors(bundle),
    ]


def _identity(bundle: Bundle) -> Iterator[str]:
    spec, own = meta.spec(bundle.version), bundle.annotations["annotations"]
    package, version = own.get(f"{PREFIX}package.v1", ""), str(spec.get("version", ""))
    if not SEMVER.fullmatch(version):
        yield f"spec.version: must be a semantic version, not {version!r}"
    if meta.name(bundle.version) != f"{package}.v{version}":
        yield f"metadata.name: must be {package}.v{version}, not {meta.name(bundle.version)!r}"
    channels = own.get(f"{PREFIX}channels.v1", "").split(",")
    if own.get(f"{PREFIX}channel.default.v1") not in channels:
        yield f"annotations: the default channel must be one of {channels}"
    for field in (
        "displayName",
        "description",
        "provider",
        "maintainers",
        "links",
        "icon",
        "minKubeVersion",
        "maturity",
    ):
        if not spec.get(field):
            yield f"spec.{field}: required"


def _annotated(annotations: dict[str, str]) -> Iterator[str]:
    for name in REQUIRED:
        if not annotations.get(name):
            yield f"metadata.annotations: {name} is required"
    unknown = set(filter(None, annotations.get("categories", "").split(", "))) - CATEGORIES
    if unknown:
        yield f"metadata.annotations: unknown categories {sorted(unknown)}"
    if annotations.get("capabilities") not in CAPABILITIES:
        yield f"metadata.annotations: capabilities must be one of {', '.join(CAPABILITIES)}"


def _modes(spec: JSONObject) -> Iterator[str]:
    modes = {mode["type"]: mode["supported"] for mode in spec.get("installModes") or []}
    if modes.keys() != MODES:
        yield f"spec.installModes: must contain all of {sorted(MODES)}"
    if not any(modes.values()):
        yield "spec.installModes: at least one must be supported"


def _owned(spec: JSONObject, definitions: Sequence[JSONObject]) -> Iterator[str]:
    served = {
        meta.name(definition): {version["name"] for version in meta.spec(definition)["versions"]}
        for definition in definitions
    }
    owned = spec["customresourcedefinitions"]["owned"]
    for entry in owned:
        if entry["version"] not in served.get(entry["name"], ()):
            yield f"owned {entry['name']}: the bundle does not contain a CRD with version {entry['version']}"
        for field in ("displayName", "description", "resources", "specDescriptors", "statusDescriptors"):
            if not entry.get(field):
                yield f"owned {entry['name']}: {field} is required"
    for name in served.keys() - {entry["name"] for entry in owned}:
        yield f"CRD {name}: not listed as owned"


def _installed(spec: JSONObject) -> Iterator[str]:
    strategy = spec["install"]["spec"]
    permitted = {
        entry["serviceAccountName"] for field in ("permissions", "clusterPermissions") for entry in strategy[field]
    }
    for deployment in strategy["deployments"]:
        template = deployment["spec"]["template"]
        if template["spec"].get("serviceAccountName") not in permitted:
            yield f"deployment {deployment['name']}: its service account has no permissions"
        if not deployment["spec"]["selector"]["matchLabels"].items() <= template["metadata"]["labels"].items():
            yield f"deployment {deployment['name']}: its selector does not match its own pods"
        for container in template["spec"]["containers"]:
            if not (container.get("resources") or {}).get("requests"):
                yield f"container {container['name']}: resource requests are required"
    for rule in (
        rule for field in ("permissions", "clusterPermissions") for entry in strategy[field] for rule in entry["rules"]
    ):
        if any("*" in rule.get(field, ()) for field in ("apiGroups", "resources", "verbs")):
            yield f"rule {json.dumps(rule)}: wildcards are not allowed"


def _images(spec: JSONObject, *, released: bool) -> Iterator[str]:
    related = {entry["image"] for entry in spec.get("relatedImages") or []}
    for image in sorted(set(_image_names(spec["install"]["spec"]["deployments"])) - related):
        yield f"image {image}: not listed in spec.relatedImages"
    for image in sorted(related) if released else ():
        if not DIGEST.fullmatch(image):
            yield f"image {image}: a digest is required"


def _image_names(deployments: Iterable[Any]) -> Iterator[str]:
    for container in (
        container for deployment in deployments for container in deployment["spec"]["template"]["spec"]["containers"]
    ):
        yield container["image"]
        yield from (
            variable["value"]
            for variable in container.get("env") or []
            if variable["name"].startswith("RELATED_IMAGE_")
        )


def _bundle_errors(bundle: Bundle) -> Iterator[str]:
    text = json.dumps([bundle.version, *bundle.definitions])
    if match := LEFT_OVER.search(text):
        yield f"{match[0]} was not replaced"
    if len(text) > LIMIT:
        yield f"{len(text)} bytes exceed the limit of {LIMIT}"

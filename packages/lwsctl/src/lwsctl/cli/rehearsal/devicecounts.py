"""Replaces each device claim with a request for an extended resource in its pod. Pure.

The input is the documents of a rehearsal. The output is the documents without ResourceClaimTemplates, ResourceClaims
and DeviceClasses, and pods that request `CLASS/device` instead. Selectors, constraints and configurations of claims
are not evaluated. Shared ResourceClaims are not counted, because their devices would be counted once per pod.
"""

from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from kuberuntime.objects.meta import JSON, JSONObject
from lwsctl.cli.errors import CommandError
from lwsctl.cli.reading.manifests import Document

GROUP: Final = "resource.k8s.io"
TEMPLATES: Final = "ResourceClaimTemplate"

Devices: TypeAlias = dict[str, int]
"""The number of devices for each extended resource name."""


class DeviceCounts(Struct, frozen=True):
    """The documents to apply, and a note for each kind of claim."""

    documents: tuple[Document, ...]
    assumptions: tuple[str, ...]


def replace_claims(documents: Sequence[Document]) -> DeviceCounts:
    """Return the documents with requests instead of claims.

    Raise an error if the claim of a pod is not in the documents.
    """
    templates: dict[str, Devices] = {}
    shared: set[str] = set()
    lines: list[str] = []
    kept: list[Document] = []
    for document in documents:
        obj = document.object
        if channel := _generated_template(obj):
            templates[channel] = {f"{channel}/device": 1}
            lines.append(f"skipping {document.title}: each pod has 1 {channel}/device")
        if str(obj.get("apiVersion")).rpartition("/")[0] != GROUP:
            kept += [] if channel else [document]
            continue
        devices = _devices(document)
        if obj["kind"] == TEMPLATES:
            templates[_name(obj)] = devices
            lines.append(f"{document.title}: each pod has {_describe_devices(devices)}")
        elif obj["kind"] == "ResourceClaim":
            shared.add(_name(obj))
            lines.append(f"skipping {document.title}: claims shared by pods are not simulated")
        else:
            lines.append(f"skipping {document.title}: individual devices are not simulated")
    changed = [
        replace(document, object=_replace_claims(document.object, _Claims(document.location, templates, shared)))
        for document in kept
    ]
    return DeviceCounts(tuple(changed), tuple(lines))


class _Claims(Struct, frozen=True):
    place: str
    templates: dict[str, Devices]
    shared: set[str]

    def find_devices(self, claim: JSONObject) -> Devices:
        """Return the devices of one `resourceClaims` entry."""
        template, name = claim.get("resourceClaimTemplateName"), claim.get("resourceClaimName")
        if template in self.templates:
            return self.templates[template]
        if template is None and name in self.shared:
            return {}
        reference = f"resourceClaimTemplateName {template}" if template else f"resourceClaimName {name}"
        raise CommandError(
            f"{self.place}: resourceClaims[{claim.get('name')}]: {reference} is not in the manifests; add the object, or remove resourceClaims"
        )


def _replace_claims(node: JSON, claims: _Claims) -> JSON:
    """Return a value in which pods at any depth request devices instead of claims."""
    if isinstance(node, list):
        return [_replace_claims(child, claims) for child in node]
    if not isinstance(node, dict):
        return node
    if not (node.get("resourceClaims") and isinstance(node.get("containers"), list)):
        return {name: _replace_claims(child, claims) for name, child in node.items()}
    total: Devices = {}
    for claim in node["resourceClaims"]:
        for name, number in claims.find_devices(claim).items():
            total[name] = total.get(name, 0) + number
    first, *others = (_without_claims(container) for container in node["containers"])
    resources = first.get("resources") or {}
    first = first | {"resources": resources | {"limits": (resources.get("limits") or {}) | total}}
    rest = {name: value for name, value in node.items() if name != "resourceClaims"}
    inits = {"initContainers": list(map(_without_claims, rest["initContainers"]))} if rest.get("initContainers") else {}
    return rest | inits | {"containers": [first, *others]}


def _without_claims(container: JSONObject) -> JSONObject:
    resources = {name: value for name, value in (container.get("resources") or {}).items() if name != "claims"}
    return {**container, "resources": resources} if "resources" in container else container


def _devices(document: Document) -> Devices:
    """Return the devices of a template or claim for each class."""
    spec = document.object.get("spec") or {}
    devices: Devices = {}
    try:
        requests = ((spec.get("spec") or spec).get("devices") or {}).get("requests") or []
        for device_class, number in _requests(requests):
            name = f"{device_class}/device"
            devices[name] = devices.get(name, 0) + number
    except (AttributeError, TypeError, ValueError) as error:
        raise CommandError(
            document.message(
                "spec: Invalid value: devices.requests must be a list of requests with exactly.deviceClassName and exactly.count"
            )
        ) from error
    return devices


def _requests(requests: Sequence[JSONObject]) -> Iterator[tuple[str, int]]:
    """Yield the class and number of devices of each request. If a request has several alternatives, use the first."""
    for request in requests:
        subrequest = request.get("exactly") or next(iter(request.get("firstAvailable") or ()), request)
        if subrequest.get("deviceClassName"):
            yield str(subrequest["deviceClassName"]), int(subrequest.get("count") or 1)


def _generated_template(obj: JSONObject) -> str:
    """Return the ResourceClaimTemplate that the object's controller would create, for example for a ComputeDomain."""
    spec = obj.get("spec")
    template = ((spec.get("channel") or {}) if isinstance(spec, dict) else {}).get("resourceClaimTemplate") or {}
    return str(template.get("name") or "") if obj["kind"] == "ComputeDomain" else ""


def _describe_devices(devices: Devices) -> str:
    return ", ".join(f"{number} {name}" for name, number in sorted(devices.items())) or "no device"


def _name(obj: JSONObject) -> str:
    return str(obj["metadata"].get("name") or "")

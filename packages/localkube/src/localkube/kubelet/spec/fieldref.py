"""Returns the values of a pod's own fields and resources, for variables and downwardAPI files, without I/O.

The fields are those of Kubernetes: name, namespace, uid, one label or annotation, node name, service account, addresses
of host and pod; files can also have all labels or annotations. A limit that is not set counts as the node's allocatable
amount.
"""

import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Final

from msgspec import Struct

from kuberuntime.objects import meta, quantity
from kuberuntime.objects.meta import JSONObject
from localkube.kubelet.spec import podspec
from localkube.kubelet.spec.podspec import SpecError

SUBSCRIPT: Final = re.compile(r"metadata\.(labels|annotations)\['(?P<key>[^']+)'\]")
RESOURCE: Final = re.compile(r"(?P<kind>limits|requests)\.(?P<resource>.+)")


class NodeFacts(Struct, frozen=True):
    """The fields of the node to which a pod can refer."""

    host_ip: str
    allocatable: Mapping[str, quantity.Quantity]


def field_value(pod: JSONObject, path: str, ip: str, node: NodeFacts) -> str:
    """Return one field as a string. `ip` is the address of the pod."""
    subscript = SUBSCRIPT.fullmatch(path)
    if subscript:
        return str((meta.metadata(pod).get(subscript[1]) or {}).get(subscript["key"], ""))
    match path:
        case "metadata.name" | "metadata.namespace" | "metadata.uid":
            return str(meta.metadata(pod).get(path.removeprefix("metadata.")) or "")
        case "metadata.labels" | "metadata.annotations":
            return _format_map(meta.metadata(pod).get(path.removeprefix("metadata.")) or {})
        case "spec.nodeName" | "spec.serviceAccountName":
            return str(meta.spec(pod).get(path.removeprefix("spec.")) or "")
        case "status.hostIP" | "status.hostIPs":
            return node.host_ip
        case "status.podIP" | "status.podIPs":
            return ip
    raise SpecError(f'fieldRef.fieldPath: unsupported value "{path}". See the downward API for supported fields')


def _format_map(values: Mapping[str, str]) -> str:
    return "\n".join(f'{key}="{_escape(value)}"' for key, value in sorted(values.items()))


def _escape(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def resource_value(pod: JSONObject, container: JSONObject, selector: JSONObject, node: NodeFacts) -> str:
    """Return a limit or request of a container as a whole number of divisors, rounded up."""
    target = podspec.find_container(pod, selector.get("containerName") or container["name"])
    match = RESOURCE.fullmatch(str(selector.get("resource") or ""))
    if match is None or target is None:
        raise SpecError(
            f"resourceFieldRef: container {selector.get('containerName')!r}, resource {selector.get('resource')!r}: "
            "must be a container of this pod, and limits.<resource> or requests.<resource>"
        )
    divisor = quantity.parse(selector.get("divisor") or "1")
    amount = _amount(target, match["kind"], match["resource"], node)
    units = amount.fraction() / (divisor.fraction() or Fraction(1))
    return str(-(-units.numerator // units.denominator))


def _amount(container: JSONObject, kind: str, resource: str, node: NodeFacts) -> quantity.Quantity:
    resources = container.get("resources") or {}
    limits = quantity.parse_list(resources.get("limits"))
    if kind == "requests":
        return quantity.parse_list(resources.get("requests")).get(resource) or limits.get(resource, quantity.ZERO)
    return limits.get(resource) or node.allocatable.get(resource, quantity.ZERO)

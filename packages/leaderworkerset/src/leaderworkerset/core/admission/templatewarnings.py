"""Warns about pod templates that are valid in a LeaderWorkerSet, although their pods cannot run.

Each warning contains a field. Warnings are returned for keys that only controllers set (ADR 29), for values that are
invalid in a StatefulSet, and for values that a kubelet rejects.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Final

from kuberuntime.objects import meta, quantity
from kuberuntime.objects.field import FieldError, Kind, invalid
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.podrules import imagenames
from leaderworkerset.api import labels
from leaderworkerset.api.leaderworkerset import LeaderWorkerSet

MOST: Final = 10
"""The maximum number of warnings about values in a template, because clients print all warnings."""

IGNORED: Final = (("labels", meta.labels, labels.POD_LABELS), ("annotations", meta.annotations, labels.POD_ANNOTATIONS))


def warnings(lws: LeaderWorkerSet) -> Iterator[str]:
    """Yield a warning for each field that prevents the creation of pods or is set only in running pods."""
    claims = [meta.name(claim) for claim in lws.spec.leader_worker_template.volume_claim_templates]
    for field, pod in lws.pod_templates.items():
        path = f"spec.leaderWorkerTemplate.{field}"
        yield from _template_warnings(path, pod)
        yield from _warn_about_rejected_fields(path, pod, claims)


def _warn_about_rejected_fields(path: str, pod: JSONObject, claims: Sequence[str]) -> Iterator[str]:
    """Yield a warning for each pod field that kube-apiserver or a kubelet rejects."""
    # Saves fifteen modules in replicas that do not admit LeaderWorkerSets.
    from kuberuntime.objects.podrules import templates

    errors = [
        f"{error} (pods cannot be created from this template)" for error in templates.template_errors(pod, path, claims)
    ]
    errors += [f"{error} (containers cannot start from this template)" for error in _kubelet_errors(path, pod)]
    yield from errors[:MOST]
    if len(errors) > MOST:
        yield f"{path}: {len(errors) - MOST} additional values are invalid"


def _kubelet_errors(path: str, pod: JSONObject) -> Iterator[FieldError]:
    """Yield errors that only a kubelet reports, such as image names, probe ports, and fractions of bytes."""
    spec = pod.get("spec") or {}
    for field in ("initContainers", "containers"):
        for index, container in enumerate(spec.get(field) or ()):
            place = f"{path}.spec.{field}[{index}]"
            image = container.get("image")
            if isinstance(image, str) and image and image.strip() == image and not imagenames.is_reference(image):
                yield invalid(
                    f"{place}.image", image, "must be an image reference such as registry.example.com/org/name:tag"
                )
            yield from _undeclared_port_errors(place, container)
            yield from _fraction_errors(place, container.get("resources") or {})


def _fraction_errors(place: str, resources: JSONObject) -> Iterator[FieldError]:
    """Yield errors for memory and storage quantities with fractions of a byte, such as `512m` instead of `512Mi`."""
    for kind in ("limits", "requests"):
        for name in ("memory", "ephemeral-storage"):
            amount = str((resources.get(kind) or {}).get(name) or 0)
            with suppress(quantity.QuantityError):
                if quantity.parse(amount).nanos % quantity.NANOS:
                    text = "must be a whole number of bytes. The suffix m means thousandths, and Mi means mebibytes"
                    yield invalid(f"{place}.resources.{kind}[{name}]", amount, text)


def _undeclared_port_errors(place: str, container: JSONObject) -> Iterator[FieldError]:
    """Yield errors for probes and hooks with an undeclared named port."""
    declared = {port.get("name") for port in container.get("ports") or ()}
    handlers = {name: container.get(name) for name in ("startupProbe", "readinessProbe", "livenessProbe")}
    handlers |= {f"lifecycle.{name}": hook for name, hook in (container.get("lifecycle") or {}).items()}
    for name, handler in handlers.items():
        for action in ("httpGet", "tcpSocket"):
            port = ((handler or {}).get(action) or {}).get("port") if isinstance(handler, dict) else None
            if isinstance(port, str) and not port.isdecimal() and port not in declared:
                yield FieldError(Kind.NOT_FOUND, f"{place}.{name}.{action}.port", port)


def _template_warnings(path: str, pod: JSONObject) -> Iterator[str]:
    for part, read, keys in IGNORED:
        if ignored := sorted(keys & read(pod).keys()):
            yield f"{path}.metadata.{part}: ignored, because only the controllers set {', '.join(ignored)}"

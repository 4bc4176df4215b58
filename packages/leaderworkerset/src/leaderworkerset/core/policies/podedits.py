"""Provides functions that return a modified copy of a pod."""

from collections.abc import Callable, Mapping
from typing import Final

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject

CONTAINERS: Final = ("containers", "initContainers")
"""The pod spec fields with containers of the group, which exclude ephemeral containers."""


def with_labels(pod: JSONObject, labels: Mapping[str, str]) -> JSONObject:
    """Return the pod with added or replaced labels."""
    return pod | {"metadata": meta.metadata(pod) | {"labels": meta.labels(pod) | dict(labels)}}


def with_annotations(pod: JSONObject, annotations: Mapping[str, str]) -> JSONObject:
    """Return the pod with added or replaced annotations."""
    return pod | {"metadata": meta.metadata(pod) | {"annotations": meta.annotations(pod) | dict(annotations)}}


def with_spec(pod: JSONObject, fields: JSONObject) -> JSONObject:
    """Return the pod with added or replaced spec fields."""
    return pod | {"spec": meta.spec(pod) | fields}


def with_each_container(pod: JSONObject, change: Callable[[JSONObject], JSONObject]) -> JSONObject:
    """Return the pod with modified containers and init containers. Ephemeral containers are unchanged."""
    spec = meta.spec(pod)
    present = [field for field in CONTAINERS if spec.get(field)]
    return with_spec(pod, {field: [change(container) for container in spec[field]] for field in present})


def environment(container: JSONObject) -> list[JSONObject]:
    """Return the environment variables of a container, or an empty list if there are none."""
    return container.get("env") or []


def non_empty(annotations: Mapping[str, str], key: str) -> dict[str, str]:
    """Return the annotation with this key as a map. The map is empty if the value is absent or empty."""
    return {key: annotations[key]} if annotations.get(key) else {}

"""Computes the effective resource requests of a pod from the requests of its containers, as kube-scheduler does."""

from collections.abc import Callable, Mapping
from typing import TypeVar

from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.quantity import Quantity

Amount = TypeVar("Amount", int, Quantity)


def effective(spec: JSONObject, requests: Callable[[JSONObject], dict[str, Amount]]) -> dict[str, Amount]:
    """Return the larger of two sums for each resource, without pod-level requests and overhead.

    The sums are all containers and sidecars, and the largest init container with the sidecars that are started before
    it. `requests` returns the requests of one container.
    """
    sidecars: dict[str, Amount] = {}
    starting: dict[str, Amount] = {}
    for container in spec.get("initContainers") or []:
        if container.get("restartPolicy") == "Always":
            sidecars = add(sidecars, requests(container))
            starting = largest(starting, sidecars)
        else:
            starting = largest(starting, add(sidecars, requests(container)))
    return largest(add(sidecars, *map(requests, spec.get("containers") or [])), starting)


def add(*amounts: Mapping[str, Amount]) -> dict[str, Amount]:
    """Return the sums by resource name."""
    sums: dict[str, Amount] = {}
    for names in amounts:
        for name, amount in names.items():
            sums[name] = sums[name] + amount if name in sums else amount
    return sums


def largest(left: Mapping[str, Amount], right: Mapping[str, Amount]) -> dict[str, Amount]:
    """Return the maxima by resource name."""
    return {**left, **{name: max(left.get(name, amount), amount) for name, amount in right.items()}}

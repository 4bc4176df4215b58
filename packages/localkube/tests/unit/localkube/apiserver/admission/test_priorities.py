"""Tests the priorities of new pods."""

import asyncio
from contextlib import closing
from typing import Any

import pytest

from localkube.apiserver.admission import priorities
from localkube.apiserver.model.apierrors import StatusError
from localkube.apiserver.storage.store import MEMORY, Store, StoreKey


def resolve(given: dict[str, Any], **classes: dict[str, Any]) -> dict[str, Any]:
    """Return a pod spec with the priority from these PriorityClasses."""

    async def scenario() -> dict[str, Any]:
        with closing(Store(MEMORY)) as kept:
            for name, fields in classes.items():
                identity = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}}
                kept.create(StoreKey(priorities.CLASSES, "", name), identity | fields)
            await kept.settle()
            spec: dict[str, Any] = priorities.resolve(kept, {"metadata": {"name": "p"}, "spec": given})["spec"]
            return spec

    return asyncio.run(scenario())


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, {"priority": 0, "preemptionPolicy": "PreemptLowerPriority"}),
        ({"priorityClassName": "high"}, {"priorityClassName": "high", "priority": 9, "preemptionPolicy": "Never"}),
        (
            {"priorityClassName": "system-node-critical"},
            {"priorityClassName": "system-node-critical", "priority": 2000001000, "preemptionPolicy": "PreemptLowerPriority"},
        ),
    ],
)  # fmt: skip
def test_priority_class_sets_the_priority(spec: dict[str, Any], expected: dict[str, Any]) -> None:
    assert resolve(spec, high={"value": 9, "preemptionPolicy": "Never"}) == expected


def test_lowest_default_class_is_used_by_default() -> None:
    spec = resolve({}, a={"value": 5, "globalDefault": True}, b={"value": 3, "globalDefault": True})
    assert (spec["priorityClassName"], spec["priority"]) == ("b", 3)


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"priorityClassName": "absent"}, "no PriorityClass with name absent was found"),
        ({"priority": 7}, r"the integer value of priority \(7\) must not be provided"),
        ({"preemptionPolicy": "Never"}, r"the string value of PreemptionPolicy \(Never\) must not be provided"),
    ],
)
def test_pod_cannot_set_its_own_priority(spec: dict[str, Any], why: str) -> None:
    with pytest.raises(StatusError, match=why):
        resolve(spec)
